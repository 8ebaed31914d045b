import type { Environment, Table } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'

/** One sign-in of one browser. */
export interface Session {
  readonly id: string
  readonly userId: string
  /** SHA-256 of the cookie's value, in hex. The value itself is stored nowhere. */
  readonly hash: string
  /** The organization whose pages the browser shows. */
  readonly organizationId: string
  /**
   * The organization whose identity provider vouched for the user. The session reaches no other
   * organization, because the provider could sign in as any of its users.
   */
  readonly providerOrganizationId?: string
  /** When the user signed in. A new cookie value does not change this time. */
  readonly createdAtMs: number
  /** The last request, to about a minute. */
  readonly usedAtMs: number
  /** When the user last proved who they are: at sign-in, or before a sensitive change. */
  readonly confirmedAtMs: number
  /** For the list of sessions: the client's address and what its User-Agent says. */
  readonly address: string
  readonly browser: string
}

/** The sessions of the console, by user, with an index by the hash of the cookie's value. */
export class Sessions {
  readonly #environment: Environment
  readonly #records: Family<Session>
  readonly #hashes: Table

  constructor(environment: Environment) {
    this.#environment = environment
    this.#records = new Family(environment.table('sessions'), 'session')
    this.#hashes = environment.table('session-hashes')
  }

  byHash(hash: Uint8Array): Session | undefined {
    const key = this.#hashes.get(Buffer.from(hash))
    return key === undefined ? undefined : this.#records.get(key)
  }

  get(userId: string, id: string): Session | undefined {
    return this.#records.get(keyOf({ userId, id }))
  }

  ofUser(userId: string): Session[] {
    return Array.from(this.#records.range(uuidBytes(userId)), ({ value }) => value)
  }

  /** The number of stored sessions, in constant time. */
  count(): number {
    return this.#environment.tableRecords('sessions')
  }

  all(): Session[] {
    return Array.from(this.#records.range(Buffer.alloc(0)), ({ value }) => value)
  }

  /**
   * Inside a transaction of the caller. A session that changes its hash is no longer found by the
   * old one.
   */
  put(session: Session): void {
    const before = this.#records.get(keyOf(session))
    if (before !== undefined && before.hash !== session.hash) this.#hashes.removeSync(Buffer.from(before.hash, 'hex'))
    this.#records.put(keyOf(session), session)
    this.#hashes.putSync(Buffer.from(session.hash, 'hex'), keyOf(session))
  }

  /** Inside a transaction of the caller. */
  remove(session: Session): void {
    this.#records.remove(keyOf(session))
    this.#hashes.removeSync(Buffer.from(session.hash, 'hex'))
  }
}

function keyOf({ userId, id }: Pick<Session, 'userId' | 'id'>): Buffer {
  return Buffer.concat([uuidBytes(userId), uuidBytes(id)])
}
