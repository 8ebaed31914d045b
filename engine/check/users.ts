import { ACCOUNT_LINK_KINDS, type AccountLink } from '../store/account-links.ts'
import { type FederatedIdentity, federatedIdentityKey } from '../store/federated-identities.ts'
import type { IdentityProvider } from '../store/identity-providers.ts'
import { UUID_BYTES, uuidBytes, uuidText } from '../store/keys.ts'
import { ROLES } from '../store/members.ts'
import { credentialKey, type Passkey } from '../store/passkeys.ts'
import { type RemovedMember, removedMemberKey } from '../store/removed-members.ts'
import type { Session } from '../store/sessions.ts'
import type { User } from '../store/users.ts'
import { packed, type StoreWalk, shortKey } from './walk.ts'

const HASH_BYTES = 32
const OPEN_BYTES = (bytes: Buffer): Buffer => bytes

/**
 * Users of the console with their names, memberships, sessions and passkeys. Their keys begin with
 * the user, not an organization.
 */
export function checkUsers(walk: StoreWalk): void {
  checkRecords(walk)
  checkNames(walk)
  checkMemberships(walk)
  checkSessions(walk)
  checkPasskeys(walk)
  checkLinks(walk)
}

function checkRecords(walk: StoreWalk): void {
  const names = walk.store.environment.table('user-names')
  walk.table('users', { keyBytes: UUID_BYTES, isIndex: true, open: packed<User>('user') }, ({ key, value }) => {
    if (!uuidBytes(value.id).equals(key)) walk.wrong('users', '', `the id ${value.id} in the record`, 'that of its key')
    if (value.isFederated === true) return
    const indexed = names.get(Buffer.from(value.name.toLowerCase()))
    if (indexed === undefined || !indexed.equals(key)) {
      walk.wrong('users', '', `no entry for the name ${JSON.stringify(value.name)} in user-names`, 'its own')
    }
  })
}

function checkNames(walk: StoreWalk): void {
  const form = { keyBytes: 0, keyIsLonger: true, isIndex: true, open: OPEN_BYTES }
  walk.table('user-names', form, ({ key, value }) => {
    walk.unlessUnreadable(() => {
      const name = value.length === UUID_BYTES ? walk.store.users.get(uuidText(value))?.name : undefined
      if (name !== undefined && Buffer.from(name.toLowerCase()).equals(key)) return
      walk.wrong('user-names', '', `an entry for ${JSON.stringify(key.toString())}`, 'a user of that name')
    })
  })
}

function checkMemberships(walk: StoreWalk): void {
  const { environment, members } = walk.store
  const form = { keyBytes: 2 * UUID_BYTES, isIndex: true, open: OPEN_BYTES }
  walk.table('memberships', form, ({ key, value }) => {
    const organizationId = uuidText(key.subarray(UUID_BYTES))
    walk.unlessUnreadable(() => {
      const isOfOrganization = value.subarray(0, UUID_BYTES).equals(key.subarray(UUID_BYTES))
      const member = members.get(organizationId, value.toString('utf8', UUID_BYTES))
      if (
        isOfOrganization &&
        member?.userId !== undefined &&
        uuidBytes(member.userId).equals(key.subarray(0, UUID_BYTES))
      )
        return
      walk.wrong('memberships', organizationId, `an entry at ${shortKey(key)}`, 'a member who is that user')
    })
  })
  const users = environment.table('users')
  const memberships = environment.table('memberships')
  for (const organizationId of walk.store.organizations.ids()) {
    walk.unlessUnreadable(() => {
      for (const { name, userId } of members.ofOrganization(organizationId)) {
        if (userId === undefined) continue
        const who = `the user of the member ${JSON.stringify(name)}`
        if (!users.doesExist(uuidBytes(userId))) walk.wrong('members', organizationId, who, 'a user of that id')
        const key = Buffer.concat([uuidBytes(userId), uuidBytes(organizationId)])
        if (!memberships.doesExist(key)) walk.wrong('members', organizationId, who, 'an entry in memberships')
      }
    })
  }
}

/** Records of users, each with an entry in a table that finds it by a secret or a credential. */
function checkOfUsers<T extends { readonly id: string; readonly userId: string }>(
  walk: StoreWalk,
  table: string,
  what: string,
  index: string,
  indexKey: (value: T) => Buffer,
): void {
  const { environment } = walk.store
  const entries = environment.table(index)
  const users = environment.table('users')
  const form = { keyBytes: 2 * UUID_BYTES, isIndex: true, open: packed<T>(what) }
  walk.table(table, form, ({ key, value }) => {
    const own = Buffer.concat([uuidBytes(value.userId), uuidBytes(value.id)])
    if (!own.equals(key)) walk.wrong(table, '', `the id ${value.id} in the record`, 'that of its key')
    if (!users.doesExist(uuidBytes(value.userId))) walk.wrong(table, '', `no user ${value.userId}`, 'one')
    if (entries.get(indexKey(value))?.equals(key) !== true) {
      walk.wrong(table, '', `no entry for ${value.id} in ${index}`, 'its own')
    }
  })
}

function checkSessions(walk: StoreWalk): void {
  const { sessions } = walk.store
  checkOfUsers<Session>(walk, 'sessions', 'session', 'session-hashes', ({ hash }) => Buffer.from(hash, 'hex'))
  walk.table('session-hashes', { keyBytes: HASH_BYTES, isIndex: true, open: OPEN_BYTES }, ({ key }) => {
    walk.unlessUnreadable(() => {
      if (sessions.byHash(key)?.hash === key.toString('hex')) return
      walk.wrong('session-hashes', '', `an entry at ${shortKey(key)}`, 'a session with that hash')
    })
  })
}

function checkPasskeys(walk: StoreWalk): void {
  const { passkeys } = walk.store
  checkOfUsers<Passkey>(walk, 'passkeys', 'passkey', 'passkey-credentials', ({ credentialId }) =>
    credentialKey(credentialId),
  )
  walk.table('passkey-credentials', { keyBytes: HASH_BYTES, isIndex: true, open: OPEN_BYTES }, ({ key, value }) => {
    walk.unlessUnreadable(() => {
      const isOfForm = value.length === 2 * UUID_BYTES
      const passkey = isOfForm ? passkeys.get(uuidText(value), uuidText(value.subarray(UUID_BYTES))) : undefined
      if (passkey !== undefined && credentialKey(passkey.credentialId).equals(key)) return
      walk.wrong('passkey-credentials', '', `an entry at ${shortKey(key)}`, 'a passkey with that credential')
    })
  })
}

function checkLinks(walk: StoreWalk): void {
  const form = { keyBytes: HASH_BYTES, isIndex: true, open: packed<AccountLink>('account link') }
  walk.table('account-links', form, ({ key, value }) => {
    const { hash, kind, organizationId } = value
    const wrong = (found: string, expected: string): void =>
      walk.wrong('account-links', organizationId, found, expected)
    if (!Buffer.from(hash, 'hex').equals(key)) wrong(`the hash ${hash.slice(0, 8)} in the record`, 'that of its key')
    if (!ACCOUNT_LINK_KINDS.includes(kind)) wrong(`the kind ${kind}`, ACCOUNT_LINK_KINDS.join(', '))
    if (organizationId !== '' && !walk.hasOrganization(organizationId)) wrong('a link', 'an organization of that id')
  })
}

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
