import { type FederatedIdentity, federatedIdentityKey } from '../store/federated-identities.ts'
import type { IdentityProvider } from '../store/identity-providers.ts'
import { UUID_BYTES, uuidBytes } from '../store/keys.ts'
import { ROLES } from '../store/members.ts'
import { type RemovedMember, removedMemberKey } from '../store/removed-members.ts'
import { packed, type StoreWalk } from './walk.ts'

const HASH_BYTES = 32

/** Checks identity providers, the users who sign in with them, and those who may not. */
export function checkSignIn(walk: StoreWalk): void {
  checkProviders(walk)
  checkIdentities(walk)
  checkRemovedMembers(walk)
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

function checkRemovedMembers(walk: StoreWalk): void {
  const form = { keyBytes: UUID_BYTES, keyIsLonger: true, open: packed<RemovedMember>('removed member') }
  walk.table('removed-members', form, ({ key, value, organizationId }) => {
    const wrong = (found: string, expected: string): void =>
      walk.wrong('removed-members', organizationId, found, expected)
    if (!removedMemberKey(value).equals(key)) wrong(`the name ${JSON.stringify(value.name)}`, 'the one in its key')
    if (!ROLES.includes(value.role)) wrong(`the role ${value.role}`, ROLES.join(', '))
    walk.unlessUnreadable(() => {
      const member = walk.store.members.get(organizationId, value.name)
      if (member !== undefined) wrong(`the member ${JSON.stringify(value.name)}`, 'none of this name')
    })
  })
}
