import { readdirSync } from 'node:fs'
import { createServer } from 'node:net'
import t from 'tap'
import { HttpsForwarder } from '../../../collector/forward/https.ts'
import { SyslogMessages } from '../../../collector/forward/syslog.ts'
import { StreamLink } from '../../../collector/forward/syslog-link.ts'
import { SYSLOG_DATAGRAM_BYTES_MAX } from '../../../collector/limits.ts'
import { COVERAGE_COUNT_MAX, COVERAGE_COUNTER_NAMES } from '../../../engine/kernel/event/coverage-report.ts'
import { eventFromJson, TIME_MS_MAX } from '../../../engine/kernel/event/event.ts'
import { coverageMessage, report } from '../../support/coverage.ts'
import { freePort, listenOn } from '../../support/free-port.ts'
import { Sender } from '../../support/store.ts'
import { syslogForwarder, TOKEN } from '../../support/syslog-forwarder.ts'
import { PROMPT_MS, until } from '../../support/wait.ts'

const SEEN_MS = Date.parse('2026-11-20T09:15:02.007Z')
const sender = new Sender()

t.test('a message conforms to RFC 5424 and is ASCII', async (t) => {
  const event = sender.event('claude.ai', SEEN_MS, { client: '2001:db8::1', count: 3 })
  t.equal(
    new SyslogMessages(TOKEN, 'edge-7').of(event),
    `<134>1 2026-11-20T09:15:02.007Z edge-7 posture-collector ${process.pid} event ` +
      `[svc@00000 key="${TOKEN}" id="${event.id}"] ` +
      `{"id":"${event.id}","name":"claude.ai","client":"2001:db8::1","method":"dns",` +
      `"first_seen":"2026-11-20T09:15:02.007Z","last_seen":"2026-11-20T09:15:02.007Z","count":3}`,
  )
  const odd = sender.event('bücher\n\u007f.claude.ai', SEEN_MS)
  const message = new SyslogMessages(TOKEN, 'edge 7\n').of(odd) ?? ''
  t.match(message, /^[\x20-\x7e]+$/)
  t.match(message, /^<134>1 \S+ - posture-collector /, 'an invalid host becomes NILVALUE')
  t.match(JSON.parse(message.slice(message.indexOf('{'))), { id: odd.id, name: odd.name })
  const plain = new SyslogMessages(TOKEN, 'edge').of(event) ?? ''
  t.same(eventFromJson(JSON.parse(plain.slice(plain.indexOf('{')))), event, 'the service reads the same event')
})

t.test('a message that exceeds a datagram is sent without its host, or not at all', async (t) => {
  const messages = new SyslogMessages(TOKEN, 'h'.repeat(255))
  const event = sender.event('claude.ai', SEEN_MS)
  const whole = messages.of(event)?.length ?? 0
  t.match(messages.of(event, whole), / h{255} /)
  t.match(messages.of(event, whole - 1), / - posture-collector /)
  t.equal(messages.of(event, whole - 254)?.length, whole - 254)
  t.equal(messages.of(event, whole - 255), undefined)
  t.ok(whole < SYSLOG_DATAGRAM_BYTES_MAX, 'an ordinary event fits with the longest of hosts')
})

t.test('a coverage report is a separate message type and fits a datagram with any counts', async (t) => {
  const messages = new SyslogMessages(TOKEN, 'edge-7')
  t.equal(
    messages.ofCoverage(report({ counters: { packets: 7 } })),
    `<134>1 2026-11-20T00:00:00.000Z edge-7 posture-collector ${process.pid} coverage ` +
      `[svc@00000 key="${TOKEN}"] ${coverageMessage(report({ counters: { packets: 7 } }))}`,
  )
  const most = Object.fromEntries(COVERAGE_COUNTER_NAMES.map((name) => [name, COVERAGE_COUNT_MAX]))
  const longest = report({ sinceMs: TIME_MS_MAX, madeMs: TIME_MS_MAX, counters: most })
  const message = new SyslogMessages(TOKEN, 'h'.repeat(255)).ofCoverage(longest, SYSLOG_DATAGRAM_BYTES_MAX)
  t.ok(message !== undefined && message.length <= SYSLOG_DATAGRAM_BYTES_MAX, `${message?.length}`)
})

t.test('sending to a receiver that does not read fails after a time limit', async (t) => {
  const server = createServer((socket) => socket.on('error', () => {}).pause())
  const port = await listenOn(t, server)
  const link = new StreamLink({ scheme: 'tcp', host: '127.0.0.1', port, ca: '', fingerprint: '' }, 3000)
  t.teardown(() => link.close())
  const messages = Array.from({ length: 1000 }, () => 'x'.repeat(1000))
  await link.open()
  const sendAll = async (): Promise<void> => {
    // The kernel's buffers take some of the messages.
    for (let batch = 0; batch < 100; batch++) await link.send(messages)
  }
  await t.rejects(sendAll(), { message: 'the receiver has read nothing for 3 s' })
  t.equal(link.alive, false)
})

t.test('UDP: an ICMP error is detected, and only the message that is too long is refused', async (t) => {
  const sending = syslogForwarder(t, { syslogProtocol: 'udp', endpoint: '127.0.0.1', syslogPort: await freePort() })
  const long = sender.event(`${'\\001'.repeat(250)}.claude.ai`, SEEN_MS)
  const events = [sender.event('claude.ai', SEEN_MS), long]
  const last = await until('the ICMP error', async () => {
    const outcome = await sending.send(events)
    if (outcome.kind === 'retry') return outcome
    t.match(outcome, { kind: 'accepted', rejected: [/^longer than a datagram of 1180 bytes: /] })
    return undefined
  })
  t.match(last, { kind: 'retry', why: /^nothing listens on udp:\/\/127\.0\.0\.1:/ })
  t.equal(sending.alive, false)
  t.match(await sending.send([]), { kind: 'retry' }, 'an empty send returns the known state')
})

t.test('a host name that does not resolve is reported', async (t) => {
  for (const syslogProtocol of ['tls', 'tcp', 'udp'] as const) {
    const outcome = await syslogForwarder(t, { syslogProtocol, endpoint: 'nobody.invalid' }).send([])
    t.match(outcome, { kind: 'retry', why: 'the name nobody.invalid does not resolve' })
  }
})

t.test('a receiver that closes each connection is not connected and gets nothing', async (t) => {
  const server = createServer((socket) => socket.on('error', () => {}).end())
  const syslogPort = await listenOn(t, server)
  const sending = syslogForwarder(t, { syslogProtocol: 'tcp', syslogPort })
  const outcome = await sending.send([sender.event('claude.ai', SEEN_MS)])
  t.match(outcome, { kind: 'retry', why: /the receiver closed the connection at once$/ })
  t.equal(sending.alive, false)
})

t.test('a send that is closed while connecting ends at once', async (t) => {
  const silent = createServer((socket) => t.teardown(() => socket.destroy()))
  const port = await listenOn(t, silent)
  const https = new HttpsForwarder({ token: TOKEN, endpoint: '127.0.0.1', httpsPort: port, ca: '', fingerprint: '' })
  for (const sending of [
    https,
    syslogForwarder(t, { syslogPort: port }),
    syslogForwarder(t, { syslogPort: port, syslogProtocol: 'tcp' }),
  ]) {
    const sent = sending.send([sender.event('claude.ai', SEEN_MS)])
    const before = performance.now()
    await sending.close()
    t.match(await sent, { kind: 'retry', why: /the collector is stopping/ })
    t.ok(performance.now() - before < PROMPT_MS)
  }
})

t.test('an error in the code is not treated as a lost connection', async (t) => {
  for (const syslogProtocol of ['tls', 'tcp'] as const) {
    // Node refuses the port by a RangeError.
    const sending = syslogForwarder(t, { syslogProtocol, syslogPort: 70_000 })
    const sent = sending.send([sender.event('claude.ai', SEEN_MS)])
    await t.rejects(sent, RangeError, 'the forward loop logs its stack and retries')
  }
})

t.test('UDP: a failed connect keeps no socket', async (t) => {
  // The kernel refuses a broadcast without SO_BROADCAST.
  const sending = syslogForwarder(t, { syslogProtocol: 'udp', endpoint: '255.255.255.255', syslogPort: 514 })
  const open = (): number => readdirSync('/proc/self/fd').length
  await sending.send([])
  const before = open()
  for (let attempt = 0; attempt < 20; attempt++) t.match(await sending.send([]), { kind: 'retry', why: /EACCES/ })
  t.ok(open() <= before + 2, `${open() - before} more`)
})
