import type { QueueTable } from '../../engine/lmdb/queue.ts'

/** Storage of an outbox: an LMDB environment, or memory. */
export interface OutboxStore {
  table(name: string): QueueTable
  /** Runs one atomic transaction, durable when it returns. */
  write<T>(work: () => T): T
  /** The same for a transaction that only removes, which is allowed even when space is short. */
  shrink<T>(work: () => T): T
  close(): Promise<void>
}
