import t from 'tap'
import { eventFromJson } from '../../../engine/kernel/event/event.ts'
import { coverageMessage, report } from '../../support/coverage.ts'
import { Sender } from '../../support/store.ts'
import { syslogForwarder, TOKEN } from '../../support/syslog-forwarder.ts'
import { syslogNg } from '../../support/syslog-ng.ts'

const SEEN_MS = Date.parse('2026-11-20T09:15:02.007Z')
const sender = new Sender()

t.test('syslog-ng parses all messages over TLS, TCP and UDP', async (t) => {
  const receiver = await syslogNg(t)
  const { certificate } = receiver
  const trust = { ca: certificate.certificateFile }
  let before = 0
  for (const syslogProtocol of ['tls', 'tcp', 'udp'] as const) {
    const sending = syslogForwarder(t, { ...trust, syslogProtocol, syslogPort: receiver.ports[syslogProtocol] })
    t.equal(sending.alive, false, 'not connected yet')
    const batches = [1, 2, 3].map((batch) =>
      Array.from({ length: 200 }, (_, number) => sender.event(`b${batch}-${number}.claude.ai`, SEEN_MS + number)),
    )
    for (const events of batches) {
      t.same(await sending.send(events), { kind: 'accepted', duplicates: 0, outsideDedupWindow: 0, rejected: [] })
      t.equal(sending.alive, true)
    }
    const messages = (await receiver.receivedAtLeast(before + 600)).slice(before)
    t.same(
      messages.map(({ message }) => eventFromJson(JSON.parse(message))),
      batches.flat(),
      `${syslogProtocol}: all messages, complete and in order`,
    )
    t.ok(messages.every(({ key }) => key === TOKEN))
    t.ok(messages.every(({ id, message }) => message.includes(id)))
    t.match(messages[0], { pri: '134', program: 'posture-collector', msgid: 'event' })
    // The report uses the events' connection, after the events.
    const [last] = batches.at(-1) ?? []
    if (last === undefined) throw new Error('an event')
    t.same(await sending.send([last], report()), {
      kind: 'accepted',
      duplicates: 0,
      outsideDedupWindow: 0,
      rejected: [],
    })
    const both = (await receiver.receivedAtLeast(before + 602)).slice(before + 600)
    t.match(both, [{ msgid: 'event' }, { key: TOKEN, msgid: 'coverage', message: coverageMessage(report()) }])
    before += 602
  }
})

t.test('TLS sends nothing to a receiver that is not trusted', async (t) => {
  const receiver = await syslogNg(t)
  const { certificate } = receiver
  const events = [sender.event('claude.ai', SEEN_MS)]
  const syslogPort = receiver.ports.tls
  t.match(await syslogForwarder(t, { syslogPort }).send(events), {
    kind: 'retry',
    why: /^tls:\S+ the certificate is not trusted/,
  })
  t.match(await syslogForwarder(t, { syslogPort, fingerprint: 'ab'.repeat(32) }).send(events), {
    kind: 'retry',
    why: /which --service-fingerprint does not pin/,
  })
  const fingerprint = certificate.fingerprint.replaceAll(':', '').toLowerCase()
  t.match(await syslogForwarder(t, { syslogPort, fingerprint }).send(events), { kind: 'accepted' })
  t.equal((await receiver.receivedAtLeast(1)).length, 1)
  t.throws(() => syslogForwarder(t, { ca: '/nowhere' }), {
    code: 'USAGE',
    message: /^--service-ca-file \/nowhere: no such file/,
  })
  t.match(await syslogForwarder(t, { syslogPort: receiver.ports.tcp }).send(events), { kind: 'retry' }, 'no TLS there')
})

t.test('forwarding continues when a receiver returns', async (t) => {
  const receiver = await syslogNg(t)
  const { certificate } = receiver
  const sending = syslogForwarder(t, { ca: certificate.certificateFile, syslogPort: receiver.ports.tls })
  const [first, second] = [sender.event('claude.ai', SEEN_MS), sender.event('chatgpt.com', SEEN_MS)]
  t.match(await sending.send([first]), { kind: 'accepted' })
  await receiver.receivedAtLeast(1)
  await receiver.kill()
  while (sending.alive) await new Promise((resolve) => setTimeout(resolve, 5))
  t.match(await sending.send([second]), { kind: 'retry', why: /^nothing listens on tls:/ })
  await receiver.start()
  t.match(await sending.send([second]), { kind: 'accepted' })
  t.match(await receiver.receivedAtLeast(2), [{ id: first.id }, { id: second.id }])
})
