import type { Environment } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'

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
export class AccountLinks {
  readonly #records: Family<AccountLink>

  constructor(environment: Environment) {
    this.#records = new Family(environment.table('account-links'), 'account link')
  }

  byHash(hash: Uint8Array): AccountLink | undefined {
    return this.#records.get(hash)
  }

  all(): AccountLink[] {
    return Array.from(this.#records.range(Buffer.alloc(0)), ({ value }) => value)
  }

  /** Invitations of an organization, by member, also expired ones. */
  invitations(organizationId: string): Map<string, AccountLink> {
    const links = this.all().filter((link) => link.kind === 'invitation' && link.organizationId === organizationId)
    return new Map(links.map((link) => [link.name, link]))
  }

  /** Inside a transaction of the caller. */
  put(link: AccountLink): void {
    this.#records.put(Buffer.from(link.hash, 'hex'), link)
  }

  /** Inside a transaction of the caller. */
  remove(link: AccountLink): void {
    this.#records.remove(Buffer.from(link.hash, 'hex'))
  }

  /** Inside the transaction that removes the organization. */
  removeOfOrganization(organizationId: string): void {
    for (const link of this.all()) if (link.organizationId === organizationId) this.remove(link)
  }

  /** Inside the transaction that removes the member. */
  removeInvitation(organizationId: string, memberName: string): AccountLink | undefined {
    const link = this.invitations(organizationId).get(memberName)
    if (link !== undefined) this.remove(link)
    return link
  }

  /** Inside the transaction that removes the user. */
  removePasswordLinks(userName: string): void {
    for (const link of this.all()) if (link.kind === 'password' && link.name === userName) this.remove(link)
  }
}
