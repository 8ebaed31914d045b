import { join } from 'node:path'
import type { Page } from 'puppeteer-core'
import type { Test } from 'tap'
import { type AskServer, httpsClient } from './https.ts'
import { admin, startService } from './programs.ts'
import { testFolder } from './test-folder.ts'
import { openWebBrowser, type WebBrowser, type WebBrowserName } from './web-browser.ts'
import { signUp } from './web-page.ts'

/** A new service with the organization Acme, and a browser in which its first owner signed in. */
export interface BrowserSite {
  readonly web: WebBrowser
  readonly page: Page
  readonly origin: string
  /** The option of posture-admin with the data directory of the service. */
  readonly data: readonly string[]
  readonly ingest: AskServer
  readonly api: AskServer
}

/** The URL in the output of a command that makes a link. */
export async function linkOf(...command: string[]): Promise<string> {
  return String((await admin(...command))[0]?.['url'])
}

export async function startBrowserSite(t: Test, name: WebBrowserName): Promise<BrowserSite> {
  const directory = join(testFolder(t), 'service')
  const data = ['--data-dir', directory]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const service = await startService(directory)
  const certificate = join(directory, 'tls/certificate.pem')
  const api = httpsClient(service.apiPort, certificate)
  const ingest = httpsClient(service.ingestPort, certificate)
  t.teardown(async () => {
    await api.close()
    await ingest.close()
    service.child.kill('SIGTERM')
    await service.ended
  })
  const web = await openWebBrowser(t, name)
  const origin = `https://localhost:${service.consolePort}`
  await signUp(web.page, await linkOf('setup-link', '--console-origin', origin, ...data))
  return { web, page: web.page, origin, data, ingest: ingest.ask, api: api.ask }
}
