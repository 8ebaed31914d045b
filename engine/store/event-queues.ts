import { type Event, packEvent, unpackEvent } from '../kernel/event/event.ts'
import type { Environment, Table } from '../kernel/lmdb/environment.ts'
import { type ChunkView, DurableQueue, type QueueEntry, readIntact } from '../kernel/lmdb/queue.ts'
import { type Slices, slicesOf } from '../kernel/lmdb/queue-chunk.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { uuidBytes } from './keys.ts'
import type { Places } from './seen-events.ts'

/** One durable queue of packed events for each organization, oldest first. */
export class EventQueue {
  readonly #table: Table

  constructor(environment: Environment, table: string) {
    this.#table = environment.table(table)
  }

  /** Number of stored events. */
  count(organizationId: string): number {
    return this.queue(organizationId).length
  }

  /** All stored events in chunks, each event as packEvent wrote it. See DurableQueue.chunks. */
  chunks(organizationId: string): Generator<ChunkView> {
    return this.queue(organizationId).chunks()
  }

  /** The sequence of the oldest event. */
  first(organizationId: string): number {
    return this.queue(organizationId).firstSequence
  }

  /** The sequence of the next event. */
  next(organizationId: string): number {
    return this.queue(organizationId).nextSequence
  }

  /** Up to `countMax` packed events from `sequence` on, without damaged ones. */
  packed(organizationId: string, sequence: number, countMax: number): QueueEntry[] {
    return readIntact(this.queue(organizationId), sequence, countMax)
  }

  /** Replaces the events with these sequences, ascending. */
  replace(organizationId: string, sequences: readonly number[], events: Slices): void {
    this.queue(organizationId).replace(sequences, events)
  }

  /** Removes the events up to `sequence`. */
  removeThrough(organizationId: string, sequence: number): void {
    this.queue(organizationId).removeThrough(sequence)
  }

  protected queue(organizationId: string): DurableQueue {
    return new DurableQueue(this.#table, uuidBytes(organizationId))
  }
}

export interface BufferedEvent {
  readonly sequence: number
  readonly event: Event
}

/**
 * The admitted events of each organization, in order of arrival, until a scan adds them to the
 * evidence.
 */
export class EventBuffer extends EventQueue {
  constructor(environment: Environment) {
    super(environment, 'buffer')
  }

  append(organizationId: string, events: readonly Event[]): void {
    this.queue(organizationId).append(slicesOf(events.map(packEvent)))
  }

  /** Appends the packed events at the given places, ascending. Returns their number. */
  appendPacked(organizationId: string, events: Slices, places: readonly Places[]): number {
    const kept = keptOf(events, places)
    this.queue(organizationId).append(kept)
    return kept.count
  }

  /**
   * When the oldest buffered events were stored, in milliseconds since 1970. 0: the buffer is
   * empty, or these events are damaged.
   */
  oldestMs(organizationId: string): number {
    return this.queue(organizationId).oldestChunk?.writtenMs ?? 0
  }

  /** Reads up to `countMax` events from `sequence` on (0: from the oldest). */
  read(organizationId: string, sequence: number, countMax: number): BufferedEvent[] {
    return this.queue(organizationId)
      .read(sequence, countMax)
      .map((entry) => ({ sequence: entry.sequence, event: opened(entry.bytes) }))
  }
}

/**
 * Events whose name no platform of the organization's registry had when a scan read them. They wait
 * until a changed registry has the name, or until they leave the evidence window.
 */
export class UnmatchedEvents extends EventQueue {
  constructor(environment: Environment) {
    super(environment, 'unmatched-events')
  }

  /** Appends events, and removes the oldest beyond `countMax`. */
  append(organizationId: string, events: Slices, countMax: number): void {
    const queue = this.queue(organizationId)
    queue.append(events)
    const excess = queue.length - countMax
    if (excess > 0) queue.removeThrough(queue.firstSequence + excess - 1)
  }

  /** Removes all events. */
  clear(organizationId: string): void {
    this.removeThrough(organizationId, this.next(organizationId) - 1)
  }
}

function opened(bytes: Uint8Array): Event {
  const event = unpackEvent(bytes, true)
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
