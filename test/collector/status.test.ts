import { connect } from 'node:net'
import { hostname } from 'node:os'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import t from 'tap'
import { metricRows } from '../../collector/metrics.ts'
import { healthRecord } from '../../collector/status.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { LocalServer } from '../../engine/kernel/process/local-server.ts'
import { Metrics } from '../../engine/kernel/process/metrics.ts'
import { capturedLog } from '../support/captured-log.ts'
import { type StatusFields, statusOf } from '../support/collector-status.ts'
import { until } from '../support/wait.ts'

t.test('the record has the fields of the specification', async (t) => {
  const record = healthRecord(statusOf({ names: 12, matched: 5, lastMatchMs: Date.UTC(2026, 10, 20, 9, 15, 2, 7) }))
  t.same(record, {
    status: 'running',
    uptime_seconds: 61,
    interface: 'eth7',
    events_captured: 12,
    events_matched: 5,
    platforms_detected: 1,
    syslog_connected: false,
    https_connected: true,
    last_event_at: '2026-11-20T09:15:02.007+00:00',
  })
  t.equal(healthRecord(statusOf({})).last_event_at, null)
})

const longAgoMs = -60_000
const DEGRADED: readonly (readonly [title: string, status: StatusFields, reason: RegExp])[] = [
  ['the interface vanished', { live: { lost: 'eth7: the interface is gone' } }, /^eth7: the interface is gone$/],
  ['it is down', { link: { problem: 'eth7 is down' } }, /^eth7 is down$/],
  ['nothing of its traffic is seen', { link: { silence: '5000 packets passed eth7' } }, /^5000 packets passed/],
  ['the filter is narrow', { live: { filter: 'narrow' } }, /^the link is faster than this collector/],
  [
    'the filter cannot be narrowed',
    { live: { refused: 'no permission' } },
    /^the filter cannot be narrowed: no permission$/,
  ],
  ['the capture thread hangs', { liveAgeMs: 20_000 }, /^the capture thread does not answer$/],
  ['the registry is old', { expired: ['the registry was valid until'] }, /^the registry was valid until$/],
  ['the disk is full', { outboxFull: true }, /^the disk has no space/],
  [
    'the service does not answer',
    { events: { waiting: 7 }, https: { connected: false, problem: 'nothing listens', sinceMs: longAgoMs } },
    /^7 events wait: nothing listens$/,
  ],
  [
    'two at once',
    { link: { problem: 'eth7 has no carrier' }, outboxFull: true },
    /^eth7 has no carrier; the disk has no space/,
  ],
]
for (const [title, words, reason] of DEGRADED) {
  t.test(`degraded: ${title}`, async (t) => {
    t.match(healthRecord(statusOf(words)), { status: 'degraded', reason })
  })
}

t.test('one working transport is enough, and the status of each is shown', async (t) => {
  const https = { connected: false, problem: 'nothing listens', sinceMs: longAgoMs }
  const record = healthRecord(statusOf({ https, syslog: {} }))
  t.match(record, { status: 'running', https_connected: false, syslog_connected: true })
  const both = healthRecord(statusOf({ https, syslog: { ...https, problem: 'refused' } }))
  t.match(both, { status: 'degraded', reason: /nothing listens, refused$/, syslog_connected: false })
  t.match(healthRecord({ ...statusOf({}), transports: {}, deciding: undefined }), {
    status: 'degraded',
    reason: /forwarding is turned off$/,
  })
})

t.test('a service that is briefly unreachable does not degrade the status', async (t) => {
  const words = { https: { connected: false, problem: 'reset', sinceMs: performance.now() } }
  t.match(healthRecord(statusOf(words)), { status: 'running', https_connected: false, reason: undefined })
})

function lagOf(body: string): number {
  return Number(/^nodejs_eventloop_lag_seconds\{quantile="p50"\} (\S+)$/m.exec(body)?.[1])
}

t.test('metrics are in the Prometheus text format, and each series is present once', async (t) => {
  const metrics = new Metrics()
  t.teardown(() => metrics.close())
  const status = statusOf({
    classes: { dnsQuery: 7 },
    names: 7,
    matched: 3,
    counters: { helloName: 3, helloEch: 1 },
    live: { dropped: { kernel: 1, pool: 2, unread: 0 } },
    link: { missed: 5 },
  })
  metrics.render(metricRows(status))
  // Measures as often as the metrics do.
  const measured = monitorEventLoopDelay({ resolution: 10 })
  measured.enable()
  await until('measurements', () => measured.count > 10)
  measured.disable()
  const { type, body } = metrics.render(metricRows(status))
  t.match(type, /^text\/plain; version=0\.0\.4/)
  const series = body.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  for (const line of series) t.match(line, /^[a-z_]+(\{[a-z]+="[A-Za-z0-9_.]+"\})? -?\d+(\.\d+)?(e[+-]?\d+)?$/, line)
  // The lag is in seconds. A value in milliseconds would be at least 10, the sampling interval.
  t.ok(lagOf(body) < 5, `an idle event loop lags by ${lagOf(body)} s`)
  const names = series.map((line) => line.split(' ')[0])
  t.equal(new Set(names).size, names.length)
  for (const line of [
    'posture_collector_packets_total{class="dnsQuery"} 7',
    'posture_collector_packets_dropped_total{place="kernel"} 1',
    'posture_collector_packets_dropped_total{place="interface"} 5',
    'posture_collector_ech_share 0.25',
    'posture_collector_forward_connected{transport="https"} 1',
  ]) {
    t.ok(series.includes(line), line)
  }
})

t.test('the endpoint answers to its own names only, against DNS rebinding', async (t) => {
  const answers = { '/health': () => ({ type: 'application/json', body: '{}' }) }
  const server = await LocalServer.listen('HEALTH_PORT', 0, answers, undefined, undefined, ['posture.example'])
  t.teardown(() => server.close())
  for (const [host, status] of [
    [`127.0.0.1:${server.port}`, 200],
    ['192.0.2.1', 200],
    ['[::1]:9090', 200],
    ['localhost', 200],
    ['LOCALHOST:9090', 200],
    [hostname(), 200],
    ['posture.example.:9091', 200],
    ['', 421],
    ['attacker.example', 421],
    ['localhost.attacker.example:9090', 421],
    ['127.0.0.1.attacker.example', 421],
    ['2130706433', 421],
  ] as const) {
    const socket = connect(server.port, '127.0.0.1')
    socket.end(`GET /health HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    const answer = (await socket.toArray()).join('')
    t.match(answer, new RegExp(`^HTTP/1.1 ${status} `), host)
  }
  const socket = connect(server.port, '127.0.0.1')
  socket.end('GET /health HTTP/1.0\r\n\r\n')
  t.match((await socket.toArray()).join(''), /^HTTP\/1.1 200 /, 'HTTP/1.0 without a Host field')
})

t.test('the endpoint serves health, metrics and counters', async (t) => {
  let started = false
  const { log, entries } = capturedLog()
  const answers = {
    '/health': () => (started ? { type: 'application/json', body: '{"status":"running"}\n' } : undefined),
    '/broken': () => Promise.reject(new TypeError('x is not a function')),
    '/full': () => Promise.reject(new Fault('STORE_FULL', 'no space left')),
  }
  const server = await LocalServer.listen('HEALTH_PORT', 0, answers, log)
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${server.port}`
  t.equal((await fetch(`${url}/health`)).status, 503)
  started = true
  const rows: readonly (readonly [method: string, path: string, status: number, body: RegExp])[] = [
    ['GET', '/health', 200, /^\{"status":"running"\}\n$/],
    ['GET', '/health?verbose', 200, /running/],
    ['HEAD', '/health', 200, /^$/],
    ['POST', '/health', 405, /expected GET/],
    ['GET', '/', 404, /no such path: \/. Available: \/health, \/broken, \/full/],
    ['GET', '/toString', 404, /no such path: \/toString/],
    ['GET', '/broken', 500, /internal error/],
    ['GET', '/full', 500, /no space left/],
  ]
  for (const [method, path, status, body] of rows) {
    const answer = await fetch(url + path, { method })
    t.equal(answer.status, status, `${method} ${path}`)
    t.match(await answer.text(), body)
    if (status === 405) t.equal(answer.headers.get('allow'), 'GET, HEAD')
  }
  t.match(entries, [
    { path: '/broken', err: { message: 'x is not a function', stack: /status\.test/ } },
    { path: '/full', reason: 'no space left' },
  ])
  await t.rejects(LocalServer.listen('HEALTH_PORT', server.port, {}), {
    code: 'PORT_TAKEN',
    message: /^HEALTH_PORT: 127\.0\.0\.1:\d+ is in use/,
  })

  const many = await Promise.all(Array.from({ length: 30 }, () => fetch(`${url}/health`).then(({ status }) => status)))
  t.ok(many.every((status) => status === 200))

  // A client that never finishes its request is disconnected and blocks no other client.
  const slow = connect(server.port, '127.0.0.1').on('error', () => {})
  slow.write('GET /health HTTP/1.1\r\nHost: x\r\n')
  t.equal((await fetch(`${url}/health`)).status, 200)
  const closed = new Promise((resolve) => slow.resume().once('close', resolve))
  await server.close()
  await closed
})
