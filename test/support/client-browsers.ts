import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BrowserVisit } from './client-browser.ts'
import { ClientNetwork, SERVER, serveDante, serveSquid } from './client-network.ts'
import { u16 } from './packets.ts'

/**
 * Chromium and Firefox ESR open pages of AI platforms, over TCP and QUIC, through proxies and with
 * Encrypted Client Hello, while tcpdump writes traffic.pcap. Usage: `unshare --net --mount --pid
 * --fork --kill-child node client-browsers.js FOLDER`. Prints what the browsers requested as one
 * line of JSON.
 */

export type BrowserKind = 'tcp' | 'quic' | 'squid' | 'dante' | 'ech'

export interface BrowserTraffic {
  readonly names: readonly string[]
  readonly publicName: string
  readonly clients: readonly {
    readonly client: string
    readonly browser: 'chrome' | 'firefox'
    readonly kind: BrowserKind
    readonly names: readonly string[]
    /** DNS questions, as the DNS server received them. */
    readonly questions: readonly string[]
    /** `protocol host` of each request, as the server logged it. */
    readonly served: readonly string[]
  }[]
}

const CLIENT = fileURLToPath(new URL('./client-browser.js', import.meta.url))
const POLICIES = '/usr/lib/firefox-esr/distribution'
const PUBLIC_NAME = 'public.example'
/** RFC 9460 §7.1, RFC 9849 §4: keys of parameters in an HTTPS record. */
const ALPN = 1
const ECH = 5
const ECH_NAMES = 5
const KINDS: readonly BrowserKind[] = ['tcp', 'quic', 'squid', 'dante', 'ech']
const PROXIES = {
  squid: { kind: 'http', host: SERVER, port: 3128 },
  dante: { kind: 'socks', host: SERVER, port: 1080 },
} as const

const [folder = ''] = process.argv.slice(2)
let kind: BrowserKind = 'tcp'
const network = await ClientNetwork.create(folder, () => recordOf(kind))
const accessLog = await network.serveWeb()
await serveSquid(network, PROXIES.squid.port)
await serveDante(network, PROXIES.dante.port)
trustCa()
const stopCapture = await network.capture(join(folder, 'traffic.pcap'))
const clients: BrowserTraffic['clients'][number][] = []
for (kind of KINDS) for (const browser of ['chrome', 'firefox'] as const) await open(browser)
await stopCapture()
const traffic: BrowserTraffic = { names: network.names, publicName: PUBLIC_NAME, clients }
process.stdout.write(`${JSON.stringify(traffic)}\n`, () => process.exit())

async function open(browser: 'chrome' | 'firefox'): Promise<void> {
  const host = network.host(`b${clients.length}`)
  const names = kind === 'ech' ? network.names.slice(0, ECH_NAMES) : network.names
  const proxy = kind === 'squid' || kind === 'dante' ? PROXIES[kind] : undefined
  const visit: BrowserVisit = { browser, names, quic: kind === 'quic', publicKeyHash: publicKeyHash() }
  const text = JSON.stringify(proxy === undefined ? visit : { ...visit, proxy })
  const [command, parameters] = host.command(process.execPath, CLIENT, folder, text)
  const child = spawn(command, parameters, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env['PATH'], HOME: folder },
  })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    said = (said + chunk).slice(-4000)
  })
  const [status] = await once(child, 'close')
  if (status !== 0) throw new Error(`${browser}, ${kind}: ${said}`)
  const served = accessLog().filter(({ remote_ip }) => remote_ip === host.address)
  clients.push({
    ...{ client: host.address, browser, kind, names, questions: network.questionsOf(host.address) },
    served: served.map(({ proto, host }) => `${proto} ${host}`),
  })
}

function recordOf(kind: BrowserKind): [number, Buffer][] {
  const protocol = kind === 'quic' ? 'h3' : 'h2'
  const alpn: [number, Buffer] = [ALPN, Buffer.concat([Buffer.from([protocol.length]), Buffer.from(protocol)])]
  return kind === 'ech' ? [alpn, [ECH, echConfigs()]] : [alpn]
}

/**
 * RFC 9849 §4. The server does not have the key and rejects, and the certificate of the public name
 * makes that credible, so the browser connects again without Encrypted Client Hello.
 */
function echConfigs(): Buffer {
  const DHKEM_X25519 = 0x0020
  const suite = Buffer.concat([u16(1), u16(1)])
  const contents = Buffer.concat([
    ...[Buffer.from([7]), u16(DHKEM_X25519), u16(32), createHash('sha256').update('any point').digest()],
    ...[u16(suite.length), suite, Buffer.from([64, PUBLIC_NAME.length]), Buffer.from(PUBLIC_NAME), u16(0)],
  ])
  const config = Buffer.concat([u16(0xfe0d), u16(contents.length), contents])
  return Buffer.concat([u16(config.length), config])
}

/** Firefox takes a CA from a policy. */
function trustCa(): void {
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', POLICIES])
  const policies = { Certificates: { Install: [network.caFile] } }
  writeFileSync(join(POLICIES, 'policies.json'), JSON.stringify({ policies }))
}

function publicKeyHash(): string {
  const key = execFileSync('openssl', ['x509', '-in', network.certificate, '-noout', '-pubkey'])
  const der = execFileSync('openssl', ['pkey', '-pubin', '-outform', 'DER'], { input: key })
  return createHash('sha256').update(der).digest('base64')
}
