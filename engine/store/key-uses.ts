import type { Environment } from '../lmdb/environment.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'

/** That an API key was used, and when. */
export interface KeyUse {
  readonly organizationId: string
  readonly keyId: string
  /** Milliseconds since 1970. */
  readonly timeMs: number
}

/** When each API key was used last: in a table of its own, so that a key's own record stays what its administrators made it. */
export class KeyUses {
  readonly #uses: Family<number>

  constructor(environment: Environment) {
    this.#uses = new Family(environment.table('key-uses'), 'use of an API key')
  }

  /** Milliseconds since 1970; 0 where it was never used. */
  lastUseMs(organizationId: string, keyId: string): number {
    return this.#uses.get(keyOf(organizationId, keyId)) ?? 0
  }

  /** Inside a transaction of the caller. An earlier use than the one that is known changes nothing. */
  put({ organizationId, keyId, timeMs }: KeyUse): void {
    if (timeMs > this.lastUseMs(organizationId, keyId)) this.#uses.put(keyOf(organizationId, keyId), timeMs)
  }
}

function keyOf(organizationId: string, keyId: string): Buffer {
  return Buffer.concat([uuidBytes(organizationId), uuidBytes(keyId)])
}
