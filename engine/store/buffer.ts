import { type Event, packEvent, unpackEvent } from '../event/event.ts'
import type { Environment, Table } from '../lmdb/environment.ts'
import { type ChunkView, DurableQueue } from '../lmdb/queue.ts'
import { type Slices, slicesOf } from '../lmdb/queue-chunk.ts'
import { Fault } from '../process/error-codes.ts'
import { uuidBytes } from './keys.ts'
import type { Places } from './seen-events.ts'

export interface BufferedEvent {
  readonly sequence: number
  readonly event: Event
}

/** The admitted events of each organization, in the order of their arrival, until a scan has folded them. */
export class EventBuffer {
  readonly #table: Table

  constructor(environment: Environment) {
    this.#table = environment.table('buffer')
  }

  /** Inside a transaction of the caller. */
  append(organizationId: string, events: readonly Event[]): void {
    this.#queue(organizationId).append(slicesOf(events.map(packEvent)))
  }

  /** The same of events that are packed already: those at the given places, ascending. Answers how many they are. */
  appendPacked(organizationId: string, events: Slices, places: readonly Places[]): number {
    const kept = keptOf(events, places)
    this.#queue(organizationId).append(kept)
    return kept.count
  }

  /** How many events wait. */
  count(organizationId: string): number {
    return this.#queue(organizationId).length
  }

  /** When the oldest waiting events were stored, in milliseconds since 1970. 0: none is waiting, or they are damaged. */
  oldestMs(organizationId: string): number {
    return this.#queue(organizationId).oldestChunk?.writtenMs ?? 0
  }

  /** The sequence that the next event will get. */
  next(organizationId: string): number {
    return this.#queue(organizationId).nextSequence
  }

  /** Up to `countMax` events from `sequence` on (0: the oldest). */
  read(organizationId: string, sequence: number, countMax: number): BufferedEvent[] {
    return this.#queue(organizationId)
      .read(sequence, countMax)
      .map((entry) => ({ sequence: entry.sequence, event: opened(entry.bytes) }))
  }

  /** Those that wait now, in chunks, each event as packEvent wrote it; see DurableQueue.chunks. */
  chunks(organizationId: string): Generator<ChunkView> {
    return this.#queue(organizationId).chunks()
  }

  /** Inside a transaction of the caller. */
  removeThrough(organizationId: string, sequence: number): void {
    this.#queue(organizationId).removeThrough(sequence)
  }

  #queue(organizationId: string): DurableQueue {
    return new DurableQueue(this.#table, uuidBytes(organizationId))
  }
}

function opened(bytes: Uint8Array): Event {
  const event = unpackEvent(bytes)
  if (typeof event === 'string') throw new Fault('STORE_DAMAGED', `buffered event: ${event}`)
  return event
}

function keptOf(events: Slices, places: readonly Places[]): Slices {
  const count = places.reduce((sum, { from, to }) => sum + to - from, 0)
  if (count === events.count) return events
  const starts = new Uint32Array(count)
  const ends = new Uint32Array(count)
  let at = 0
  for (const { from, to } of places) {
    starts.set(events.starts.subarray(from, to), at)
    ends.set(events.ends.subarray(from, to), at)
    at += to - from
  }
  return { bytes: events.bytes, starts, ends, count }
}
