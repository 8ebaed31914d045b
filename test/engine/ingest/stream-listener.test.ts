import type { Socket } from 'node:net'
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { provideCertificate } from '../../../engine/http/certificate.ts'
import type { CloseReason } from '../../../engine/ingest/connection.ts'
import { Lane, type LaneOptions } from '../../../engine/ingest/lane.ts'
import {
  ConnectionAccounting,
  StreamListener,
  type StreamListenerOptions,
} from '../../../engine/ingest/stream-listener.ts'
import { namedFaults } from '../../../engine/ingest/syslog/counted.ts'
import { systemClock } from '../../../engine/kernel/process/clock.ts'
import { ConnectionLimitLog } from '../../../engine/kernel/process/connection-limit-log.ts'
import { MESSAGE_BYTES_MAX } from '../../../engine/limits.ts'
import { NO_ORGANIZATION } from '../../../engine/store/sources.ts'
import { known as knownHosts, openPipeline, sumsOf, type TestPipeline } from '../../support/pipeline.ts'
import { quietLog } from '../../support/store.ts'
import { sendTcp, sendTls } from '../../support/syslog-sender.ts'
import { rfc5424, squid } from '../../support/syslog-service.ts'
import { until } from '../../support/wait.ts'

const MATCHING = squid('claude.ai')
const MATCHING_LINE = `${MATCHING}\n`

type Limits = Partial<StreamListenerOptions> & Partial<Pick<LaneOptions, 'idleMs' | 'messageMs'>>

/**
 * A listener and its lane in this process, with short time limits. Nothing is stored: the writer
 * keeps matches and never acknowledges them.
 */
async function listen(
  t: Test,
  { idleMs = 60_000, messageMs = 60_000, helloMs = 60_000, ...more }: Limits = {},
): Promise<{
  opened: TestPipeline
  listener: StreamListener
  lane: Lane
  accounting: ConnectionAccounting
  known: () => number
  closed: Record<CloseReason, number>
  withToken: () => number
}> {
  const opened = openPipeline(t, { clock: systemClock })
  const { store } = opened
  let received = 0
  const notify: LaneOptions['notify'] = (message) => {
    if (message.kind !== 'counters') return
    for (const delta of message.sources) if (delta.tokenId !== NO_ORGANIZATION) received += delta.received
  }
  const lane = new Lane({ store, known: knownHosts, tokenRate: undefined, idleMs, helloMs, messageMs, notify })
  const accounting = new ConnectionAccounting()
  const common = { kind: 'tcp', setting: '--syslog-tcp', address: '127.0.0.1', port: 0, tls: undefined } as const
  const limits = { connectionsMax: 1000, connectionsPerAddressMax: 0, limitLog: new ConnectionLimitLog(quietLog) }
  const options = { ...common, ...limits, proxyProtocol: false, helloMs, lane: () => lane, ...more }
  const listener = await StreamListener.listen(options, accounting)
  const timer = setInterval(() => {
    listener.sweep(Date.now())
    lane.sweep(Date.now())
  }, 50)
  t.teardown(() => {
    clearInterval(timer)
    listener.close()
    return lane.drain(0)
  })
  const closed = accounting.closed[listener.kind]
  const withToken = (): number => {
    lane.postCounters(Date.now())
    return received
  }
  return { opened, listener, lane, accounting, closed, known: () => sumsOf(lane.pipeline).received, withToken }
}

t.test('connections that exceed a time limit are closed, and others continue', async (t) => {
  // Long enough for the other connection to send ten times, even on a loaded machine.
  const MOMENT_MS = 2000
  const caFile = (await provideCertificate(t.testdir(), undefined)).certificateFile
  /** The bytes sent first, and those sent every tenth of MOMENT_MS. */
  type Row = readonly [CloseReason, Limits, first?: string | undefined, again?: string]
  const rows: Readonly<Record<string, Row>> = {
    'a byte from time to time': ['slow', { messageMs: MOMENT_MS }, undefined, 'x'],
    'half a counted message': ['slow', { messageMs: MOMENT_MS }, '90 <134>'],
    'a complete message, then a byte from time to time': ['slow', { messageMs: MOMENT_MS }, `${MATCHING}\n`, 'x'],
    'nothing at all': ['silent', { helloMs: MOMENT_MS }],
    'line feeds only': ['silent', { helloMs: MOMENT_MS }, undefined, '\n'],
    'a message, then nothing': ['idle', { idleMs: MOMENT_MS }, `${MATCHING}\n`],
    'a message, then line feeds only': ['idle', { idleMs: MOMENT_MS }, `${rfc5424('TOKEN', MATCHING)}\n`, '\n'],
    'messages without a token only': ['unauthorized', { helloMs: MOMENT_MS }, undefined, MATCHING_LINE],
    'a line that is too long and never ends': [
      'slow',
      { messageMs: MOMENT_MS },
      `${rfc5424('TOKEN', MATCHING)}\n${'x'.repeat(MESSAGE_BYTES_MAX + 100)}`,
      'x',
    ],
    'a counted message that is too long and never ends': ['slow', { messageMs: MOMENT_MS }, '900000 <134>x', 'x'],
  }
  // Each row waits, so they run in parallel.
  t.jobs = Object.keys(rows).length
  for (const [name, [why, limits, first, again]] of Object.entries(rows)) {
    void t.test(name, async (t) => {
      const { opened, listener, lane, accounting, closed, known, withToken } = await listen(t, limits)
      const authorised = rfc5424(opened.token.raw, MATCHING)
      const good = await sendTcp(t, listener.port)
      const bad = await sendTcp(t, listener.port)
      const firstMessages = first?.replace('TOKEN', opened.token.raw)
      if (firstMessages !== undefined) bad.send(firstMessages)
      let sent = 0
      const timer = setInterval(() => {
        good.send(`${authorised}\n`)
        sent++
        if (again !== undefined) bad.send(again)
      }, MOMENT_MS / 10)
      t.teardown(() => clearInterval(timer))
      await bad.closed
      t.match(closed, { [why]: 1 })
      const before = known()
      await until('the other goes on', () => known() > before + 3 || undefined)
      clearInterval(timer)
      good.socket.end()
      await good.closed
      await until('the number of open ones', () => accounting.open === 0 || undefined)
      // The counts are exact only if the other connection stops sending before it is closed.
      if (again !== MATCHING_LINE) t.equal(withToken(), sent + (first?.includes('TOKEN') ? 1 : 0), 'none lost')
      t.equal(accounting.byClient.size, 0)
      t.equal(accounting.byToken.size, 0)
      t.equal(lane.budget.waitingBytes, 0)
      t.equal(
        Object.values(closed).reduce((sum, count) => sum + count),
        1,
        'counted once',
      )
    })
  }
  for (const [name, sent] of [
    ['a TLS client without a handshake', ''],
    ['a TLS client that begins one', '\x16\x03\x01'],
  ] as const) {
    await t.test(name, async (t) => {
      const tls = { keyFile: caFile.replace('certificate.pem', 'key.pem'), certificateFile: caFile }
      const { listener, accounting, closed } = await listen(t, { kind: 'tls', tls, helloMs: MOMENT_MS })
      const sender = await sendTcp(t, listener.port)
      if (sent !== '') sender.send(Buffer.from(sent, 'latin1'))
      await sender.closed
      await until('the number of open ones', () => accounting.open === 0 || undefined)
      t.match(closed, { tls: 1 })
    })
  }
  await t.test('plain text to a TLS listener closes the connection', async (t) => {
    const tls = { keyFile: caFile.replace('certificate.pem', 'key.pem'), certificateFile: caFile }
    const { listener, accounting, closed, known } = await listen(t, { kind: 'tls', tls })
    const sender = await sendTcp(t, listener.port)
    sender.send(`${MATCHING}\n`)
    await sender.closed
    await until('the number of open ones', () => accounting.open === 0 || undefined)
    t.match(closed, { tls: 1 })
    t.equal(known(), 0)
  })
})

t.test('a wrong count costs one message and is reported, and a message over the limit is counted', async (t) => {
  const { opened, listener, lane, closed, known } = await listen(t)
  const faults: object[] = []
  lane.pipeline.noteFraming = (_origin, counts) => faults.push(namedFaults(counts))
  const message = rfc5424(opened.token.raw, MATCHING)
  const frame = `${message.length} ${message}`
  const wrong = await sendTcp(t, listener.port)
  wrong.send(`${frame}${message.length + 300} ${message}${frame}${frame}${frame}${frame}`)
  await until('all others', () => known() === 4 || undefined)
  t.same(faults, [{ lost: 2 }])
  t.match(closed, { framing: 0 })

  const counted = await sendTcp(t, listener.port)
  const long = `${message}${'x'.repeat(MESSAGE_BYTES_MAX)}`
  counted.send(`${long.length} ${long}${message.length} ${message}`)
  await until('the one behind it', () => known() === 5 || undefined)
  t.equal(lane.budget.oversized, 1, 'left out')

  const lines = await sendTcp(t, listener.port)
  lines.send(`${long}\n${message}\n`)
  await until('both', () => known() === 7 || undefined)
  t.equal(lane.budget.oversized, 2, 'truncated')
  t.notOk(counted.socket.destroyed || lines.socket.destroyed, 'the connections continue')
})

t.test('connections of an organization without space wait; no message is lost, repeated or reordered', async (t) => {
  const SIZES = [1, 2, 40, 700, 9000, 30_000, 65_000, 65_000, 3, 65_000, 64_000, 20]
  const tls = await provideCertificate(t.testdir(), undefined)
  const rows: Readonly<Record<string, readonly [kind: 'tcp' | 'tls', framed: (message: string) => string]>> = {
    'lines over TCP': ['tcp', (message) => `${message}\n`],
    'octet counting over TCP': ['tcp', (message) => `${message.length} ${message}`],
    'NUL over TCP': ['tcp', (message) => `${message}\0`],
    'lines over TLS': ['tls', (message) => `${message}\n`],
    'octet counting over TLS': ['tls', (message) => `${message.length} ${message}`],
  }
  for (const [name, [kind, framed]] of Object.entries(rows)) {
    await t.test(name, async (t) => {
      const { lane, listener, accounting, closed } = await listen(t, { kind, tls: kind === 'tls' ? tls : undefined })
      const { pipeline } = lane
      const taken: string[] = []
      let refusals = 0
      // Every other message is rejected once for lack of space.
      pipeline.take = (start, end) => {
        const text = pipeline.line.text(start, end)
        if (refusals++ % 2 === 0) return 'full'
        taken.push(text)
        return 'unmatched'
      }
      const timer = setInterval(() => lane.resumeStalled(), 2)
      t.teardown(() => clearInterval(timer))
      const sender: { socket: Socket } =
        kind === 'tls'
          ? await sendTls(t, listener.port, { caFile: tls.certificateFile })
          : await sendTcp(t, listener.port)
      const messages = Array.from({ length: 10 }, () => SIZES)
        .flat()
        .map((size, index) => `<13>${index} ${'x'.repeat(size)}`)
      sender.socket.end(messages.map(framed).join(''))
      await until('all', () => taken.length >= messages.length || undefined)
      await until('the end of the connection', () => accounting.open === 0 || undefined)
      t.same(
        taken.map((text) => Number(text.slice(4, text.indexOf(' ')))),
        messages.map((_message, index) => index),
      )
      t.ok(taken.every((text, index) => text === messages[index]))
      t.equal(lane.budget.waitingBytes, 0)
      t.same(
        Object.values(closed).filter((count) => count > 0),
        [],
      )
    })
  }
})

t.test('a connection that waited for long gets its full time when it continues', async (t) => {
  const LIMIT_MS = 60_000
  mock.timers.enable({ apis: ['Date'], now: Date.now() })
  t.teardown(() => mock.timers.reset())
  const { opened, listener, lane, closed } = await listen(t, { idleMs: LIMIT_MS, messageMs: LIMIT_MS })
  const passAndSweep = (ms: number): void => {
    mock.timers.setTime(Date.now() + ms)
    lane.sweep(Date.now())
  }
  const { pipeline } = lane
  const take = pipeline.take.bind(pipeline)
  pipeline.take = () => 'full'
  const sender = await sendTcp(t, listener.port)
  const message = rfc5424(opened.token.raw, MATCHING)
  sender.send(`${message}\n${message.slice(0, 50)}`)
  await until('it waits', () => lane.budget.waitingBytes > 0)
  const none = { ...new ConnectionAccounting().closed.tcp }
  passAndSweep(2 * LIMIT_MS)
  t.same(closed, none, 'the service has no space, so the time limit of the sender pauses')
  pipeline.take = take
  lane.resumeStalled()
  passAndSweep(LIMIT_MS - 1)
  t.same(closed, none, 'both limits begin again')
  sender.send(`${message.slice(50)}\n`)
  await until('both', () => sumsOf(pipeline).received === 2 || undefined)
  passAndSweep(LIMIT_MS)
  t.same(closed, { ...none, idle: 1 })
})

t.test('the end waits for connections whose messages had no space, and reports the rest', async (t) => {
  const { opened, listener, lane } = await listen(t)
  const { pipeline } = lane
  const take = pipeline.take.bind(pipeline)
  pipeline.take = () => 'full'
  const sender = await sendTcp(t, listener.port)
  const message = rfc5424(opened.token.raw, 'link is up')
  sender.send(`${message}\n`.repeat(10))
  await until('it waits', () => lane.budget.waitingBytes > 0 || undefined)
  const late = await lane.drain(50)
  t.match(late, { messages: 0 })
  t.ok(late.bytes >= message.length * 10, `${late.bytes} bytes are left`)
  listener.close()
  setTimeout(() => {
    pipeline.take = take
  }, 200)
  t.same(await lane.drain(5000), { messages: 0, bytes: 0 })
  t.equal(sumsOf(pipeline).received, 10)
})
