import { readFileSync } from 'node:fs'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { connect, createServer as createTcpServer } from 'node:net'
import { gunzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { backoffMs, retryAfterMs } from '../../../collector/forward/forwarder.ts'
import { HttpsForwarder, type HttpsSettings } from '../../../collector/forward/https.ts'
import { RETRY_LONGEST_MS } from '../../../collector/limits.ts'
import { provideCertificate } from '../../../engine/http/certificate.ts'
import { coverageFromPacked } from '../../../engine/ingest/read-coverage.ts'
import { unpackBatch } from '../../../engine/kernel/event/event.ts'
import { connectProxy } from '../../support/connect-proxy.ts'
import { report } from '../../support/coverage.ts'
import { listenOn } from '../../support/free-port.ts'
import { PROPERTY_SEED } from '../../support/property.ts'
import { SeededRandom } from '../../support/random-names.ts'
import { Sender } from '../../support/store.ts'
import { until } from '../../support/wait.ts'

const TOKEN = `svc_mt_${'5'.repeat(48)}`
const sender = new Sender()
const REPORT = report({ counters: { packets: 7 } })
const EVENTS = [sender.event('claude.ai', 1000), sender.event('chatgpt.com', 2000)]

interface FakeService {
  readonly settings: HttpsSettings
  readonly fingerprint: string
  readonly pin: string
  /** The requests received. */
  readonly received: { headers: IncomingMessage['headers']; body: Buffer }[]
}

async function fakeService(t: Test, answer: (response: ServerResponse) => void): Promise<FakeService> {
  const certificate = await provideCertificate(t.testdir(), undefined)
  const received: FakeService['received'] = []
  const onRequest: RequestListener = async (message, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of message) chunks.push(chunk as Buffer)
    received.push({ headers: message.headers, body: Buffer.concat(chunks) })
    answer(response)
  }
  const tls = { key: readFileSync(certificate.keyFile), cert: readFileSync(certificate.certificateFile) }
  const server = createServer(tls, onRequest)
  const httpsPort = await listenOn(t, server)
  const settings = { token: TOKEN, endpoint: 'localhost', httpsPort, ca: certificate.certificateFile, fingerprint: '' }
  const fingerprint = certificate.fingerprint.replaceAll(':', '').toLowerCase()
  return { settings, fingerprint, pin: certificate.pin, received }
}

async function send(t: Test, settings: HttpsSettings) {
  const forwarder = new HttpsForwarder(settings)
  t.teardown(() => forwarder.close())
  return forwarder.send(EVENTS)
}

function answering(status: number, body: string, headers: Record<string, string> = {}) {
  return (response: ServerResponse): void => {
    response.writeHead(status, headers).end(body)
  }
}

const whole = JSON.stringify({ accepted: 1, duplicates: 0, rejected: [{ index: 1, error: 'name: unknown' }] })
const ANSWERS = [
  {
    name: 'a complete answer',
    answer: answering(200, whole),
    outcome: { kind: 'accepted', duplicates: 0, outsideDedupWindow: 0, rejected: ['name: unknown'] },
  },
  {
    name: 'counts that do not add up',
    answer: answering(200, '{"accepted":1,"duplicates":0,"rejected":[]}'),
    outcome: { kind: 'retry', why: /accounts for 1 of 2/ },
  },
  {
    name: 'a page of a captive portal',
    answer: answering(200, '<html>'),
    outcome: { kind: 'retry', why: /not as the service does/ },
  },
  { name: 'an empty 200', answer: answering(200, ''), outcome: { kind: 'retry' } },
  {
    name: '401',
    answer: answering(401, '{"error":"Invalid monitoring token"}'),
    outcome: { kind: 'unauthorized', why: /does not know the monitoring token/ },
  },
  {
    name: '400',
    answer: answering(400, '{"error":"Malformed batch: x"}'),
    outcome: { kind: 'refused', why: /answered 400 Malformed batch: x$/ },
  },
  { name: '413', answer: answering(413, '{"error":"Too large"}'), outcome: { kind: 'refused' } },
  {
    name: 'a 415 from another program',
    answer: answering(415, '{"status":415,"error":"Unsupported Media Type"}'),
    outcome: { kind: 'notPassed', why: /answered 415 Unsupported Media Type$/ },
  },
  {
    name: 'a 400 from a gateway',
    answer: answering(400, '<h1>Bad Request</h1>'),
    outcome: { kind: 'notPassed', why: /answered 400, but not as the service does/ },
  },
  { name: 'a 413 from a gateway', answer: answering(413, ''), outcome: { kind: 'notPassed' } },
  {
    name: 'a 401 from a gateway',
    answer: answering(401, 'Proxy login'),
    outcome: { kind: 'retry', why: /answered 401, but not as the service does/ },
  },
  { name: '500', answer: answering(500, 'oops'), outcome: { kind: 'retry', why: /answered 500/ } },
  { name: '302', answer: answering(302, '', { location: 'https://example.com/' }), outcome: { kind: 'retry' } },
  {
    name: 'a 503 with seconds',
    answer: answering(503, '{"error":"busy"}', { 'retry-after': '7' }),
    outcome: { kind: 'retry', afterMs: 7000, why: /busy/ },
  },
  {
    name: 'closing the connection',
    answer: (response: ServerResponse) => void response.destroy(),
    outcome: { kind: 'retry' },
  },
  {
    name: 'closing the connection in the middle',
    answer: (response: ServerResponse) =>
      void response.writeHead(200, { 'content-length': '99' }).write('{', () => response.destroy()),
    outcome: { kind: 'retry' },
  },
]
for (const { name, answer, outcome } of ANSWERS) {
  t.test(`the service answers with ${name}`, async (t) => {
    const { settings, received } = await fakeService(t, answer)
    const found = await send(t, settings)
    t.match(found, outcome)
    t.notOk(JSON.stringify(found).includes(TOKEN), 'the token is in no message')
    t.equal(received[0]?.headers.authorization, `Bearer ${TOKEN}`)
    t.match(unpackBatch(gunzipSync(received[0]?.body ?? Buffer.alloc(0)), 10), { events: EVENTS, coverage: undefined })
  })
}

const DONE = { accepted: 2, duplicates: 0, rejected: [] }
const COVERAGE: readonly { name: string; body: object; coverageError: RegExp | undefined }[] = [
  { name: 'is accepted', body: { ...DONE, coverage: { accepted: true } }, coverageError: undefined },
  {
    name: 'is rejected',
    body: { ...DONE, coverage: { accepted: false, error: 'coverage: reports are sent too often' } },
    coverageError: /^coverage: reports are sent too often$/,
  },
  {
    name: 'is not mentioned in the answer',
    body: DONE,
    coverageError: /^https:\/\/.* did not accept the coverage report$/,
  },
]
for (const { name, body, coverageError } of COVERAGE) {
  t.test(`a coverage report ${name}`, async (t) => {
    const { settings, received } = await fakeService(t, answering(200, JSON.stringify(body)))
    const forwarder = new HttpsForwarder(settings)
    t.teardown(() => forwarder.close())
    const outcome = await forwarder.send(EVENTS, REPORT)
    t.match(outcome, { kind: 'accepted', rejected: [] })
    t.match('coverageError' in outcome ? outcome.coverageError : undefined, coverageError)
    const batch = unpackBatch(gunzipSync(received[0]?.body ?? Buffer.alloc(0)), 10)
    if (typeof batch === 'string' || batch.coverage === undefined) throw new Error('a batch with a report')
    t.same(batch.events, EVENTS)
    t.same(coverageFromPacked(batch.coverage), REPORT)
  })
}

t.test('a certificate is accepted only if it is trusted or has the pinned fingerprint', async (t) => {
  const { settings, fingerprint, pin, received } = await fakeService(t, answering(200, whole))
  t.match(await send(t, { ...settings, ca: '' }), {
    kind: 'retry',
    why: /not trusted; pass its CA certificate with --service-ca-file, or pin it with --service-fingerprint/,
  })
  t.match(await send(t, { ...settings, ca: '', fingerprint: 'ab'.repeat(32) }), {
    kind: 'retry',
    why: /which --service-fingerprint does not pin/,
  })
  t.equal(received.length, 0, 'nothing was sent, not even the token')
  const other = 'ab'.repeat(32)
  for (const pins of [fingerprint, pin, `${other},${pin}`, `sha256-key:${other},${fingerprint}`]) {
    t.match(await send(t, { ...settings, ca: '', fingerprint: pins }), { kind: 'accepted' }, pins)
  }
  t.match(
    await send(t, { ...settings, ca: '', fingerprint: `sha256-key:${fingerprint},${pin.slice('sha256-key:'.length)}` }),
    { kind: 'retry' },
  )
  t.throws(() => new HttpsForwarder({ ...settings, ca: '/nowhere' }), {
    code: 'USAGE',
    message: /^--service-ca-file \/nowhere: no such file/,
  })
})

t.test('an error about a closed port says what to check', async (t) => {
  const settings = { token: TOKEN, endpoint: 'localhost', httpsPort: 1, ca: '', fingerprint: '' }
  t.match(await send(t, settings), { kind: 'retry', why: 'nothing listens on https://localhost:1' })
  t.match(await send(t, { ...settings, endpoint: 'nobody.invalid' }), {
    kind: 'retry',
    why: 'the name nobody.invalid does not resolve',
  })
})

t.test('HTTPS_PROXY names the proxy, with the same trust; NO_PROXY makes exceptions', async (t) => {
  const { settings, fingerprint, received } = await fakeService(t, answering(200, whole))
  const { asked } = await connectProxy(t)
  t.match(await send(t, settings), { kind: 'accepted' })
  t.same(asked, [`localhost:${settings.httpsPort}`])
  t.match(await send(t, { ...settings, ca: '', fingerprint }), { kind: 'accepted' })
  const other = { ...settings, ca: '', fingerprint: 'ab'.repeat(32) }
  t.match(await send(t, other), { kind: 'retry', why: /which --service-fingerprint does not pin/ })
  t.equal(received.length, 2)
  t.teardown(() => {
    delete process.env['NO_PROXY']
  })
  process.env['NO_PROXY'] = 'localhost'
  t.match(await send(t, settings), { kind: 'accepted' })
  t.equal(asked.length, 3, 'not by the proxy')
})

t.test('a proxy may require a password, and may refuse the tunnel', async (t) => {
  const { settings } = await fakeService(t, answering(200, whole))
  const { url, asked } = await connectProxy(t, { password: 'user:p%40ss' })
  t.match(await send(t, settings), { kind: 'retry', why: /the proxy 127\.0\.0\.1 port \d+ answered 407 Login/ })
  t.same(asked, [])
  process.env['HTTPS_PROXY'] = url.replace('//', '//user:p%40ss@')
  t.match(await send(t, settings), { kind: 'accepted' })
})

t.test('a kept-alive connection that the service closes is replaced without a warning', async (t) => {
  let answers = 0
  const { settings, received } = await fakeService(t, (response) => {
    // The second request reuses the first connection, which closes without an answer.
    if (++answers === 2) return void response.destroy()
    response.writeHead(200).end(whole)
  })
  const forwarder = new HttpsForwarder(settings)
  t.teardown(() => forwarder.close())
  t.match(await forwarder.send(EVENTS), { kind: 'accepted' })
  t.match(await forwarder.send(EVENTS), { kind: 'accepted' })
  t.equal(received.length, 3)
})

t.test('a proxy that is not reachable, or not a URL, is an error', async (t) => {
  const { settings } = await fakeService(t, answering(200, whole))
  t.teardown(() => {
    delete process.env['HTTPS_PROXY']
  })
  process.env['HTTPS_PROXY'] = 'http://127.0.0.1:1'
  t.match(await send(t, settings), {
    kind: 'retry',
    why: 'nothing listens on 127.0.0.1 port 1, where the proxy should be',
  })
  for (const wrong of [
    'http://u:50%off@proxy.invalid:3128',
    'http://user.invalid:hunter2',
    'proxy.invalid:3128',
    'ftp://proxy.invalid',
    '127.0.0.1:3128',
  ]) {
    process.env['HTTPS_PROXY'] = wrong
    t.throws(() => new HttpsForwarder(settings), {
      code: 'USAGE',
      message: 'HTTPS_PROXY: not the URL of a proxy; expected one such as http://proxy.example:3128',
    })
  }
  process.env['HTTPS_PROXY'] = ''
  t.match(await send(t, settings), { kind: 'accepted' }, 'an empty variable names none')
})

t.test('backoff: full jitter below a limit that doubles; Retry-After in both formats', async (t) => {
  for (const [attempt, bound] of [
    [1, 500],
    [2, 1000],
    [5, 8000],
    [8, RETRY_LONGEST_MS],
    [1000, RETRY_LONGEST_MS],
  ] as const) {
    t.equal(
      backoffMs(attempt, () => 0),
      0,
    )
    t.equal(
      backoffMs(attempt, () => 1),
      bound,
    )
  }
  const now = Date.parse('2026-11-20T12:00:00Z')
  t.equal(retryAfterMs('5', now), 5000)
  t.equal(retryAfterMs('999999', now), RETRY_LONGEST_MS)
  t.equal(retryAfterMs('Fri, 20 Nov 2026 12:00:09 GMT', now), 9000)
  t.equal(retryAfterMs('Fri, 20 Nov 2020 12:00:09 GMT', now), 0)
  t.equal(retryAfterMs('soon', now), undefined)
})

t.test('an error in the code is not treated as a lost connection', async (t) => {
  const { settings, received } = await fakeService(t, answering(200, whole))
  // Node refuses the header field by a TypeError.
  const forwarder = new HttpsForwarder({ ...settings, token: 'two\nlines' })
  t.teardown(() => forwarder.close())
  await t.rejects(forwarder.send(EVENTS), TypeError, 'the forward loop logs its stack and retries')
  t.equal(received.length, 0)
})

t.test('each send has an outcome on a network that resets connections at any time', async (t) => {
  const seeded = new SeededRandom(PROPERTY_SEED)
  const random = (): number => seeded.below(1000) / 1000
  const { settings } = await fakeService(t, (response) => {
    response.writeHead(200).write('{"accepted":1,')
    setTimeout(() => response.end('"duplicates":1,"rejected":[]}'), random() * 5)
  })
  const proxy = createTcpServer((client) => {
    const upstream = connect(settings.httpsPort, '127.0.0.1')
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('error', () => {}).pipe(other)
      one.once('close', () => other.destroy())
    }
    setTimeout(() => (random() < 0.7 ? client.resetAndDestroy() : client.destroy()), random() ** 2 * 40)
  })
  const forwarder = new HttpsForwarder({ ...settings, httpsPort: await listenOn(t, proxy) })
  t.teardown(() => forwarder.close())
  const kinds = new Map<string, number>()
  let sends = 0
  await until('both outcomes', async () => {
    const { kind } = await forwarder.send(EVENTS)
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
    return ++sends >= 100 && kinds.size >= 2
  })
  t.same(new Set(kinds.keys()), new Set(['accepted', 'retry']), JSON.stringify([...kinds]))
})
