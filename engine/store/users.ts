import type { Environment, Table } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import { uuidBytes, uuidText } from './keys.ts'

/**
 * A browser that has signed in before, known by a cookie. It has its own allowance of wrong
 * passwords.
 */
interface TrustedBrowser {
  /** SHA-256 of the cookie's value, in hex. */
  readonly hash: string
  readonly usedAtMs: number
}

/**
 * A person who signs in to the console. What this person may do is in the members of each
 * organization.
 */
export interface User {
  readonly id: string
  /** The name for sign-in: an e-mail address or another name, unique whatever its case. */
  readonly name: string
  /**
   * The user signs in with an identity provider only. The provider chose the name, so it is neither
   * unique nor a name for sign-in.
   */
  readonly isFederated?: boolean
  /** Argon2id in PHC format; '' if the user has no password. */
  readonly passwordHash: string
  readonly createdAtMs: number
  /** The most recently used first. */
  readonly browsers: readonly TrustedBrowser[]
}

/**
 * The people who sign in. A user can belong to several organizations, so the key is the user's id
 * and not an organization.
 */
export class Users {
  readonly #records: Family<User>
  readonly #names: Table

  constructor(environment: Environment) {
    this.#records = new Family(environment.table('users'), 'user')
    this.#names = environment.table('user-names')
  }

  get(id: string): User | undefined {
    return this.#records.get(uuidBytes(id))
  }

  /** By name, whatever its case. */
  byName(name: string): User | undefined {
    const id = this.#names.get(nameKey(name))
    return id === undefined ? undefined : this.#records.get(id)
  }

  all(): User[] {
    return Array.from(this.#records.range(Buffer.alloc(0)), ({ value }) => value)
  }

  isEmpty(): boolean {
    for (const _ of this.#records.keys(Buffer.alloc(0))) return false
    return true
  }

  /**
   * Inside a transaction of the caller, who checked that a new name is free. The name of a stored
   * user stays.
   */
  put(user: User): void {
    this.#records.put(uuidBytes(user.id), user)
    if (user.isFederated !== true) this.#names.putSync(nameKey(user.name), uuidBytes(user.id))
  }

  /** Inside a transaction of the caller. */
  remove(user: User): void {
    this.#records.remove(uuidBytes(user.id))
    if (user.isFederated !== true) this.#names.removeSync(nameKey(user.name))
  }

  /** Also of users whose record is damaged. */
  ids(): string[] {
    return Array.from(this.#records.keys(Buffer.alloc(0)), uuidText)
  }
}

function nameKey(name: string): Buffer {
  return Buffer.from(name.toLowerCase())
}
