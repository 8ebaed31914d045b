import type { Environment } from '../kernel/lmdb/environment.ts'
import type { SealedSecret } from '../kernel/process/secrets-key.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'
import type { Role } from './members.ts'

/** Members of this group of the provider get this role. */
export interface GroupRole {
  readonly group: string
  readonly role: Role
}

/**
 * The OpenID provider with which members of an organization sign in to the console (OpenID Connect
 * Core 1.0).
 */
export interface IdentityProvider {
  readonly organizationId: string
  /** The text of the button for sign-in. */
  readonly name: string
  /** Exactly as in the provider's metadata. */
  readonly issuer: string
  readonly clientId: string
  /** Encrypted for this organization and issuer. */
  readonly clientSecret: SealedSecret
  readonly scopes: readonly string[]
  /** The claim that names a new member, such as `email`. */
  readonly nameClaim: string
  /** The claim with the list of groups. */
  readonly groupsClaim: string
  readonly groups: readonly GroupRole[]
  /** The role of users in none of the groups. `none`: they cannot sign in. */
  readonly defaultRole: Role | 'none'
  readonly changedAtMs: number
}

/** What an encrypted client secret is bound to: moved elsewhere, it cannot be decrypted. */
export function clientSecretContext({
  organizationId,
  issuer,
}: Pick<IdentityProvider, 'organizationId' | 'issuer'>): string {
  return `client secret ${organizationId} ${issuer}`
}

/** At most one identity provider per organization. */
export class IdentityProviders {
  readonly #records: Family<IdentityProvider>

  constructor(environment: Environment) {
    this.#records = new Family(environment.table('identity-providers'), 'identity provider')
  }

  get(organizationId: string): IdentityProvider | undefined {
    return this.#records.get(uuidBytes(organizationId))
  }

  isEmpty(): boolean {
    return this.#records.firstKey(Buffer.alloc(0)) === undefined
  }

  /** Requires a write transaction. */
  put(provider: IdentityProvider): void {
    this.#records.put(uuidBytes(provider.organizationId), provider)
  }

  /** Requires a write transaction. */
  remove(organizationId: string): void {
    this.#records.remove(uuidBytes(organizationId))
  }
}
