import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import t, { type Test } from 'tap'
import { type CollectorSettings, collectorSettings } from '../../../collector/config.ts'
import { HttpsCoverage } from '../../../collector/forward/https-coverage.ts'
import { SyslogCoverage } from '../../../collector/forward/syslog-coverage.ts'
import { SyslogMessages } from '../../../collector/forward/syslog-message.ts'
import { Ways } from '../../../collector/forward/ways.ts'
import { SYSLOG_DATAGRAM_BYTES_MAX } from '../../../collector/limits.ts'
import { Outbox } from '../../../collector/outbox/outbox.ts'
import {
  COVERAGE_COUNT_MAX,
  COVERAGE_COUNTER_NAMES,
  coverageReportToJson,
} from '../../../engine/event/coverage-report.ts'
import { TIME_MS_MAX } from '../../../engine/event/event.ts'
import { provideCertificate } from '../../../engine/http/certificate.ts'
import { coverageReportFromJson } from '../../../engine/ingest/read-coverage.ts'
import { report } from '../../support/coverage.ts'
import { quietLog } from '../../support/store.ts'

const TOKEN = `svc_mt_${'5'.repeat(48)}`
const REPORT = report({ counters: { packets: 7 } })

function settingsOf(words: Partial<CollectorSettings>): CollectorSettings {
  return collectorSettings.parse({ token: TOKEN, endpoint: 'localhost', ...words })
}

async function fakeService(t: Test, answer: (response: ServerResponse) => void) {
  const certificate = await provideCertificate(t.testdir(), undefined)
  const received: { readonly path: string; readonly headers: IncomingMessage['headers']; readonly body: string }[] = []
  const tls = { key: readFileSync(certificate.keyFile), cert: readFileSync(certificate.certificateFile) }
  const server = createServer(tls, async (message, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of message) chunks.push(chunk as Buffer)
    received.push({ path: message.url ?? '', headers: message.headers, body: Buffer.concat(chunks).toString() })
    answer(response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const httpsPort = (server.address() as AddressInfo).port
  return { received, settings: settingsOf({ httpsPort, ca: certificate.certificateFile }) }
}

function answering(status: number, body: string, headers: Record<string, string> = {}) {
  return (response: ServerResponse): void => void response.writeHead(status, headers).end(body)
}

t.test('by HTTPS it goes with the token, as JSON, each on a connection of its own', async (t) => {
  const { settings, received } = await fakeService(t, answering(200, '{"accepted":true}'))
  const way = new HttpsCoverage(settings)
  t.teardown(() => way.close())
  for (let times = 0; times < 2; times++) t.same(await way.send(REPORT), { kind: 'sent' })
  t.equal(received.length, 2)
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', connection: 'close' }
  t.match(received, Array(2).fill({ path: '/ingest/v1/coverage', headers, body: coverageReportToJson(REPORT) }))
})

const ANSWERS: readonly (readonly [name: string, answer: (response: ServerResponse) => void, outcome: object])[] = [
  ['a page of a captive portal', answering(200, '<html>'), { kind: 'failed', why: /not as the service does/ }],
  ['the 200 of something else', answering(200, '{"accepted":1}'), { kind: 'failed' }],
  ['401', answering(401, '{"error":"Invalid monitoring token"}'), { kind: 'unauthorised', why: /\(401\)$/ }],
  ['the 401 of a gateway', answering(401, 'Proxy login'), { kind: 'failed', why: /answered 401$/ }],
  ['404 of an older service', answering(404, '{"error":"No such path"}'), { kind: 'refused', why: /No such path$/ }],
  ['the 404 of a gateway', answering(404, '<h1>Not Found</h1>'), { kind: 'failed' }],
  ['400', answering(400, '{"error":"Malformed report"}'), { kind: 'refused' }],
  ['429', answering(429, '{"error":"Try again later"}', { 'retry-after': '7' }), { kind: 'failed', why: /429/ }],
  ['503', answering(503, '{"error":"busy"}'), { kind: 'failed' }],
  ['hanging up', (response) => void response.destroy(), { kind: 'failed' }],
]
for (const [name, answer, outcome] of ANSWERS) {
  t.test(`answered by ${name}`, async (t) => {
    const { settings } = await fakeService(t, answer)
    const way = new HttpsCoverage(settings)
    t.teardown(() => way.close())
    t.match(await way.send(REPORT), outcome)
  })
}

t.test('nobody listens, nobody answers, and the end', async (t) => {
  t.match(await new HttpsCoverage(settingsOf({ httpsPort: 1 })).send(REPORT), {
    kind: 'failed',
    why: /nothing listens/,
  })
  const { settings } = await fakeService(t, () => {})
  const silent = new HttpsCoverage(settings)
  const startMs = performance.now()
  t.match(await silent.send(REPORT), { kind: 'failed', why: /no answer within 5 s/ })
  t.ok(performance.now() - startMs < 8000)
  const sending = silent.send(REPORT)
  await silent.close()
  t.match(await sending, { kind: 'failed', why: /the collector stops/ })
})

t.test('a token that is not known ends the run of the ways, as with events', async (t) => {
  const { settings } = await fakeService(t, answering(401, '{"error":"Invalid monitoring token"}'))
  const outbox = new Outbox('memory')
  t.teardown(() => outbox.close())
  const ways = new Ways(settings, outbox, quietLog, { probes: false })
  t.teardown(() => ways.close())
  const running = ways.run()
  t.equal(ways.reports, true)
  t.match(await ways.report(REPORT), { kind: 'unauthorised' })
  t.match(await running, { kind: 'unauthorised', why: /does not know the monitoring token/ })
  t.match(ways.unauthorised, { kind: 'unauthorised' })
})

t.test('where nothing is forwarded nothing is reported', async (t) => {
  const outbox = new Outbox('memory')
  t.teardown(() => outbox.close())
  const settings = settingsOf({ httpsEnabled: false, syslogEnabled: false })
  const ways = new Ways(settings, outbox, quietLog, { probes: false })
  t.equal(ways.reports, false)
  t.match(await ways.report(REPORT), { kind: 'failed' })
  await ways.close()
})

const MESSAGE =
  /^<134>1 2026-11-20T00:00:00\.000Z \S+ posture-collector \d+ coverage \[svc@00000 key="svc_mt_5+"\] (\{"coverage":.*\})$/

for (const syslogProtocol of ['tcp', 'tls'] as const) {
  t.test(`by syslog over ${syslogProtocol} it is one message, counted in octets`, async (t) => {
    const certificate = await provideCertificate(t.testdir(), undefined)
    const files = { key: readFileSync(certificate.keyFile), cert: readFileSync(certificate.certificateFile) }
    let text = ''
    const take = (socket: NodeJS.ReadWriteStream) =>
      socket
        .on('error', () => {})
        .on('data', (chunk: Buffer) => {
          text += String(chunk)
        })
    const server = syslogProtocol === 'tls' ? createTlsServer(files, take) : createTcpServer(take)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const { port: syslogPort } = server.address() as AddressInfo
    const ca = certificate.certificateFile
    const way = new SyslogCoverage(settingsOf({ httpsEnabled: false, syslogPort, syslogProtocol, ca }))
    for (let times = 0; times < 2; times++) t.same(await way.send(REPORT), { kind: 'sent' })
    await way.close()
    while (!text.endsWith('}}}')) await new Promise((resolve) => setTimeout(resolve, 5))
    const [, length = '', message = ''] = /^(\d+) (<134>.*\}\}\})\d+ <134>.*\}\}\}$/.exec(text) ?? []
    t.equal(message.length, Number(length))
    t.same(coverageReportFromJson(MESSAGE.exec(message)?.[1] ?? ''), REPORT)
  })
}

t.test(
  'by syslog over UDP it is one datagram, and fits one whatever the counts and the name of the host',
  async (t) => {
    const socket = createSocket('udp4')
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    t.teardown(() => socket.close())
    const settings = settingsOf({ httpsEnabled: false, endpoint: '127.0.0.1', syslogPort: socket.address().port })
    const way = new SyslogCoverage({ ...settings, syslogProtocol: 'udp' })
    const received = once(socket, 'message') as Promise<[Buffer]>
    t.same(await way.send(REPORT), { kind: 'sent' })
    t.same(coverageReportFromJson(MESSAGE.exec(String((await received)[0]))?.[1] ?? ''), REPORT)
    await way.close()
    const most = Object.fromEntries(COVERAGE_COUNTER_NAMES.map((name) => [name, COVERAGE_COUNT_MAX]))
    const longest = report({ sinceMs: TIME_MS_MAX, madeMs: TIME_MS_MAX, counters: most })
    const message = new SyslogMessages(TOKEN, 'h'.repeat(255)).ofCoverage(longest, SYSLOG_DATAGRAM_BYTES_MAX)
    t.ok(message !== undefined && message.length <= SYSLOG_DATAGRAM_BYTES_MAX, `${message?.length}`)
  },
)

t.test('nobody takes syslog', async (t) => {
  const way = new SyslogCoverage(settingsOf({ httpsEnabled: false, syslogPort: 1, syslogProtocol: 'tcp' }))
  t.match(await way.send(REPORT), { kind: 'failed', why: /nothing listens/ })
  await way.close()
})
