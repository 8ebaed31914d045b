import { type FederatedIdentity, federatedIdentityKey } from '../store/federated-identities.ts'
import type { IdentityProvider } from '../store/identity-providers.ts'
import { UUID_BYTES, uuidBytes } from '../store/keys.ts'
import { ROLES } from '../store/members.ts'
import { packed, type StoreWalk } from './walk.ts'

const HASH_BYTES = 32

/** Checks identity providers, and the users who sign in with them. */
export function checkSignIn(walk: StoreWalk): void {
  checkProviders(walk)
  checkIdentities(walk)
}

function checkProviders(walk: StoreWalk): void {
  const form = { keyBytes: UUID_BYTES, open: packed<IdentityProvider>('identity provider') }
  walk.table('identity-providers', form, ({ value, organizationId }) => {
    const wrong = (found: string, expected: string): void =>
      walk.wrong('identity-providers', organizationId, found, expected)
    if (value.organizationId !== organizationId) wrong(`the provider of ${value.organizationId}`, 'the one of its key')
    for (const role of [value.defaultRole, ...value.groups.map((each) => each.role)]) {
      if (role !== 'none' && !ROLES.includes(role)) wrong(`the role ${role}`, ROLES.join(', '))
    }
  })
}

function checkIdentities(walk: StoreWalk): void {
  const { environment, members } = walk.store
  const users = environment.table('users')
  const form = { keyBytes: UUID_BYTES + HASH_BYTES, open: packed<FederatedIdentity>('federated identity') }
  walk.table('federated-identities', form, ({ key, value, organizationId }) => {
    const wrong = (found: string, expected: string): void =>
      walk.wrong('federated-identities', organizationId, found, expected)
    if (!federatedIdentityKey(value).equals(key)) wrong('an issuer and a subject', 'those of its key')
    if (!users.doesExist(uuidBytes(value.userId))) wrong(`no user ${value.userId}`, 'one')
    walk.unlessUnreadable(() => {
      const member = members.ofUserIn(value.userId, organizationId)
      if (member === undefined) wrong(`no member who is the user ${value.userId}`, 'one')
    })
  })
}
