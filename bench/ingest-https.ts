import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packEvent } from '../engine/event/event.ts'
import { BATCH_EVENTS_MAX } from '../engine/limits.ts'
import { Environment } from '../engine/lmdb/environment.ts'
import { CHUNK_ENTRIES_MAX } from '../engine/lmdb/queue-chunk.ts'
import { median, print, shown } from './compare.ts'
import type { Sending, Sent } from './ingest-sender.ts'
import type { Emptied, ServiceUnderLoad } from './ingest-service.ts'
import { openSqlite } from './peers/sqlite.ts'
import { numberedEvent } from './workload/event-batches.ts'

/**
 * Events per second from HTTPS ingest to the durable buffer: the listener with the acceptor in
 * one process, senders in another. For comparison, stores that write the same events within this
 * process, without network, checks or matching.
 */
const IN_AIM = 1_000_000
const CONNECTIONS = 4

interface Sizes {
  readonly rounds: number
  readonly batchesEach: number
  readonly eventsEach: number
}

export async function httpsBatches({ toy }: { toy: boolean }): Promise<void> {
  const sizes: Sizes = toy
    ? { rounds: 1, batchesEach: 2, eventsEach: 500 }
    : { rounds: 5, batchesEach: 50, eventsEach: BATCH_EVENTS_MAX }
  const directory = mkdtempSync(join(tmpdir(), 'posture-bench-'))
  const children: ChildProcess[] = []
  try {
    const service = startChild(SERVICE, join(directory, 'service'), String(CONNECTIONS))
    const sender = startChild(SENDER)
    children.push(service, sender)
    await measure(service, sender, directory, sizes, toy)
  } finally {
    for (const child of children) child.disconnect()
    await Promise.all(children.map((child) => new Promise((resolve) => child.once('exit', resolve))))
    rmSync(directory, { recursive: true })
  }
}

async function measure(
  service: ChildProcess,
  sender: ChildProcess,
  directory: string,
  { rounds, batchesEach, eventsEach }: Sizes,
  toy: boolean,
): Promise<void> {
  const { httpsPort, httpPort, certificateFile, tokens } = await answerOf<ServiceUnderLoad>(service)
  const events = CONNECTIONS * batchesEach * eventsEach
  const batch = { tokens, batchesEach, eventsEach }
  const transports = [
    { name: 'HTTPS', sending: { ...batch, port: httpsPort, certificateFile } satisfies Sending },
    { name: 'plain HTTP', sending: { ...batch, port: httpPort } satisfies Sending },
  ]
  const stores = [lmdbChunks(join(directory, 'raw')), await sqliteTable(join(directory, 'sqlite'), toy)].filter(
    (store) => store !== undefined,
  )
  const transportRates = transports.map(() => [] as number[])
  const storeRates = stores.map(() => [] as number[])
  const cpuOfTransports = transports.map(() => [] as number[])
  let cpuSeconds = 0
  let residentMegabytes = 0
  for (let round = 0; round < rounds; round++) {
    for (const [index, { sending }] of transports.entries()) {
      sender.send(sending)
      const { seconds, accepted } = await answerOf<Sent>(sender)
      service.send('empty')
      const emptied = await answerOf<Emptied>(service)
      if (accepted !== events || emptied.buffered !== events)
        throw new Error(`${events} events were sent, ${accepted} accepted, ${emptied.buffered} in the buffers`)
      transportRates[index]?.push(events / seconds)
      cpuOfTransports[index]?.push((emptied.cpuSeconds - cpuSeconds) / (events / 1e6))
      cpuSeconds = emptied.cpuSeconds
      residentMegabytes = Math.max(residentMegabytes, emptied.residentMegabytes)
    }
    for (const [index, store] of stores.entries()) {
      const start = performance.now()
      for (let from = 0; from < events; from += eventsEach) store.write(round * events + from, eventsEach)
      storeRates[index]?.push(events / ((performance.now() - start) / 1000))
      store.empty(events)
    }
  }
  for (const store of stores) await store.close()
  print(
    `HTTPS ingest: ${events} events a round, ${eventsEach} a batch in msgpack, ${CONNECTIONS} kept connections, each batch answered when it is on disk; medians of ${rounds} rounds; the service's peak ${residentMegabytes} MB`,
  )
  for (const [index, { name }] of transports.entries()) {
    const ours = median(transportRates[index] ?? [])
    const cpu = median(cpuOfTransports[index] ?? [])
    const aim = name === 'HTTPS' ? `; aim ${shown(IN_AIM)} ${ours >= IN_AIM ? 'reached' : 'not reached'}` : ''
    print(`${name}  ${shown(ours)} events/s, ${cpu.toFixed(2)} us CPU of the service an event${aim}`)
    for (const [at, store] of stores.entries()) {
      const peer = median(storeRates[at] ?? [])
      print(`  ${(ours / peer).toFixed(2)}x of ${store.name}  (${shown(peer)} events/s)`)
    }
  }
}

/** The programs of the child processes. */
const SERVICE = new URL('./ingest-service.js', import.meta.url)
const SENDER = new URL('./ingest-sender.js', import.meta.url)

function startChild(file: URL, ...parameters: string[]): ChildProcess {
  return fork(fileURLToPath(file), parameters)
}

function answerOf<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void => reject(new Error(`a process of the benchmark ended with ${code}`))
    child.once('exit', ended)
    child.once('message', (message) => {
      child.off('exit', ended)
      resolve(message as T)
    })
  })
}

interface StoreContender {
  readonly name: string
  /** Durable when it returns. */
  write(from: number, count: number): void
  empty(events: number): void
  close(): Promise<void> | void
}

const INSTANCE = '00112233445566aa'
const MADE_EVENTS = 50_000
const FIRST_SEEN_MS = Date.now() - 60_000
/** Created before the clock runs. */
const EVENTS = Array.from({ length: MADE_EVENTS }, (_, index) => numberedEvent(INSTANCE, index + 1, FIRST_SEEN_MS))

/** LMDB alone: prepared chunks of bytes, stored under the number of their first event. */
function lmdbChunks(directory: string): StoreContender {
  const environment = new Environment(directory, { setting: 'bench', schemaVersion: 1, freeBytesMin: 0 })
  const table = environment.table('buffer')
  const chunks: Buffer[] = []
  for (let from = 0; from < MADE_EVENTS; from += CHUNK_ENTRIES_MAX) {
    chunks.push(Buffer.concat(EVENTS.slice(from, from + CHUNK_ENTRIES_MAX).map(packEvent)))
  }
  const key = Buffer.alloc(8)
  return {
    name: `a raw lmdb loop, ready chunks of ${CHUNK_ENTRIES_MAX} events`,
    write(from, count) {
      environment.write(() => {
        for (let at = from; at < from + count; at += CHUNK_ENTRIES_MAX) {
          key.writeBigUInt64BE(BigInt(at))
          table.putSync(key, chunks[Math.floor(at / CHUNK_ENTRIES_MAX) % chunks.length] as Buffer)
        }
      })
    },
    empty() {
      environment.write(() => {
        for (const key of [...table.getKeys()]) table.removeSync(key)
      })
    },
    close: () => environment.close(),
  }
}

/** The same events, decoded, as rows. The ID is the primary key, so that no event counts twice. */
async function sqliteTable(file: string, toy: boolean): Promise<StoreContender | undefined> {
  const opened = await openSqlite(file, { install: !toy })
  if (opened === undefined) return undefined
  const { sqlite, name } = opened
  sqlite.exec(
    'CREATE TABLE event (instance BLOB, sequence INTEGER, name TEXT, client TEXT, method INTEGER, first INTEGER, last INTEGER, count INTEGER, PRIMARY KEY (instance, sequence)) WITHOUT ROWID',
  )
  const insert = sqlite.prepare('INSERT OR IGNORE INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?)')
  const instance = Buffer.from(INSTANCE, 'hex')
  return {
    name,
    write(from, count) {
      sqlite.exec('BEGIN')
      for (let at = from; at < from + count; at++) {
        const event = EVENTS[at % MADE_EVENTS]
        if (event === undefined) continue
        const { name, client, firstSeenMs, lastSeenMs } = event
        insert.run(instance, at, name, client, 0, firstSeenMs, lastSeenMs, event.count)
      }
      sqlite.exec('COMMIT')
    },
    empty: () => sqlite.exec('DELETE FROM event'),
    close: () => sqlite.close(),
  }
}
