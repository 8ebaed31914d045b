import { createHash } from 'node:crypto'
import type { Environment, Table } from '../kernel/lmdb/environment.ts'
import { Collection, Family } from './family.ts'
import { ownKey, uuidBytes, uuidText } from './keys.ts'

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
    return this.#records.firstKey(Buffer.alloc(0)) === undefined
  }

  /** The caller has checked that a new name is free. The name of a stored user stays. */
  put(user: User): void {
    this.#records.put(uuidBytes(user.id), user)
    if (user.isFederated !== true) this.#names.putSync(nameKey(user.name), uuidBytes(user.id))
  }

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

type OfUser = Pick<Session, 'userId' | 'id'>
const keyOfUsers = ({ userId, id }: OfUser): Buffer => ownKey(userId, id)

/** The sessions of the console, by user, with an index by the hash of the cookie's value. */
export class Sessions extends Collection<OfUser, Session> {
  readonly #environment: Environment
  readonly #hashes: Table

  constructor(environment: Environment) {
    super(environment.table('sessions'), 'session', keyOfUsers)
    this.#environment = environment
    this.#hashes = environment.table('session-hashes')
  }

  byHash(hash: Uint8Array): Session | undefined {
    const key = this.#hashes.get(Buffer.from(hash))
    return key === undefined ? undefined : this.records.get(key)
  }

  ofUser(userId: string): Session[] {
    return this.startingWith(uuidBytes(userId))
  }

  /** The number of stored sessions, in constant time. */
  count(): number {
    return this.#environment.tableRecords('sessions')
  }

  /** A session that changes its hash is no longer found by the old one. */
  override put(session: Session): void {
    const before = this.get(session)
    if (before !== undefined && before.hash !== session.hash) this.#hashes.removeSync(Buffer.from(before.hash, 'hex'))
    super.put(session)
    this.#hashes.putSync(Buffer.from(session.hash, 'hex'), keyOfUsers(session))
  }

  override remove(session: Session): void {
    super.remove(session)
    this.#hashes.removeSync(Buffer.from(session.hash, 'hex'))
  }
}

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
export class Passkeys extends Collection<OfUser, Passkey> {
  readonly #credentials: Table

  constructor(environment: Environment) {
    super(environment.table('passkeys'), 'passkey', keyOfUsers)
    this.#credentials = environment.table('passkey-credentials')
  }

  byCredential(credentialId: string): Passkey | undefined {
    const key = this.#credentials.get(credentialKey(credentialId))
    return key === undefined ? undefined : this.records.get(key)
  }

  /** Oldest first. */
  ofUser(userId: string): Passkey[] {
    return this.startingWith(uuidBytes(userId)).sort((a, b) => a.createdAtMs - b.createdAtMs)
  }

  /** The credential of a stored passkey never changes. */
  override put(passkey: Passkey): void {
    super.put(passkey)
    this.#credentials.putSync(credentialKey(passkey.credentialId), keyOfUsers(passkey))
  }

  override remove(passkey: Passkey): void {
    super.remove(passkey)
    this.#credentials.removeSync(credentialKey(passkey.credentialId))
  }
}

/** SHA-256, because an id can be longer than half of LMDB's maximum key. */
export function credentialKey(credentialId: string): Buffer {
  return createHash('sha256').update(Buffer.from(credentialId, 'base64url')).digest()
}

/**
 * What a link lets its holder do, once: become the first owner, become the user of a member, or set
 * a password.
 */
export type AccountLinkKind = 'setup' | 'invitation' | 'password'

/** A link of single use that an operator or an owner hands out. */
export interface AccountLink {
  readonly kind: AccountLinkKind
  /** SHA-256 of the secret in the link, in hex. The secret itself is stored nowhere. */
  readonly hash: string
  /**
   * '' for a setup link that also creates the organization, and for a link that sets a password.
   */
  readonly organizationId: string
  /** Of an invitation: the member. Of a link that sets a password: the user. Otherwise ''. */
  readonly name: string
  readonly createdAtMs: number
  readonly expiresAtMs: number
}

/** Links by the hash of their secret, which is all that a request shows. */
export class AccountLinks extends Collection<Pick<AccountLink, 'hash'>, AccountLink> {
  constructor(environment: Environment) {
    super(environment.table('account-links'), 'account link', ({ hash }) => Buffer.from(hash, 'hex'))
  }

  byHash(hash: Uint8Array): AccountLink | undefined {
    return this.records.get(hash)
  }

  /** Invitations of an organization, by member, also expired ones. */
  invitations(organizationId: string): Map<string, AccountLink> {
    const links = this.all().filter((link) => link.kind === 'invitation' && link.organizationId === organizationId)
    return new Map(links.map((link) => [link.name, link]))
  }

  removeOfOrganization(organizationId: string): void {
    for (const link of this.all()) if (link.organizationId === organizationId) this.remove(link)
  }

  removeInvitation(organizationId: string, memberName: string): AccountLink | undefined {
    const link = this.invitations(organizationId).get(memberName)
    if (link !== undefined) this.remove(link)
    return link
  }

  removePasswordLinks(userName: string): void {
    for (const link of this.all()) if (link.kind === 'password' && link.name === userName) this.remove(link)
  }
}
