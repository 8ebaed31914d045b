import { SECOND_MS } from '../engine/process/clock.ts'
import { logFailure } from '../engine/process/failure.ts'
import type { Logger } from '../engine/process/log.ts'
import type { KeyUse } from '../engine/store/key-uses.ts'
import type { Store } from '../engine/store/store.ts'
import type { Caller } from './callers.ts'

/** Uses that wait for being told or written. Those of more keys are noted the next time. */
const USES_MAX = 100_000
/** How exactly the last use of a key is known: a key that asks all the time is written down once in so many milliseconds. */
export const KEY_USE_PRECISION_MS = 60 * SECOND_MS

/** Remembers which keys were used, so that the store is written once in a while and not with each request. */
export class RecentKeyUses {
  #uses: KeyUse[] = []

  note(caller: Caller, timeMs: number): void {
    // Either way: the clock may have been set back.
    if (Math.abs(timeMs - caller.usedMs) < KEY_USE_PRECISION_MS || this.#uses.length === USES_MAX) return
    caller.usedMs = timeMs
    this.#uses.push({ organizationId: caller.organization.id, keyId: caller.keyId, timeMs })
  }

  /** Those since the last time. */
  take(): KeyUse[] {
    const uses = this.#uses
    this.#uses = []
    return uses
  }
}

/** Writes down what the threads tell. What cannot be written, since the disk is full, waits until the next time. */
export class KeyUseWriter {
  readonly #store: Store
  readonly #log: Logger
  /** By key: the latest use. */
  readonly #waiting = new Map<string, KeyUse>()

  constructor(store: Store, log: Logger) {
    this.#store = store
    this.#log = log
  }

  write(uses: readonly KeyUse[]): void {
    for (const use of uses) {
      if (this.#waiting.size < USES_MAX || this.#waiting.has(use.keyId)) this.#waiting.set(use.keyId, use)
    }
    try {
      this.#store.environment.write(() => {
        for (const use of this.#waiting.values()) {
          // A key of an organization that was removed meanwhile leaves no use.
          if (this.#store.organizations.exists(use.organizationId)) this.#store.keyUses.put(use)
        }
      })
      this.#waiting.clear()
    } catch (error) {
      logFailure(this.#log, error, 'the last uses of API keys are not stored now', { level: 'warn' })
    }
  }
}
