import type { Environment } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'

/** A use of an API key. */
export interface KeyUse {
  readonly organizationId: string
  readonly keyId: string
  /** Milliseconds since 1970. */
  readonly timeMs: number
}

/**
 * When each API key was last used. A separate table, so that a use does not rewrite the key's own
 * record.
 */
export class KeyUses {
  readonly #uses: Family<number>

  constructor(environment: Environment) {
    this.#uses = new Family(environment.table('key-uses'), 'use of an API key')
  }

  /** Milliseconds since 1970. 0: never used. */
  lastUseMs(organizationId: string, keyId: string): number {
    return this.#uses.get(keyOf(organizationId, keyId)) ?? 0
  }

  /** Ignores a use earlier than the stored one. */
  put({ organizationId, keyId, timeMs }: KeyUse): void {
    if (timeMs > this.lastUseMs(organizationId, keyId)) this.#uses.put(keyOf(organizationId, keyId), timeMs)
  }
}

function keyOf(organizationId: string, keyId: string): Buffer {
  return Buffer.concat([uuidBytes(organizationId), uuidBytes(keyId)])
}
