import type { KeyUse } from '../engine/store/key-uses.ts'
import type { Caller } from './callers.ts'

/** Uses that are remembered until they are taken. Those of more keys are told the next time. */
const USES_MAX = 100_000

/** Remembers which keys were used, so that the store is written once in a while and not with each request. */
export class RecentKeyUses {
  #callers: Caller[] = []

  note(caller: Caller, timeMs: number): void {
    if (caller.usedMs === 0) {
      if (this.#callers.length === USES_MAX) return
      this.#callers.push(caller)
    }
    caller.usedMs = timeMs
  }

  /** Those since the last time. */
  take(): KeyUse[] {
    const uses = this.#callers.map(({ organization, keyId, usedMs }) => {
      return { organizationId: organization.id, keyId, timeMs: usedMs }
    })
    for (const caller of this.#callers) caller.usedMs = 0
    this.#callers = []
    return uses
  }
}
