import { join } from 'node:path'
import { Browser } from './console.ts'
import { type AskServer, httpsClient } from './https.ts'
import { admin, type Ended, startService } from './programs.ts'
import { organizationWithKey } from './syslog-service.ts'
import { testFolder } from './test-folder.ts'

const OWNER_PASSWORD = 'violet harbor 71 lanterns'

export type ServiceSite = Awaited<ReturnType<typeof startSite>>

/**
 * A posture-service with the organization Acme, which has a token and an API key with all scopes.
 * Runs until the test ends, or until stop(). The data directory is in `directory`.
 */
export async function startSite(
  t: { testdir(): string; teardown(work: () => unknown): void },
  parameters: readonly string[] = [],
  { directory = testFolder(t), through = [] }: { directory?: string; through?: readonly string[] } = {},
) {
  const dataDirectory = join(directory, 'service')
  /** Options of posture-admin: the data directory, and the organization in it. */
  const data = ['--data-dir', dataDirectory]
  const org = ['--org', 'Acme', ...data]
  const made = await organizationWithKey(dataDirectory)
  const service = await startService(dataDirectory, parameters, {}, through)
  const clients: ReturnType<typeof httpsClient>[] = []
  /** Sends requests over TLS to one of the ports of the service. */
  const client = (port: number): AskServer => {
    const opened = httpsClient(port, join(dataDirectory, 'tls/certificate.pem'))
    clients.push(opened)
    return opened.ask
  }
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<Ended> => {
    await Promise.all(clients.splice(0).map((each) => each.close()))
    service.child.kill(signal)
    return service.ended
  }
  t.teardown(() => stop('SIGKILL'))
  /** The origin of the console. */
  const origin = `https://localhost:${service.consolePort}`
  /** The link by which the first owner sets up an account. */
  const setupLink = async () => String((await admin('setup-link', '--console-origin', origin, ...org))[0]?.['url'])
  let sent = 0
  return {
    ...made,
    ...{ directory, dataDirectory, data, org, service, client, stop, origin, setupLink },
    /** Sends an event for each name by HTTPS. Returns the status. */
    async send(names: readonly string[], bearer = made.token): Promise<number> {
      const time = new Date().toISOString()
      const events = names.map((name) => {
        const id = `${'a'.repeat(16)}${(++sent).toString(16).padStart(16, '0')}`
        return { id, name, client: '10.0.0.1', method: 'dns', first_seen: time, last_seen: time, count: 1 }
      })
      const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ events })
      const answer = await client(service.ingestPort)('/ingest/v1/events', { method: 'POST', headers, body })
      return answer.status
    },
    /** The console as its first owner, who has just set up an account. */
    async owner(): Promise<Browser> {
      const browser = new Browser({ ask: client(service.consolePort) }, origin)
      const [, secret = ''] = (await setupLink()).split('#')
      const password = { password: OWNER_PASSWORD, repeated: OWNER_PASSWORD }
      await browser.post('/setup/account', { secret, name: 'ada', ...password })
      return browser
    },
  }
}
