import { X509Certificate } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer as createTcpServer, type Server } from 'node:net'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import t, { type Test } from 'tap'
import { checkTls } from '../../../collector/check/service.ts'
import { collectorSettings } from '../../../collector/config.ts'
import { keyPin } from '../../../engine/kernel/process/key-pin.ts'
import { connectProxy } from '../../support/connect-proxy.ts'
import { listenOn } from '../../support/free-port.ts'

const TOKEN = `svc_mt_${'6'.repeat(48)}`
const DAY_MS = 86_400_000

function check(httpsPort: number, more: Record<string, unknown> = {}) {
  return checkTls(collectorSettings.parse({ token: TOKEN, endpoint: 'localhost', httpsPort, ...more }))
}

interface Shown {
  readonly port: number
  /** Path of the certificate. */
  readonly ca: string
  readonly fingerprint: string
  readonly pin: string
  /** The received requests, with raw headers. */
  readonly received: string[]
}

/** A server whose certificate is valid for this name between these days, relative to today. */
async function server(t: Test, fromDays: number, toDays: number, name = 'localhost'): Promise<Shown> {
  const { private: key, cert } = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    notBeforeDate: new Date(Date.now() + fromDays * DAY_MS),
    notAfterDate: new Date(Date.now() + toDays * DAY_MS),
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: name }] }],
  })
  const received: string[] = []
  const https = createHttpsServer({ key, cert }, (message, response) => {
    received.push(`${message.method} ${message.rawHeaders.join(' ')}`)
    response.end()
  })
  t.teardown(() => https.closeAllConnections())
  const certificate = new X509Certificate(cert)
  const ca = join(t.testdir(), 'certificate.pem')
  writeFileSync(ca, cert)
  return {
    port: await listenOn(t, https),
    ca,
    fingerprint: certificate.fingerprint256,
    pin: keyPin(certificate),
    received,
  }
}

t.test(
  'a certificate trusted by --service-ca-file or by a pin: protocol, expiry and the pin of its key are reported',
  async (t) => {
    const { port, ca, fingerprint, pin } = await server(t, -1, 100)
    for (const trust of [{ ca }, { fingerprint }, { fingerprint: pin }]) {
      const { result, found } = await check(port, trust)
      t.equal(result, 'ok')
      t.match(found, /^TLSv1\.3, certificate valid until \d{4}-\d\d-\d\d, sha256-key:/)
      t.ok(found.endsWith(pin))
    }
  },
)

const REFUSALS: readonly {
  readonly name: string
  readonly days: readonly [from: number, to: number]
  readonly for?: string
  readonly trust: 'nothing' | 'ca' | 'another pin'
  readonly found: RegExp
  readonly fix: (shown: Shown) => string
}[] = [
  {
    name: 'self-signed and not trusted',
    days: [-1, 100],
    trust: 'nothing',
    found: /the certificate is self-signed, valid until/,
    fix: ({ pin }) => `when it starts, set it: --service-fingerprint ${pin}, or pass its CA certificate`,
  },
  {
    name: 'expired',
    days: [-100, -1],
    trust: 'ca',
    found: /the certificate is expired on \d{4}-/,
    fix: () => "renew it on the service's host, or set this clock, which shows 2",
  },
  {
    name: 'not yet valid',
    days: [10, 100],
    trust: 'ca',
    found: /the certificate is valid from \d{4}-\S+ on,/,
    fix: () => 'set this clock, which shows 2',
  },
  {
    name: 'issued for another name',
    days: [-1, 100],
    for: 'posture.example',
    trust: 'ca',
    found: /the certificate is for DNS:posture\.example, and not for localhost$/,
    fix: ({ pin }) => `start the service with --tls-name localhost, or pin its key: --service-fingerprint ${pin}`,
  },
  {
    name: 'not the pinned one',
    days: [-1, 100],
    trust: 'another pin',
    found: /neither the certificate nor its key is pinned: valid until/,
    fix: ({ pin }) => `its key was replaced: --service-fingerprint ${pin}`,
  },
]
for (const { name, days, for: host, trust, found, fix } of REFUSALS) {
  t.test(`a certificate that is ${name} fails`, async (t) => {
    const shown = await server(t, ...days, host)
    const trusts = { nothing: {}, ca: { ca: shown.ca }, 'another pin': { fingerprint: 'ab'.repeat(32) } }
    const outcome = await check(shown.port, trusts[trust])
    t.match(outcome, { result: 'failed', code: 'CERTIFICATE', found })
    t.ok('fix' in outcome && outcome.fix.includes(fix(shown)), JSON.stringify(outcome))
    t.notOk(JSON.stringify([outcome, shown.received]).includes(TOKEN), 'the token is not sent')
  })
}

const UNAUTHENTICATED: readonly { name: string; server: () => Server; found: RegExp; fix: RegExp }[] = [
  {
    name: 'sends plain text first',
    server: () => createTcpServer((socket) => socket.on('error', () => {}).end('SSH-2.0-OpenSSH_9.2\r\n')),
    found: /^https:\/\/localhost:\d+ does not speak TLS$/,
    fix: /^--https-port, here \d+, must be the port that posture-service's --ingest-port names$/,
  },
  { name: 'speaks plain HTTP', server: createHttpServer, found: /does not speak TLS$/, fix: /^--https-port/ },
  {
    name: 'closes the connection',
    server: () => createTcpServer((socket) => socket.on('error', () => {}).destroy()),
    found: /^https:\/\/localhost:\d+: .+/,
    fix: /^check that posture-service runs there/,
  },
  {
    name: 'sends nothing',
    server: () => createTcpServer((socket) => t.teardown(() => socket.destroy())),
    found: /timeout, no connection within 4 s/,
    fix: /^a firewall may drop the packets, or the listener does not support TLS/,
  },
]
for (const { name, server: make, found, fix } of UNAUTHENTICATED) {
  t.test(`a server that ${name} fails`, async (t) => {
    const port = await listenOn(t, make())
    t.match(await check(port), { result: 'failed', code: 'SERVICE_UNREACHABLE', found, fix })
  })
}

t.test('a closed port fails', async (t) => {
  t.match(await check(1), {
    code: 'SERVICE_UNREACHABLE',
    found: 'nothing listens on https://localhost:1',
    fix: /^check that posture-service runs there, or correct --endpoint or --https-port$/,
  })
})

t.test('a proxy does not change the result', async (t) => {
  const { port, ca, fingerprint, pin } = await server(t, -1, 100)
  const { asked } = await connectProxy(t)
  t.match(await check(port, { ca }), { result: 'ok', found: new RegExp(`${pin}$`) })
  t.match(await check(port, { fingerprint }), { result: 'ok' })
  t.match(await check(port, { fingerprint: 'ab'.repeat(32) }), { code: 'CERTIFICATE', found: /nor its key is pinned/ })
  t.same(new Set(asked), new Set([`localhost:${port}`]))
  process.env['HTTPS_PROXY'] = 'http://127.0.0.1:1'
  t.match(await check(port, { ca }), {
    code: 'SERVICE_UNREACHABLE',
    found: 'nothing listens on 127.0.0.1 port 1, where the proxy should be',
    fix: /^check that HTTPS_PROXY is right/,
  })
  process.env['HTTPS_PROXY'] = 'proxy.invalid:3128'
  await t.rejects(check(port, { ca }), { code: 'USAGE', message: /^HTTPS_PROXY: not the URL/ })
})
