import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { createServer as createTcpServer } from 'node:net'
import { gunzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { type CollectorSettings, collectorSettings } from '../../../collector/config.ts'
import { CoverageReporter } from '../../../collector/forward/coverage-reporter.ts'
import { SequenceAges, Transports } from '../../../collector/forward/transports.ts'
import { Outbox } from '../../../collector/outbox/outbox.ts'
import { unpackBatch } from '../../../engine/kernel/event/event.ts'
import { counters, INSTANCE } from '../../support/coverage.ts'
import { listenOn } from '../../support/free-port.ts'
import { quietLog } from '../../support/store.ts'
import { type SyslogNg, syslogNg } from '../../support/syslog-ng.ts'
import { until } from '../../support/wait.ts'

const TOKEN = `svc_mt_${'9'.repeat(48)}`

/** A service that acknowledges every batch, or answers 503 while it is busy. */
async function service(t: Test, { certificate }: SyslogNg) {
  const state = { busy: false, ids: [] as string[], reports: 0, httpsPort: 0 }
  const tls = { key: readFileSync(certificate.keyFile), cert: readFileSync(certificate.certificateFile) }
  const server = createServer(tls, async (message, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of message) chunks.push(chunk as Buffer)
    if (state.busy) return void response.writeHead(503).end('{"error":"busy"}')
    const batch = unpackBatch(gunzipSync(Buffer.concat(chunks)), 10_000)
    if (typeof batch === 'string') throw new Error(batch)
    const { events, coverage } = batch
    if (coverage !== undefined) state.reports++
    for (const event of events) if (typeof event !== 'string') state.ids.push(event.id)
    const answer = { accepted: events.length, duplicates: 0, rejected: [] }
    response.end(JSON.stringify(coverage === undefined ? answer : { ...answer, coverage: { accepted: true } }))
  })
  state.httpsPort = await listenOn(t, server)
  return state
}

function transportsOn(t: Test, outbox: Outbox, settings: Partial<CollectorSettings>): Transports {
  const parsed = collectorSettings.parse({ token: TOKEN, endpoint: 'localhost', ...settings })
  const transports = new Transports(parsed, outbox, quietLog, { probes: true })
  t.teardown(() => {
    transports.stop()
    return transports.close()
  })
  return transports
}

let made = 0
function write(outbox: Outbox, count: number): void {
  const added = Array.from({ length: count }, () => ({
    ...{ name: `h${++made}.claude.ai`, client: '10.0.0.1', method: 'dns' as const },
    ...{ firstSeenMs: made, lastSeenMs: made, count: 1 },
  }))
  outbox.write({ added })
}

t.test('with both transports, each gets every event once, and events leave when HTTPS acknowledges them', async (t) => {
  const receiver = await syslogNg(t)
  const { httpsPort, ids } = await service(t, receiver)
  const outbox = new Outbox(`${receiver.directory}/outbox`)
  t.teardown(() => outbox.close())
  const settings = { httpsPort, ca: receiver.certificate.certificateFile, syslogEnabled: true }
  write(outbox, 3000)
  const transports = transportsOn(t, outbox, { ...settings, syslogPort: receiver.ports.tls })
  const running = transports.run()
  await until('an empty outbox', () => outbox.waiting === 0)
  write(outbox, 100)
  transports.poll()
  await until('an empty outbox', () => outbox.waiting === 0)
  t.match(transports.status, { https: { connected: true }, syslog: { connected: true, missed: 0 } })
  transports.finish()
  t.same(await running, { kind: 'stopped' })
  const messages = await receiver.receivedAtLeast(3100)
  t.equal(new Set(ids).size, 3100)
  t.same(
    messages.map(({ id }) => id),
    ids,
    'the same events in the same order',
  )
  t.match(transports.status, { https: { acknowledged: 3100 }, syslog: { acknowledged: 3100 } })
})

t.test(
  'with both, HTTPS does not wait while the syslog receiver is unavailable, and missed events are counted',
  async (t) => {
    const receiver = await syslogNg(t)
    const { httpsPort, ids } = await service(t, receiver)
    const outbox = new Outbox(`${receiver.directory}/outbox`)
    t.teardown(() => outbox.close())
    const settings = { httpsPort, ca: receiver.certificate.certificateFile, syslogEnabled: true }
    const transports = transportsOn(t, outbox, { ...settings, syslogPort: receiver.ports.tls })
    const running = transports.run()
    write(outbox, 10)
    await until('an empty outbox', () => outbox.waiting === 0)
    await receiver.receivedAtLeast(10)
    await receiver.kill()
    await until('the status of syslog', () => transports.status.syslog?.connected === false)
    write(outbox, 20)
    await until('an empty outbox', () => outbox.waiting === 0)
    t.equal(ids.length, 30)
    await receiver.start()
    await until('the status of syslog', () => transports.status.syslog?.connected === true)
    write(outbox, 5)
    const messages = await receiver.receivedAtLeast(15)
    await until('an empty outbox', () => outbox.waiting === 0)
    t.equal(new Set(messages.map(({ id }) => id)).size, 15, 'none twice')
    t.match(transports.status, { syslog: { missed: 20, acknowledged: 15 }, https: { acknowledged: 35 } })
    transports.finish()
    await running
  },
)

t.test('with both, syslog continues while the service is busy, and does not start over after a restart', async (t) => {
  const receiver = await syslogNg(t)
  const state = await service(t, receiver)
  state.busy = true
  const directory = `${receiver.directory}/outbox`
  const outbox = new Outbox(directory)
  const settings = { httpsPort: state.httpsPort, ca: receiver.certificate.certificateFile, syslogEnabled: true }
  const transports = transportsOn(t, outbox, { ...settings, syslogPort: receiver.ports.tls })
  const running = transports.run()
  write(outbox, 50)
  await receiver.receivedAtLeast(50)
  await until('syslog has sent 50', () => outbox.sentThrough('syslog') === 50)
  t.equal(outbox.waiting, 50)
  transports.stop()
  await running
  await transports.close()
  await outbox.close()

  state.busy = false
  const reopened = new Outbox(directory)
  t.teardown(() => reopened.close())
  const again = transportsOn(t, reopened, { ...settings, syslogPort: receiver.ports.tls })
  again.finish()
  await again.run()
  t.equal(state.ids.length, 50)
  t.equal(receiver.received().length, 50, 'syslog has none twice')
})

t.test('syslog alone decides when events leave; without a transport, events stay', async (t) => {
  const receiver = await syslogNg(t)
  const outbox = new Outbox(`${receiver.directory}/outbox`)
  t.teardown(() => outbox.close())
  write(outbox, 700)
  const off = transportsOn(t, outbox, { httpsEnabled: false, syslogEnabled: false })
  t.equal(off.deciding, undefined)
  t.same(off.status, {})
  off.finish()
  t.same(await off.run(), { kind: 'stopped' })
  t.equal(outbox.waiting, 700)
  const syslogPort = receiver.ports.tcp
  const alone = transportsOn(t, outbox, { httpsEnabled: false, syslogPort, syslogProtocol: 'tcp' })
  t.equal(alone.deciding, 'syslog')
  alone.finish()
  t.same(await alone.run(), { kind: 'stopped' })
  t.equal(outbox.waiting, 0)
  t.equal((await receiver.receivedAtLeast(700)).length, 700)
})

t.test('with both, HTTPS waits only a limited time for a slow syslog receiver', async (t) => {
  const receiver = await syslogNg(t)
  const { httpsPort, ids } = await service(t, receiver)
  const slow = createTcpServer((socket) => socket.on('error', () => {}).pause())
  const syslogPort = await listenOn(t, slow)
  const outbox = new Outbox('memory')
  t.teardown(() => outbox.close())
  const settings = { httpsPort, ca: receiver.certificate.certificateFile, syslogEnabled: true, syslogPort }
  // More than a connection's buffers hold.
  for (let round = 0; round < 40; round++) write(outbox, 1000)
  const transports = transportsOn(t, outbox, { ...settings, syslogProtocol: 'tcp' })
  const running = transports.run()
  await until('the first batch', () => outbox.waiting < 40_000)
  t.equal(transports.status.syslog?.connected, true, 'before the connection is closed')
  await until('an empty outbox', () => outbox.waiting === 0)
  t.equal(ids.length, 40_000)
  transports.stop()
  await transports.close()
  await running
})

t.test('with both, events that syslog missed are counted, and the end does not wait for syslog', async (t) => {
  const receiver = await syslogNg(t)
  const { httpsPort } = await service(t, receiver)
  const outbox = new Outbox('memory')
  t.teardown(() => outbox.close())
  const settings = { httpsPort, ca: receiver.certificate.certificateFile, syslogEnabled: true, syslogPort: 1 }
  const transports = transportsOn(t, outbox, settings)
  const running = transports.run()
  write(outbox, 300)
  await until('an empty outbox', () => outbox.waiting === 0)
  t.match(transports.status, { syslog: { missed: 300, acknowledged: 0, connected: false }, https: { missed: 0 } })
  // By now the backoff is several seconds.
  await new Promise((resolve) => setTimeout(resolve, 6000))
  const before = performance.now()
  transports.finish()
  await running
  t.ok(performance.now() - before < 500)

  // A new run does not count the events again that syslog missed before.
  const again = transportsOn(t, outbox, settings)
  t.equal(again.status.syslog?.missed, 0)
})

t.test('coverage reports use only the deciding transport', async (t) => {
  const receiver = await syslogNg(t)
  const state = await service(t, receiver)
  const syslogPort = receiver.ports.tcp
  const trust = { ca: receiver.certificate.certificateFile, syslogProtocol: 'tcp', syslogPort } as const
  const inReceiver = () => receiver.received().filter(({ msgid }) => msgid === 'coverage').length
  const rows = [
    { settings: { ...trust, httpsPort: state.httpsPort, syslogEnabled: true }, byHttps: 1, bySyslog: 0 },
    { settings: { ...trust, httpsEnabled: false }, byHttps: 1, bySyslog: 1 },
    { settings: { httpsEnabled: false, syslogEnabled: false }, byHttps: 1, bySyslog: 1 },
  ]
  for (const { settings, byHttps, bySyslog } of rows) {
    const outbox = new Outbox('memory')
    t.teardown(() => outbox.close())
    write(outbox, 3)
    const before = receiver.received().length
    const transports = transportsOn(t, outbox, settings)
    const reporter = new CoverageReporter({ instance: INSTANCE, counters: () => counters(), log: quietLog })
    reporter.finish()
    const running = transports.run(reporter)
    const isOn = transports.deciding !== undefined
    if (isOn) await until('an empty outbox', () => outbox.waiting === 0)
    if (transports.status.syslog !== undefined)
      await until('the status of syslog', () => (transports.status.syslog?.acknowledged ?? 0) === 3)
    transports.finish()
    t.same(await running, { kind: 'stopped' })
    if (transports.status.syslog !== undefined) await receiver.receivedAtLeast(before + 3 + bySyslog)
    t.same([state.reports, inReceiver()], [byHttps, bySyslog])
    t.same(reporter.counts, { sent: isOn ? 1 : 0, failed: 0 })
  }
})

t.test('the age of events is known to half a second', async (t) => {
  const ages = new SequenceAges()
  const seen: number[] = []
  // A hundred events every tenth of a second. Each query asks about the events of five seconds ago.
  for (let tenth = 0; tenth <= 100; tenth++) seen.push(ages.before(1 + tenth * 100, tenth * 100 - 5000, tenth * 100))
  t.equal(seen[49], 0, 'no age was read before')
  t.equal(seen[50], 1)
  for (let tenth = 60; tenth <= 100; tenth++) {
    const newest = 1 + (tenth - 50) * 100
    t.ok((seen[tenth] as number) <= newest && (seen[tenth] as number) >= newest - 500, `${seen[tenth]} of ${newest}`)
  }
  t.equal(ages.before(10_001, 60_000, 65_000), 10_001, 'the next read includes the newest event')
})
