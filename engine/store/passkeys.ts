import { createHash } from 'node:crypto'
import type { Environment, Table } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'

/** A credential of WebAuthn with which a user signs in to the console. */
export interface Passkey {
  readonly id: string
  readonly userId: string
  /**
   * The authenticator's id of the credential, in base64url; at most 1023 bytes (WebAuthn §5.8.3).
   */
  readonly credentialId: string
  /** The public key in COSE format (RFC 9052 §7), in base64url. */
  readonly publicKey: string
  /** The host name for which the authenticator made the passkey (RP ID). */
  readonly rpId: string
  /** The name that the user gave the passkey. */
  readonly name: string
  /**
   * The signature counter; 0 if the authenticator does not count, as synchronized passkeys do not.
   */
  readonly counter: number
  /** How browsers reach the authenticator: usb, internal, hybrid and others. */
  readonly transports: readonly string[]
  /** The authenticator can copy the passkey to other devices (backup eligible). */
  readonly isSyncable: boolean
  /** The passkey was copied when it was last used (backup state). */
  readonly isSynced: boolean
  readonly createdAtMs: number
  /** 0 if the passkey was never used. */
  readonly usedAtMs: number
  /**
   * When the counter went back, so that two copies of the key may exist. The passkey is refused
   * from then on. Otherwise 0.
   */
  readonly blockedAtMs: number
}

/** The passkeys of the console, by user, with an index by the hash of the credential's id. */
export class Passkeys {
  readonly #records: Family<Passkey>
  readonly #credentials: Table

  constructor(environment: Environment) {
    this.#records = new Family(environment.table('passkeys'), 'passkey')
    this.#credentials = environment.table('passkey-credentials')
  }

  byCredential(credentialId: string): Passkey | undefined {
    const key = this.#credentials.get(credentialKey(credentialId))
    return key === undefined ? undefined : this.#records.get(key)
  }

  get(userId: string, id: string): Passkey | undefined {
    return this.#records.get(keyOf({ userId, id }))
  }

  /** Oldest first. */
  ofUser(userId: string): Passkey[] {
    const all = Array.from(this.#records.range(uuidBytes(userId)), ({ value }) => value)
    return all.sort((a, b) => a.createdAtMs - b.createdAtMs)
  }

  isEmpty(): boolean {
    for (const _ of this.#records.keys(Buffer.alloc(0))) return false
    return true
  }

  /** Inside a transaction of the caller. The credential of a stored passkey never changes. */
  put(passkey: Passkey): void {
    this.#records.put(keyOf(passkey), passkey)
    this.#credentials.putSync(credentialKey(passkey.credentialId), keyOf(passkey))
  }

  /** Inside a transaction of the caller. */
  remove(passkey: Passkey): void {
    this.#records.remove(keyOf(passkey))
    this.#credentials.removeSync(credentialKey(passkey.credentialId))
  }
}

/** SHA-256, because an id can be longer than half of LMDB's maximum key. */
export function credentialKey(credentialId: string): Buffer {
  return createHash('sha256').update(Buffer.from(credentialId, 'base64url')).digest()
}

function keyOf({ userId, id }: Pick<Passkey, 'userId' | 'id'>): Buffer {
  return Buffer.concat([uuidBytes(userId), uuidBytes(id)])
}
