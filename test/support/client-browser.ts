import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import puppeteer from 'puppeteer-core'

/** Opens pages in a browser: `node client-browser.js FOLDER JSON`, in the namespace of a client. */

export interface BrowserVisit {
  readonly browser: 'chrome' | 'firefox'
  readonly names: readonly string[]
  readonly quic: boolean
  readonly proxy?: { readonly kind: 'http' | 'socks'; readonly host: string; readonly port: number }
  /** SHA-256 of the server's public key in base64: Chromium takes no CA from a file. */
  readonly publicKeyHash: string
}

const PAGE_MS = 20_000
const [folder = '', text = ''] = process.argv.slice(2)
const visit = JSON.parse(text) as BrowserVisit

const browser = await puppeteer.launch({
  browser: visit.browser,
  executablePath: visit.browser === 'chrome' ? '/usr/bin/chromium' : '/usr/bin/firefox-esr',
  headless: true,
  userDataDir: mkdtempSync(join(folder, `${visit.browser}-`)),
  protocolTimeout: 60_000,
  ...(visit.browser === 'chrome' ? { args: chromiumArgs(visit) } : { extraPrefsFirefox: firefoxPrefs(visit) }),
})
const page = await browser.newPage()
for (const name of visit.names) {
  const response = await page.goto(`https://${name}/`, { timeout: PAGE_MS, waitUntil: 'domcontentloaded' })
  if (response?.ok() !== true) throw new Error(`${name}: ${response?.status()}`)
}
await browser.close()

function chromiumArgs({ quic, proxy, publicKeyHash }: BrowserVisit): string[] {
  return [
    ...['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-sync'],
    ...['--disable-component-update', '--enable-features=AsyncDns,EncryptedClientHello'],
    `--ignore-certificate-errors-spki-list=${publicKeyHash}`,
    // Chromium sends its QUIC hellos, but does not finish HTTP/3 with Caddy 2.6 and takes HTTP/2.
    ...(quic ? [] : ['--disable-quic']),
    ...(proxy === undefined
      ? []
      : [`--proxy-server=${proxy.kind === 'http' ? 'http' : 'socks5'}://${proxy.host}:${proxy.port}`]),
  ]
}

function firefoxPrefs({ quic, proxy }: BrowserVisit): Record<string, unknown> {
  const http = { 'network.proxy.ssl': proxy?.host, 'network.proxy.ssl_port': proxy?.port }
  const socks = {
    'network.proxy.socks': proxy?.host,
    'network.proxy.socks_port': proxy?.port,
    'network.proxy.socks_remote_dns': true,
  }
  return {
    'network.http.http3.enable': quic,
    // Firefox turns HTTP/3 off where a CA was added, because it could be of a filter.
    'network.http.http3.disable_when_third_party_roots_found': false,
    'network.dns.native_https_query': true,
    'network.dns.echconfig.enabled': true,
    'network.dns.http3_echconfig.enabled': true,
    'network.captive-portal-service.enabled': false,
    'network.connectivity-service.enabled': false,
    // Such a connection does not wait for the HTTPS record, so it has no Encrypted Client Hello.
    'network.http.speculative-parallel-limit': 0,
    ...(proxy === undefined ? {} : { 'network.proxy.type': 1, ...(proxy.kind === 'http' ? http : socks) }),
  }
}
