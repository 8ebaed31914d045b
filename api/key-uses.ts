import type { KeyUse } from '../engine/store/key-uses.ts'

/** Keys of which a thread remembers a use between two reports. Uses of more are not told: those keys are told of the next time. */
const KEYS_MAX = 100_000

/** Remembers which keys were used, so that the store is written once in a while and not with each request. */
export class RecentKeyUses {
  #uses = new Map<string, KeyUse>()

  note(organizationId: string, keyId: string, timeMs: number): void {
    if (this.#uses.size < KEYS_MAX || this.#uses.has(keyId)) this.#uses.set(keyId, { organizationId, keyId, timeMs })
  }

  /** Those since the last time. */
  take(): KeyUse[] {
    const uses = [...this.#uses.values()]
    this.#uses = new Map()
    return uses
  }
}
