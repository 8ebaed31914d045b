import type { Environment, Table } from '../lmdb/environment.ts'
import { type ChunkView, DurableQueue, type QueueEntry, readIntact } from '../lmdb/queue.ts'
import type { Slices } from '../lmdb/queue-chunk.ts'
import { uuidBytes } from './keys.ts'

/**
 * Events whose name no platform of the organization's registry had when a scan read them, oldest
 * first. They wait until a changed registry has the name, or until they leave the evidence window.
 * The queue is like the buffer's.
 */
export class UnmatchedEvents {
  readonly #table: Table

  constructor(environment: Environment) {
    this.#table = environment.table('unmatched-events')
  }

  /** How many events wait. */
  count(organizationId: string): number {
    return this.#queue(organizationId).length
  }

  /** All waiting events in chunks, each event as packEvent wrote it. See DurableQueue.chunks. */
  chunks(organizationId: string): Generator<ChunkView> {
    return this.#queue(organizationId).chunks()
  }

  /** The sequence of the next event. */
  next(organizationId: string): number {
    return this.#queue(organizationId).nextSequence
  }

  /**
   * Appends events, and removes the oldest beyond `countMax`. Inside a transaction of the caller.
   */
  append(organizationId: string, events: Slices, countMax: number): void {
    const queue = this.#queue(organizationId)
    queue.append(events)
    const excess = queue.length - countMax
    if (excess > 0) queue.removeThrough(queue.firstSequence + excess - 1)
  }

  /** Removes all events. Inside a transaction of the caller. */
  clear(organizationId: string): void {
    const queue = this.#queue(organizationId)
    queue.removeThrough(queue.nextSequence - 1)
  }

  /** The sequence of the oldest event. */
  first(organizationId: string): number {
    return this.#queue(organizationId).firstSequence
  }

  /** Up to `countMax` packed events from `sequence` on, without damaged ones. */
  packed(organizationId: string, sequence: number, countMax: number): QueueEntry[] {
    return readIntact(this.#queue(organizationId), sequence, countMax)
  }

  /** Replaces the events with these sequences, ascending. Requires a write transaction. */
  replace(organizationId: string, sequences: readonly number[], events: Slices): void {
    this.#queue(organizationId).replace(sequences, events)
  }

  #queue(organizationId: string): DurableQueue {
    return new DurableQueue(this.#table, uuidBytes(organizationId))
  }
}
