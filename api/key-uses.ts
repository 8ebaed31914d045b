import { SECOND_MS } from '../engine/kernel/process/clock.ts'
import { logFailure } from '../engine/kernel/process/failure.ts'
import type { Logger } from '../engine/kernel/process/log.ts'
import type { KeyUse } from '../engine/store/secrets.ts'
import type { Caller } from './callers.ts'

/**
 * Maximum number of uses that wait to be reported or written. Uses of further keys are recorded
 * next time.
 */
const USES_MAX = 100_000
/**
 * Precision of a key's last use, in milliseconds: a key in constant use is written once in this
 * time.
 */
export const KEY_USE_PRECISION_MS = 60 * SECOND_MS

/** Collects used keys, so that the store is written periodically and not for each request. */
export class RecentKeyUses {
  #uses: KeyUse[] = []

  note(caller: Caller, timeMs: number): void {
    // Absolute difference, because the clock may have been set back.
    if (Math.abs(timeMs - caller.usedMs) < KEY_USE_PRECISION_MS || this.#uses.length === USES_MAX) return
    caller.usedMs = timeMs
    this.#uses.push({ organizationId: caller.organization.id, keyId: caller.keyId, timeMs })
  }

  /** Returns and clears the uses since the last call. */
  take(): KeyUse[] {
    const uses = this.#uses
    this.#uses = []
    return uses
  }
}

/** Stores uses. Throws, or rejects, if they have to wait. */
export type KeyUseSink = (uses: readonly KeyUse[]) => void | Promise<void>

/** Writes the uses reported by the threads. If the disk is full, they wait for the next call. */
export class KeyUseWriter {
  readonly #sink: KeyUseSink
  readonly #log: Logger
  /** The latest use by key. */
  readonly #waiting = new Map<string, KeyUse>()

  constructor(sink: KeyUseSink, log: Logger) {
    this.#sink = sink
    this.#log = log
  }

  async write(uses: readonly KeyUse[]): Promise<void> {
    for (const use of uses) {
      if (this.#waiting.size < USES_MAX || this.#waiting.has(use.keyId)) this.#waiting.set(use.keyId, use)
    }
    const written = [...this.#waiting.values()]
    try {
      const stored = this.#sink(written)
      if (stored !== undefined) await stored
      for (const use of written) if (this.#waiting.get(use.keyId) === use) this.#waiting.delete(use.keyId)
    } catch (error) {
      logFailure(this.#log, error, 'the last uses of API keys are not stored now', { level: 'warn' })
    }
  }
}
