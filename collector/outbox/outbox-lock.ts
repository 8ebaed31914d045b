import { DirectoryLock } from '../../engine/process/directory-lock.ts'
import { Fault } from '../../engine/process/error-codes.ts'
import { OUTBOX_IN_MEMORY } from './outbox-limits.ts'

/**
 * Prevents two collectors from using the same outbox. They would send each other's open events, and
 * would miss events that the other removed.
 */
export class OutboxLock {
  readonly #lock: DirectoryLock | undefined

  private constructor(lock?: DirectoryLock) {
    this.#lock = lock
  }

  /** @throws Fault STORE_IN_USE */
  static async take(outbox: string): Promise<OutboxLock> {
    if (outbox === OUTBOX_IN_MEMORY) return new OutboxLock()
    const lock = await DirectoryLock.take(outbox)
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
