import type { QueueTable } from '../../engine/lmdb/queue.ts'

/** Where an outbox stands: an LMDB environment, or memory. */
export interface OutboxStore {
  table(name: string): QueueTable
  /** One atomic transaction, durable when it returns. */
  write<T>(work: () => T): T
  /** The same for one that only takes away, and may so when space is short. */
  shrink<T>(work: () => T): T
  close(): Promise<void>
}
