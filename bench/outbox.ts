import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { AGGREGATE_WRITE_EVENTS, FORWARD_EVENTS_MAX } from '../collector/limits.ts'
import { Outbox } from '../collector/outbox/outbox.ts'
import { type NewEvent, packWaiting } from '../collector/outbox/waiting-event.ts'
import { Environment, type Table } from '../engine/lmdb/environment.ts'
import { CHUNK_ENTRIES_MAX } from '../engine/lmdb/queue-chunk.ts'
import { aimText, median, print, ratio, shown } from './compare.ts'
import { megabytes, memoryBytes } from './machine.ts'
import { sqliteQueue } from './peers/outbox-sqlite.ts'

/**
 * How fast events become durable and leave again. All contenders write transactions of the
 * collector's maximum size, each flushed to disk, and remove batches like the forwarder. Ours
 * encodes events to records and decodes them. The others store prepared bytes of the same size and
 * return bytes.
 */
interface Contender {
  readonly name: string
  /** Durable when it returns. */
  write(from: number, count: number): void
  /** Reads the oldest events, then removes them. Returns their number and a checksum. */
  take(countMax: number): { readonly count: number; readonly checksum: number }
  close(): Promise<void> | void
}

const IN_AIM = 500_000
const OF_RAW_AIM = 0.7
const UNLIMITED = { bytesMax: Number.POSITIVE_INFINITY, ageMsMax: Number.POSITIVE_INFINITY }

export async function run({ toy }: { toy: boolean }): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'posture-bench-'))
  try {
    await compareStores(directory, toy ? 2_000 : 500_000, toy ? 1 : 5, toy)
    await fill(join(directory, 'full'), toy ? 5_000 : 10_000_000)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

async function compareStores(directory: string, events: number, rounds: number, toy: boolean): Promise<void> {
  const sqlite = await sqliteQueue(join(directory, 'sqlite'), { entryOf, firstSeenOf }, { install: !toy })
  const contenders: Contender[] = [
    outbox(join(directory, 'ours')),
    rawLmdb(join(directory, 'raw'), 1),
    rawLmdb(join(directory, 'raw-chunks'), CHUNK_ENTRIES_MAX),
    ...(sqlite === undefined ? [] : [sqlite]),
  ]
  const rates = contenders.map(() => ({ in: [] as number[], out: [] as number[] }))
  for (let round = 0; round < rounds; round++) {
    const checksums = contenders.map((contender, index) => {
      const start = performance.now()
      for (let from = 0; from < events; from += AGGREGATE_WRITE_EVENTS) {
        contender.write(from, Math.min(AGGREGATE_WRITE_EVENTS, events - from))
      }
      const written = performance.now()
      let left = events
      let checksum = 0
      while (left > 0) {
        const taken = contender.take(Math.min(left, FORWARD_EVENTS_MAX))
        if (taken.count === 0) throw new Error(`${contender.name}: ${left} events are missing`)
        left -= taken.count
        checksum += taken.checksum
      }
      const ended = performance.now()
      rates[index]?.in.push(events / ((written - start) / 1000))
      rates[index]?.out.push(events / ((ended - written) / 1000))
      return checksum
    })
    contenders.forEach(({ name }, index) => {
      if (checksums[index] !== checksums[0])
        throw new Error(`${name} answers ${checksums[index]}, ours ${checksums[0]}`)
    })
  }
  for (const contender of contenders) await contender.close()
  const [ours, ...peers] = rates.map(({ in: ins, out }) => ({ in: median(ins), out: median(out) }))
  if (ours === undefined) return
  const entryBytes = entryOf(events - 1).length
  print(
    `${events} events of ${entryBytes} bytes, ${AGGREGATE_WRITE_EVENTS} a transaction in, ${FORWARD_EVENTS_MAX} out, each flushed; medians of ${rounds} rounds`,
  )
  print(
    `ours  in ${shown(ours.in)}, out ${shown(ours.out)} events/s; aim ${shown(IN_AIM)} ${aimText(Math.min(ours.in, ours.out) >= IN_AIM)}`,
  )
  peers.forEach((peer, index) => {
    const inRatio = ours.in / peer.in
    const outRatio = ours.out / peer.out
    const aim = index === 0 ? `, aim ${OF_RAW_AIM} ${aimText(Math.min(inRatio, outRatio) >= OF_RAW_AIM)}` : ''
    print(
      `  ${ratio(inRatio)} in, ${ratio(outRatio)} out of ${contenders[index + 1]?.name}  (${shown(peer.in)}, ${shown(peer.out)} events/s)${aim}`,
    )
  })
}

/**
 * Memory growth with waiting events. The kernel can reclaim mapped pages of the file, so only the
 * rest counts.
 */
async function fill(directory: string, events: number): Promise<void> {
  const outbox = new Outbox(directory, UNLIMITED)
  const anonymous: number[] = []
  const steps = 10
  const start = performance.now()
  for (let step = 0; step < steps; step++) {
    for (let from = 0; from < events / steps; from += AGGREGATE_WRITE_EVENTS) {
      const count = Math.min(AGGREGATE_WRITE_EVENTS, events / steps - from)
      outbox.write({ added: eventsFrom(from, count) })
    }
    collectGarbage()
    anonymous.push(megabytes(memoryBytes('self', 'RssAnon')))
  }
  const seconds = (performance.now() - start) / 1000
  const [first = 0] = anonymous
  const last = anonymous.at(-1) ?? 0
  print(
    `${events} waiting: ${shown(events / seconds)} events/s in, anonymous memory ${first} MB with a tenth of them, ${last} MB with all, aim the same ${aimText(last <= first * 1.1 + 5)}; ${Math.round(outbox.footprintBytes / 1e6)} MB on disk, ${Math.round(outbox.footprintBytes / events)} bytes an event`,
  )
  await outbox.close()
}

function outbox(directory: string): Contender {
  const store = new Outbox(directory, UNLIMITED)
  return {
    name: 'ours',
    write(from, count) {
      store.write({ added: eventsFrom(from, count) })
    },
    take(countMax) {
      const peeked = store.peek(countMax, Number.POSITIVE_INFINITY)
      if (peeked === undefined) return { count: 0, checksum: 0 }
      let checksum = 0
      for (const event of peeked.events) checksum += event.firstSeenMs - BASE_MS
      store.acknowledge(peeked.lastSequence)
      return { count: peeked.events.length, checksum }
    },
    close: () => store.close(),
  }
}

/** LMDB alone: a record per `perRecord` events, with their bytes, under the number of the first. */
function rawLmdb(directory: string, perRecord: number): Contender {
  const environment = new Environment(directory, { setting: 'bench', schemaVersion: 1, freeBytesMin: 0 })
  const table: Table = environment.table('queue')
  const key = Buffer.alloc(8)
  return {
    name: `a raw lmdb ${lmdbVersion()} loop, ${perRecord === 1 ? 'a record an event' : `${perRecord} events a record`}`,
    write(from, count) {
      environment.write(() => {
        for (let at = from; at < from + count; at += perRecord) {
          key.writeBigUInt64BE(BigInt(at))
          const entries = Array.from({ length: Math.min(perRecord, from + count - at) }, (_, index) =>
            entryOf(at + index),
          )
          table.putSync(key, perRecord === 1 ? (entries[0] as Buffer) : Buffer.concat(entries))
        }
      })
    },
    take(countMax) {
      const keys: Buffer[] = []
      let count = 0
      let checksum = 0
      for (const record of table.getRange({ limit: Math.ceil(countMax / perRecord) })) {
        for (let at = 0; at < record.value.length; at += ENTRY_BYTES) {
          count++
          checksum += firstSeenOf(record.value, at)
        }
        keys.push(record.key)
      }
      environment.write(() => {
        for (const each of keys) table.removeSync(each)
      })
      return { count, checksum }
    },
    close: () => environment.close(),
  }
}

/** Time of the first event, in milliseconds since 1970. */
const BASE_MS = 1_780_000_000_000
const NAMES = Array.from({ length: 1000 }, (_, index) => `h${String(index).padStart(3, '0')}.api.claude.ai`)
const CLIENTS = Array.from(
  { length: 5000 },
  (_, index) => `10.${100 + (index % 100)}.${100 + (index % 150)}.${100 + (index % 149)}`,
)

function eventsFrom(from: number, count: number): NewEvent[] {
  return Array.from({ length: count }, (_, index) => eventOf(from + index))
}

function eventOf(number: number): NewEvent {
  return {
    name: NAMES[number % NAMES.length] as string,
    client: CLIENTS[number % CLIENTS.length] as string,
    method: 'dns',
    firstSeenMs: BASE_MS + number,
    lastSeenMs: BASE_MS + number + 7,
    count: 3,
  }
}

/** Created before the clock runs. All have the same length. */
const ENTRIES = Array.from({ length: NAMES.length * 5 }, (_, index) => Buffer.from(packWaiting([eventOf(index)]).bytes))
const ENTRY_BYTES = (ENTRIES[0] as Buffer).length
/** From collector/outbox/waiting-event.ts. */
const FIRST_SEEN_OFFSET = 5

function entryOf(number: number): Buffer {
  const entry = ENTRIES[number % ENTRIES.length] as Buffer
  entry.writeDoubleLE(BASE_MS + number, FIRST_SEEN_OFFSET)
  return entry
}

function firstSeenOf(bytes: Buffer, at: number): number {
  return bytes.readDoubleLE(at + FIRST_SEEN_OFFSET) - BASE_MS
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
}

/** Its package.json is not among its exports. */
function lmdbVersion(): string {
  const file = join(dirname(createRequire(import.meta.url).resolve('lmdb')), '../package.json')
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
