import { once } from 'node:events'
import t from 'tap'
import type {
  AppendFailure,
  EventLog,
  LogMessage,
  LogPosition,
  LogState,
} from '../../../engine/cluster/log/event-log.ts'
import { EventAcceptor } from '../../../engine/ingest/accept.ts'
import { EventLogReader } from '../../../engine/ingest/event-log-reader.ts'
import { EventLogWriter } from '../../../engine/ingest/event-log-writer.ts'
import { makeOrganization, NOON, openStore, quietLog, Sender, type TestStore } from '../../support/store.ts'
import { until } from '../../support/wait.ts'

/** A log in memory. That of brokers is tested in test/engine/cluster/log/jetstream.full.test.ts. */
class MemoryLog extends EventTarget implements EventLog {
  readonly created = '2026-11-20T12:00:00Z'
  readonly problem = undefined
  readonly messages: LogMessage[] = []
  #isStopped = false

  async append(organizationId: string, bytes: Uint8Array, receivedMs: number): Promise<AppendFailure | undefined> {
    this.messages.push({ kind: 'events', sequence: this.messages.length + 1, bytes, receivedMs, organizationId })
    this.dispatchEvent(new Event('change'))
    return undefined
  }

  appendCounters(): Promise<AppendFailure | undefined> {
    return Promise.resolve('the service is busy')
  }

  async *read(after: LogPosition | undefined): AsyncGenerator<LogMessage> {
    for (let next = after?.sequence ?? 0; !this.#isStopped; ) {
      const message = this.messages[next]
      if (message === undefined) await once(this, 'change')
      else yield message
      if (message !== undefined) next++
    }
  }

  trim(): Promise<void> {
    return Promise.resolve()
  }

  state(): Promise<LogState | undefined> {
    return Promise.resolve(undefined)
  }

  stopReading(): void {
    this.#isStopped = true
    this.dispatchEvent(new Event('change'))
  }
}

function clusterOf(opened: TestStore, bufferedEventsMax?: number) {
  const { store, clock } = opened
  const log = new MemoryLog()
  const writer = new EventLogWriter(log, store, clock, () => false, bufferedEventsMax)
  const stored = new EventTarget()
  const acceptor = new EventAcceptor(store, clock, quietLog, () => stored.dispatchEvent(new Event('stored')))
  const reader = new EventLogReader(log, acceptor, store, quietLog)
  const failures: Error[] = []
  const untilBuffered = async (id: string, events: number): Promise<void> => {
    while (store.buffer.count(id) < events) await once(stored, 'stored')
  }
  const start = (): void => reader.start((error) => failures.push(error))
  return { log, writer, acceptor, reader, failures, untilBuffered, start }
}

t.test('a sender is refused when the buffer is full, and what was appended before is stored', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const { writer, reader, failures, untilBuffered, start } = clusterOf(opened, 2)
  const sender = new Sender()
  const send = () => writer.accept(id, [sender.event('claude.ai', NOON)])
  for (let batch = 0; batch < 3; batch++) t.match(await send(), { kind: 'stored', accepted: 1 })
  start()
  await untilBuffered(id, 3)
  t.match(await send(), { kind: 'retry', why: "the organization's buffer is full" })
  await reader.stop()
  t.equal(reader.sequence, 3)
  t.same(failures, [])
})

t.test('a damaged record ends the reading before its message, and others are stored', async (t) => {
  const opened = openStore(t, { unchecked: true })
  const { environment } = opened.store
  const [acme, other] = [makeOrganization(opened, 'Acme').id, makeOrganization(opened, 'Other').id]
  const sender = new Sender()
  const { writer, reader, failures, untilBuffered, start } = clusterOf(opened)
  const send = (id: string) => writer.accept(id, [sender.event('claude.ai', NOON)])
  await send(acme)
  start()
  await untilBuffered(acme, 1)
  const seen = environment.table('seen')
  const [key] = [...seen.getKeys()]
  environment.write(() => seen.putSync(key as Buffer, Buffer.from('not what was written')))
  await send(acme)
  await send(other)
  await untilBuffered(other, 1)
  await reader.stop()
  t.match(failures, [{ code: 'STORE_DAMAGED', message: new RegExp(acme) }])
  t.equal(reader.sequence, 1)
})

t.test('the position passes no batch whose transaction was aborted', async (t) => {
  const opened = openStore(t, { unchecked: true })
  const { environment, buffer, logPositions } = opened.store
  const [acme, other] = [makeOrganization(opened, 'Acme').id, makeOrganization(opened, 'Other').id]
  const sender = new Sender()
  const { writer, reader, failures, untilBuffered, start } = clusterOf(opened)
  const { acceptor } = clusterOf(opened)
  await acceptor.accept(other, [sender.event('claude.ai', NOON)])
  const seen = environment.table('seen')
  const [key] = [...seen.getKeys()]
  environment.write(() => seen.putSync(key as Buffer, Buffer.from('not what was written')))
  // All three are in one transaction, which the last one aborts.
  for (const id of [acme, acme, other]) await writer.accept(id, [sender.event('claude.ai', NOON)])
  const put = logPositions.put.bind(logPositions)
  const written: { sequence: number; stored: number }[] = []
  logPositions.put = (position) => {
    put(position)
    written.push({ sequence: position.sequence, stored: buffer.count(acme) })
  }
  start()
  await untilBuffered(acme, 2)
  await reader.stop()
  t.match(failures, [{ code: 'STORE_DAMAGED' }])
  const separate = [
    { sequence: 1, stored: 1 },
    { sequence: 2, stored: 2 },
  ]
  t.same(written, [...separate, ...separate], 'in one transaction, and then each in its own')
})

t.test('the reader waits while the brokers are slow', async (t) => {
  const opened = openStore(t)
  const { buffer, environment } = opened.store
  const { id } = makeOrganization(opened, 'Acme')
  const { writer, reader, failures, untilBuffered, start } = clusterOf(opened)
  await writer.accept(id, [new Sender().event('claude.ai', NOON)])
  let asked = 0
  let areSlow = true
  Object.defineProperty(environment.replication, 'areBrokersSlow', { get: () => ++asked > 0 && areSlow })
  start()
  await until('the reader does not ask again', () => asked > 3)
  t.equal(buffer.count(id), 0)
  areSlow = false
  await untilBuffered(id, 1)
  await reader.stop()
  t.same(failures, [])
})
