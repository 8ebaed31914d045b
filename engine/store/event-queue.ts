import type { Environment, Table } from '../kernel/lmdb/environment.ts'
import { type ChunkView, DurableQueue, type QueueEntry, readIntact } from '../kernel/lmdb/queue.ts'
import type { Slices } from '../kernel/lmdb/queue-chunk.ts'
import { uuidBytes } from './keys.ts'

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
