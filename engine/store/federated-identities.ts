import { createHash } from 'node:crypto'
import type { Environment } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'

/**
 * A person at the identity provider of an organization. The issuer and the subject identify the
 * person (OpenID Connect Core 1.0 §5.7), not a name or an e-mail address, which can change hands.
 */
export interface FederatedIdentity {
  readonly organizationId: string
  readonly issuer: string
  /** The claim `sub`. */
  readonly subject: string
  readonly userId: string
  readonly createdAtMs: number
  readonly signedInAtMs: number
}

/** A person at the identity provider of an organization that is known from elsewhere. */
export type ProviderIdentity = Pick<FederatedIdentity, 'issuer' | 'subject'>
type Subject = ProviderIdentity & Pick<FederatedIdentity, 'organizationId'>

/** Federated identities by organization, issuer and subject. */
export class FederatedIdentities {
  readonly #records: Family<FederatedIdentity>

  constructor(environment: Environment) {
    this.#records = new Family(environment.table('federated-identities'), 'federated identity')
  }

  get(subject: Subject): FederatedIdentity | undefined {
    return this.#records.get(federatedIdentityKey(subject))
  }

  ofOrganization(organizationId: string): FederatedIdentity[] {
    return Array.from(this.#records.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  /** The identities of a user at the provider of an organization. */
  ofUser(organizationId: string, userId: string): FederatedIdentity[] {
    return this.ofOrganization(organizationId).filter((identity) => identity.userId === userId)
  }

  /** Requires a write transaction. */
  put(identity: FederatedIdentity): void {
    this.#records.put(federatedIdentityKey(identity), identity)
  }

  /** Requires a write transaction. */
  remove(identity: Subject): void {
    this.#records.remove(federatedIdentityKey(identity))
  }
}

/** A subject has up to 255 characters, so the key has a hash. A newline is in no issuer. */
export function federatedIdentityKey({ organizationId, issuer, subject }: Subject): Buffer {
  const hash = createHash('sha256').update(`${issuer}\n${subject}`).digest()
  return Buffer.concat([uuidBytes(organizationId), hash])
}
