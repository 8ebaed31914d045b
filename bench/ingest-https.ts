import { fork } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BATCH_EVENTS_MAX } from '../engine/limits.ts'
import { type Contender, type Figure, inDirectory, inTurn, messageOf, perSecond, type Size, same } from './harness.ts'
import type { Sending, Sent } from './ingest-sender.ts'
import type { ServiceUnderLoad } from './ingest-service.ts'
import { openSqlite } from './peers/sqlite.ts'
import { ScanEvents } from './workload/scan-events.ts'

/**
 * Events per second from HTTPS ingest to the durable buffer: the listener with the acceptor in one
 * process, senders in another. For comparison, SQLite writes the same events within this process,
 * without network, checks or matching.
 */
const AIM = 1_000_000
const CONNECTIONS = 4
const SERVICE = fileURLToPath(new URL('./ingest-service.js', import.meta.url))
const SENDER = fileURLToPath(new URL('./ingest-sender.js', import.meta.url))

export async function run(size: Size): Promise<Figure[]> {
  const [batchesEach, eventsEach] = size === 'toy' ? [2, 500] : [50, BATCH_EVENTS_MAX]
  const events = CONNECTIONS * batchesEach * eventsEach
  return inDirectory(async (directory) => {
    const service = fork(SERVICE, [join(directory, 'service'), String(CONNECTIONS)])
    const sender = fork(SENDER)
    const children = [service, sender]
    try {
      const { port, certificateFile, tokens } = await messageOf<ServiceUnderLoad>(service)
      const sending: Sending = { port, certificateFile, tokens, batchesEach, eventsEach }
      const ours = {
        name: 'ours',
        run: async () => {
          sender.send(sending)
          const { seconds, accepted } = await messageOf<Sent>(sender)
          service.send('empty')
          same('the buffers', [await messageOf<number>(service), accepted], [events, events])
          return events / seconds
        },
      }
      const peer = await sqliteTable(join(directory, 'sqlite'), events, eventsEach, size)
      const figure = await inTurn({ full: 5, short: 1, toy: 1 }[size], peer === undefined ? [ours] : [ours, peer])
      return [{ what: 'HTTPS batches', unit: 'events/s', ...figure, aim: { atLeast: AIM } }]
    } finally {
      for (const child of children) child.disconnect()
      await Promise.all(children.map((child) => new Promise((resolve) => child.once('exit', resolve))))
    }
  })
}

const MADE_EVENTS = 50_000

/** The same events, decoded, as rows. The ID is the primary key, so that no event counts twice. */
async function sqliteTable(file: string, events: number, each: number, size: Size): Promise<Contender | undefined> {
  const opened = await openSqlite(file, { install: size !== 'toy' })
  if (opened === undefined) return undefined
  const { sqlite, name } = opened
  sqlite.exec(
    'CREATE TABLE event (instance BLOB, sequence INTEGER, name TEXT, client TEXT, method INTEGER, first INTEGER, last INTEGER, count INTEGER, PRIMARY KEY (instance, sequence)) WITHOUT ROWID',
  )
  const insert = sqlite.prepare('INSERT OR IGNORE INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?)')
  const instance = Buffer.alloc(8, 0xaa)
  const work = new ScanEvents(Date.now())
  const made = Array.from({ length: MADE_EVENTS }, (_, index) => work.event(0, index))
  return {
    name,
    run() {
      const start = performance.now()
      for (let from = 0; from < events; from += each) {
        sqlite.exec('BEGIN')
        for (let at = from; at < from + each; at++) {
          const { name, client, firstSeenMs, lastSeenMs, count } = made[at % MADE_EVENTS] as (typeof made)[number]
          insert.run(instance, at, name, client, 0, firstSeenMs, lastSeenMs, count)
        }
        sqlite.exec('COMMIT')
      }
      const rate = perSecond(events, start)
      sqlite.exec('DELETE FROM event')
      return rate
    },
  }
}
