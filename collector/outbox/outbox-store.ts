import type { QueueTable } from '../../engine/kernel/lmdb/queue.ts'
import { DirectoryLock, type Run } from '../../engine/kernel/process/directory-lock.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { systemErrorText } from '../../engine/kernel/process/failure.ts'

/** Instead of a directory: keep events in memory and lose them when the process ends. */
export const OUTBOX_IN_MEMORY = 'memory'

/** Limits of the waiting events. At either limit, the oldest events are dropped first. */
export interface OutboxLimits {
  /** Size of the pages that the queue uses. */
  readonly bytesMax: number
  /** Age since an event was written. */
  readonly ageMsMax: number
}

/** The last good release of the registry, next to the outbox, and the same while it is written. */
export const REGISTRY_FILE = 'registry.json'
export const REGISTRY_PART = 'registry.json.part'

/** Storage of an outbox: an LMDB environment, or memory. */
export interface OutboxStore {
  table(name: string): QueueTable
  /** Runs one atomic transaction, durable when it returns. */
  write<T>(work: () => T): T
  /** The same for a transaction that only removes, which is allowed even when space is short. */
  shrink<T>(work: () => T): T
  close(): Promise<void>
}

/**
 * Prevents two collectors from using the same outbox. They would send each other's open events, and
 * would miss events that the other removed.
 */
export class OutboxLock {
  readonly #lock: DirectoryLock | undefined

  private constructor(lock?: DirectoryLock) {
    this.#lock = lock
  }

  /**
   * @param run runs each step with the rights to use the outbox
   * @throws Fault STORE_IN_USE, STORE_UNWRITABLE
   */
  static async take(outbox: string, run?: Run): Promise<OutboxLock> {
    if (outbox === OUTBOX_IN_MEMORY) return new OutboxLock()
    const lock = await DirectoryLock.take(outbox, '', run).catch((error: NodeJS.ErrnoException) => {
      if (error.syscall === undefined) throw error
      throw new Fault('STORE_UNWRITABLE', `--outbox ${outbox}: ${systemErrorText(error)}`, { cause: error })
    })
    if (lock !== undefined) return new OutboxLock(lock)
    throw new Fault(
      'STORE_IN_USE',
      `--outbox ${outbox}: another collector runs on it; stop that one, or name another directory`,
    )
  }

  async release(): Promise<void> {
    await this.#lock?.release()
  }
}
