import { SECOND_MS } from '../engine/process/clock.ts'
import type { KeyUse } from '../engine/store/key-uses.ts'
import type { Caller } from './callers.ts'

/** Uses that are remembered until they are taken. Those of more keys are told the next time. */
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
