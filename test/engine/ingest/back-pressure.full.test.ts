import { createSocket } from 'node:dgram'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { kernelDrops } from '../../../engine/ingest/datagram-listener.ts'
import type { SyslogStatus } from '../../../engine/ingest/thread-protocol.ts'
import { packBatch } from '../../../engine/kernel/event/event.ts'
import { systemClock } from '../../../engine/kernel/process/clock.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import { Outcome, totalOf } from '../../../engine/store/outcomes.ts'
import { matchesInScans } from '../../crash/oracle.ts'
import { clientOf, ingestSite, messagesOf } from '../../support/ingest-site.ts'
import { skipNamespaces as skipMount } from '../../support/namespace.ts'
import { SmallDisk } from '../../support/small-disk.ts'
import { Sender as EventSender, quietLog, registries } from '../../support/store.ts'
import { sendTcp } from '../../support/syslog-sender.ts'
import { rfc5424, SYSLOG_ON_LOOPBACK, SyslogService, squid } from '../../support/syslog-service.ts'
import { until } from '../../support/wait.ts'

function storedOf({ messages }: SyslogStatus, kind: 'tcp' | 'udp'): number {
  return messages[kind][Outcome.stored] ?? 0
}

for (const laneThreads of [1, 2]) {
  t.test(`a full organization buffer applies back-pressure, ${laneThreads} lanes`, async (t) => {
    const COUNT = 80_000
    const { store, syslog, https, acme, other, port } = await ingestSite(t, { bufferedEventsMax: 10_000, laneThreads })
    const sender = await sendTcp(t, port('tcp'))
    let flushed = false
    sender.socket.write(`${messagesOf(acme.token, 0, COUNT).join('\n')}\n`, () => {
      flushed = true
    })
    let before = -1
    await until('nothing more is read', async () => {
      const { received } = await syslog.status()
      const same = received.tcp === before && received.tcp > 10_000
      before = received.tcp
      if (!same) await later(300)
      return same || undefined
    })
    const full = await syslog.status()
    t.ok(full.received.tcp < COUNT / 2, `${full.received.tcp} messages were read`)
    t.notOk(flushed, 'the sender waits')
    t.ok(store.buffer.count(acme.id) <= 10_000)

    const others = await sendTcp(t, port('tcp'))
    others.send(`${messagesOf(other.token, 0, 5000).join('\n')}\n`)
    await until('another organization goes on', () => store.buffer.count(other.id) === 5000 || undefined)

    const events = new EventSender()
    const answer = await https.ask('/ingest/v1/events', {
      method: 'POST',
      headers: { authorization: `Bearer ${acme.token}`, 'content-type': 'application/msgpack' },
      body: packBatch(Array.from({ length: 5000 }, () => events.event('claude.ai', Date.now()))),
    })
    t.match(answer, { status: 503, headers: { 'retry-after': '5' } })
    t.match(answer.body, { error: /buffer is full/ })

    const datagrams = createSocket('udp4')
    const UDP_COUNT = 2000
    for (const message of messagesOf(acme.token, 1 << 20, UDP_COUNT)) {
      await new Promise((resolve) => datagrams.send(message, port('udp'), '127.0.0.1', resolve))
    }
    datagrams.close()
    // Datagrams go to the other lane, which has its own buffer.
    if (laneThreads === 1)
      await until('datagrams wait for space', async () => (await syslog.status()).datagramsWaiting > 0 || undefined)
    const status = await until('each datagram is counted', async () => {
      const status = await syslog.status()
      const { datagramsDropped, kernelDropped, received } = status
      return datagramsDropped + kernelDropped + received.udp === UDP_COUNT ? status : undefined
    })
    if (laneThreads === 1) t.ok(status.datagramsDropped > 0, 'they are dropped when there was no space for long')

    const seen = new Map<string, number>()
    await until('all of it', async () => {
      for (const { event } of store.buffer.read(acme.id, 0, 20_000)) {
        seen.set(event.client, (seen.get(event.client) ?? 0) + event.count)
      }
      // Nothing can happen in between, because this thread writes.
      runScan(store, registries, acme.id, 'administrator', systemClock)
      return (flushed && storedOf(await syslog.status(), 'tcp') === COUNT + 5000) || undefined
    })
    for (const { event } of store.buffer.read(acme.id, 0, 20_000)) seen.set(event.client, event.count)
    const missing = Array.from({ length: COUNT }, (_, index) => clientOf(index)).filter((client) => !seen.has(client))
    t.same(missing, [], 'none is lost')
    t.same(
      [...seen].filter(([, count]) => count !== 1),
      [],
      'no message is stored twice',
    )
    const { received, messages } = await syslog.status()
    t.equal(received.tcp, totalOf(messages.tcp))
  })
}

t.test('a full disk applies back-pressure', { skip: skipMount }, async (t) => {
  const COUNT = 80_000
  const disk = new SmallDisk(t, 160)
  // With one thread, datagrams go to the full lane. With a second thread, they go to its own
  // buffer.
  const parameters = [...SYSLOG_ON_LOOPBACK, '--ingest-threads', '1']
  const service = await SyslogService.start(t, parameters, t.testdir(), join(disk.directory, 'service'))
  disk.fillUpTo(32)
  // The service checks the disk once a second.
  await later(1200)
  const sender = await sendTcp(t, service.port('tcp'))
  let flushed = false
  sender.socket.write(`${messagesOf(service.token, 0, COUNT).join('\n')}\n`, () => {
    flushed = true
  })
  await until('a batch must wait', async () => {
    return ((await service.metrics()).get('posture_ingest_events_total{outcome="deferred"}') ?? 0) > 0 || undefined
  })
  await later(1500)
  t.notOk(flushed, 'the sender waits')
  t.equal((await service.counts('tcp')).stored, 0)
  // More than a lane can buffer.
  const UDP_COUNT = 20_000
  const datagrams = createSocket('udp4')
  for (const message of messagesOf(service.token, 1 << 20, UDP_COUNT)) {
    await new Promise((resolve) => datagrams.send(message, service.port('udp'), '127.0.0.1', resolve))
  }
  datagrams.close()
  const dropped = await until('each datagram is counted', async () => {
    const metrics = await service.metrics()
    const lost = ['kernel', 'service'].reduce((sum, place) => {
      return sum + (metrics.get(`posture_ingest_datagrams_dropped_total{place="${place}"}`) ?? 0)
    }, 0)
    const { received } = await service.counts('udp')
    return received + lost === UDP_COUNT ? lost : undefined
  })
  t.ok(dropped > 0, 'there was no space for them')
  disk.free()
  t.match(await service.settled('tcp', COUNT), { stored: COUNT })
  t.match(await service.settled('udp', UDP_COUNT - dropped), { stored: UDP_COUNT - dropped })
  const stored = COUNT + UDP_COUNT - dropped
  t.equal(await foundIn(service), stored, 'no message is lost or stored twice')
  await until('the counters include all messages', async () => {
    const rows = await accountingOf(service)
    return sum(rows.map((row) => row.messages)) === stored || undefined
  })
  t.equal(service.service.child.exitCode, null, 'the service is still running')
})

/** Matches of all scans, including a last one. */
async function foundIn(service: SyslogService): Promise<number> {
  await service.admin('scan', 'run', '--org', 'Acme')
  return service.withStore((store) => {
    const found = matchesInScans(store, service.organizationId)
    return [...found.values()].flatMap((names) => [...names.values()]).reduce((sum, count) => sum + count, 0)
  })
}

t.test('datagrams dropped by the kernel are counted', async (t) => {
  const COUNT = 30_000
  const service = await SyslogService.start(t)
  const port = service.port('udp')
  const socket = createSocket('udp4')
  t.teardown(() => socket.close())
  const message = rfc5424(service.token, squid('claude.ai'))
  service.service.child.kill('SIGSTOP')
  for (let sent = 0; sent < COUNT; sent += 500) {
    await Promise.all(
      Array.from({ length: 500 }, () => new Promise((resolve) => socket.send(message, port, '127.0.0.1', resolve))),
    )
  }
  const drops = kernelDrops(new Set([port]))
  service.service.child.kill('SIGCONT')
  t.ok(drops > 0, `the kernel dropped ${drops}`)
  await service.settled('udp', COUNT - drops)
  const metrics = await service.metrics()
  t.equal(metrics.get('posture_ingest_datagrams_dropped_total{place="kernel"}'), drops)
  t.equal(metrics.get('posture_ingest_datagrams_dropped_total{place="service"}'), 0)
})

/** Sends continuously over ten connections and as datagrams. */
async function keepSending(t: Test, service: SyslogService): Promise<void> {
  const message = rfc5424(service.token, squid('claude.ai'))
  const lines = `${message}\n`.repeat(50)
  const senders = await Promise.all(Array.from({ length: 10 }, () => sendTcp(t, service.port('tcp'))))
  const datagrams = createSocket('udp4')
  datagrams.on('error', () => {})
  const timer = setInterval(() => {
    for (const { socket, send } of senders) if (socket.writableLength < 1_000_000 && !socket.destroyed) send(lines)
    for (let sent = 0; sent < 20; sent++) datagrams.send(message, service.port('udp'), '127.0.0.1')
  }, 5)
  t.teardown(() => {
    clearInterval(timer)
    datagrams.close()
  })
}

type Counters = Record<'messages' | 'stored' | 'in_progress' | 'unauthorized', number>

async function accountingOf(service: SyslogService): Promise<Counters[]> {
  const rows = (await service.admin('ingest', 'counters')) as unknown as (Counters & Record<string, number>)[]
  for (const row of rows) {
    const { listener: _listener, messages, in_progress, ...outcomes } = row
    const known = Object.values(outcomes).reduce((sum, count) => sum + count, 0)
    if (known + Number(in_progress) !== messages) throw new Error(`it does not balance: ${JSON.stringify(row)}`)
  }
  return rows
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)

t.test('after SIGTERM under load, acknowledged messages are stored and the accounting is complete', async (t) => {
  const service = await SyslogService.start(t)
  await keepSending(t, service)
  let stored = 0
  await until('much', async () => {
    stored = (await service.counts('tcp')).stored + (await service.counts('udp')).stored
    return stored > 20_000 || undefined
  })
  service.service.child.kill('SIGTERM')
  const { status } = await service.service.ended
  t.equal(status, 0)
  const found = await foundIn(service)
  t.ok(found >= stored, `${found} are stored, ${stored} were acknowledged`)
  const rows = await accountingOf(service)
  t.equal(sum(rows.map((row) => row.in_progress)), 0, 'no message was in progress')
  t.equal(sum(rows.map((row) => row.stored)), found, 'the counters equal the stored messages')
})

t.test('after kill -9 under load, acknowledged messages are stored and the accounting balances', async (t) => {
  const service = await SyslogService.start(t)
  await keepSending(t, service)
  let stored = 0
  await until('much', async () => {
    stored = (await service.counts('tcp')).stored + (await service.counts('udp')).stored
    return stored > 20_000 || undefined
  })
  await until('counters, which are written once a second', async () => {
    return (await accountingOf(service)).some((row) => row.stored > 0) || undefined
  })
  service.service.child.kill('SIGKILL')
  await service.service.ended
  const rows = await accountingOf(service)
  const found = await foundIn(service)
  t.ok(found >= stored, `${found} are stored, ${stored} were acknowledged`)
  t.ok(rows.every(({ in_progress }) => in_progress >= 0))
  t.ok(sum(rows.map((row) => row.stored)) <= found, 'the counters include no message that is not stored')
})

for (const laneThreads of [1, 2]) {
  t.test(`the service ends in order while an organization's buffer is full, ${laneThreads} lanes`, async (t) => {
    const COUNT = 15_000
    for (const hasRoom of [true, false]) {
      const lines: { messages: number; bytes: number }[] = []
      const log = { ...quietLog, info: () => {}, warn: (what: object) => lines.push(what as never) } as never
      const { store, syslog, acme, port } = await ingestSite(t, { bufferedEventsMax: 10_000, laneThreads, log })
      const sender = await sendTcp(t, port('tcp'))
      sender.send(`${messagesOf(acme.token, 0, COUNT).join('\n')}\n`)
      await until('it is full', async () => {
        const { received } = await syslog.status()
        return (received.tcp > 10_000 && store.buffer.count(acme.id) > 0) || undefined
      })
      await later(500)
      const { received } = await syslog.status()
      const drained = syslog.drain(3000)
      const asked = syslog.status().catch(() => 'gone')
      let scanned = 0
      if (hasRoom) {
        await later(100)
        scanned = store.buffer.count(acme.id)
        runScan(store, registries, acme.id, 'administrator', systemClock)
      }
      await drained
      await asked
      t.equal(await syslog.status().catch(() => 'gone'), 'gone', '/healthz still answers')
      const stored = scanned + store.buffer.count(acme.id)
      if (hasRoom) {
        t.ok(stored >= received.tcp, `${stored} of ${received.tcp} are stored`)
        t.same(lines, [])
      } else {
        t.ok((lines[0]?.messages ?? 0) >= received.tcp - stored, `${lines[0]?.messages} are reported as lost`)
        t.ok((lines[0]?.messages ?? 0) > 0)
      }
    }
  })
}
