import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { AGGREGATE_WRITE_EVENTS, FORWARD_EVENTS_MAX } from '../collector/limits.ts'
import { Outbox } from '../collector/outbox/outbox.ts'
import { type NewEvent, packWaiting } from '../collector/outbox/waiting-event.ts'
import { type Figure, inDirectory, perSecond, type Size, same, valuesInTurn } from './harness.ts'
import { openSqlite } from './peers/sqlite.ts'

/**
 * How fast events become durable and leave again. Both contenders write transactions of the
 * collector's maximum size, each flushed to disk, and remove batches like the forwarder. Ours
 * encodes events to records and decodes them; the peer stores prepared bytes.
 */
interface Queue {
  readonly name: string
  /** Durable when it returns. */
  write(from: number, count: number): void
  /** Reads the oldest events, then removes them. Returns the sum of their times. */
  take(count: number): number
  close(): Promise<void> | void
}

const AIM = 500_000

export async function run(size: Size): Promise<Figure[]> {
  const [events, rounds] = size === 'toy' ? [2_000, 1] : [500_000, 5]
  return inDirectory(async (directory) => {
    const found = [outbox(join(directory, 'ours')), await sqliteQueue(join(directory, 'sqlite'), size)]
    const queues = found.filter((queue) => queue !== undefined)
    const contenders = queues.map((queue) => ({ name: queue.name, run: () => rates(queue, events) }))
    const medians = await valuesInTurn(rounds, contenders)
    for (const queue of queues) await queue.close()
    return medians.map((figure, index) => ({
      what: `durable events ${index === 0 ? 'in' : 'out'}`,
      unit: 'events/s',
      ...figure,
      aim: { atLeast: AIM },
    }))
  })
}

function rates(queue: Queue, events: number): [number, number] {
  const start = performance.now()
  for (let from = 0; from < events; from += AGGREGATE_WRITE_EVENTS) {
    queue.write(from, Math.min(AGGREGATE_WRITE_EVENTS, events - from))
  }
  const into = perSecond(events, start)
  const written = performance.now()
  let times = 0
  for (let left = events; left > 0; left -= FORWARD_EVENTS_MAX) times += queue.take(Math.min(left, FORWARD_EVENTS_MAX))
  const out = perSecond(events, written)
  same(queue.name, times, (events * (events - 1)) / 2)
  return [into, out]
}

function outbox(directory: string): Queue {
  const unlimited = { bytesMax: Number.POSITIVE_INFINITY, ageMsMax: Number.POSITIVE_INFINITY }
  const store = new Outbox(directory, unlimited)
  return {
    name: 'ours',
    write(from, count) {
      store.write({ added: Array.from({ length: count }, (_, index) => eventOf(from + index)) })
    },
    take(count) {
      const peeked = store.peek(count, Number.POSITIVE_INFINITY)
      if (peeked?.events.length !== count) throw new Error(`ours: ${peeked?.events.length} events, expected ${count}`)
      store.acknowledge(peeked.lastSequence)
      return peeked.events.reduce((sum, { firstSeenMs }) => sum + firstSeenMs - BASE_MS, 0)
    },
    close: () => store.close(),
  }
}

/** A queue in an SQLite table, with the same durability (sqlite.ts). Undefined without SQLite. */
async function sqliteQueue(directory: string, size: Size): Promise<Queue | undefined> {
  mkdirSync(directory)
  const opened = await openSqlite(join(directory, 'queue.sqlite'), { install: size !== 'toy' })
  if (opened === undefined) return undefined
  const { sqlite, name } = opened
  sqlite.exec('CREATE TABLE queue (sequence INTEGER PRIMARY KEY, entry BLOB NOT NULL)')
  const insert = sqlite.prepare('INSERT INTO queue (entry) VALUES (?)')
  const oldest = sqlite.prepare('SELECT sequence, entry FROM queue ORDER BY sequence LIMIT ?')
  const remove = sqlite.prepare('DELETE FROM queue WHERE sequence <= ?')
  return {
    name,
    write(from, count) {
      sqlite.exec('BEGIN')
      for (let at = from; at < from + count; at++) insert.run(entryOf(at))
      sqlite.exec('COMMIT')
    },
    take(count) {
      const rows = oldest.all(count) as { sequence: number; entry: Uint8Array }[]
      remove.run(rows.at(-1)?.sequence ?? 0)
      return rows.reduce((sum, { entry: { buffer, byteOffset, byteLength } }) => {
        return sum + Buffer.from(buffer, byteOffset, byteLength).readDoubleLE(FIRST_SEEN_OFFSET) - BASE_MS
      }, 0)
    },
    close: () => sqlite.close(),
  }
}

/** Time of the first event, in milliseconds since 1970. */
const BASE_MS = 1_780_000_000_000
const NAMES = Array.from({ length: 1000 }, (_, index) => `h${String(index).padStart(3, '0')}.api.claude.ai`)
const CLIENTS = Array.from(
  { length: 5000 },
  (_, at) => `10.${100 + (at % 100)}.${100 + (at % 150)}.${100 + (at % 149)}`,
)

function eventOf(number: number): NewEvent {
  const firstSeenMs = BASE_MS + number
  const [name = '', client = ''] = [NAMES[number % NAMES.length], CLIENTS[number % CLIENTS.length]]
  return { name, client, method: 'dns', firstSeenMs, lastSeenMs: firstSeenMs + 7, count: 3 }
}

/** Created before the clock runs. */
const ENTRIES = Array.from({ length: NAMES.length * 5 }, (_, index) => Buffer.from(packWaiting([eventOf(index)]).bytes))
/** From collector/outbox/waiting-event.ts. */
const FIRST_SEEN_OFFSET = 5

function entryOf(number: number): Buffer {
  const entry = ENTRIES[number % ENTRIES.length] as Buffer
  entry.writeDoubleLE(BASE_MS + number, FIRST_SEEN_OFFSET)
  return entry
}
