import { createHash } from 'node:crypto'
import { changedEntry } from '../../registry/registry-file.ts'
import type { AuditEntry } from '../store/audit-log.ts'
import { UUID_BYTES, uuidBytes, uuidText } from '../store/keys.ts'
import { type Member, ROLES } from '../store/members.ts'
import { type Organization, PLANS, SCAN_FREQUENCIES } from '../store/organizations.ts'
import type { OwnPlatform } from '../store/own-platforms.ts'
import type { ReleaseState, StoredRelease } from '../store/registry-releases.ts'
import type { Removal } from '../store/removals.ts'
import type { Secret, Secrets } from '../store/secrets.ts'
import type { TokenBinding } from '../store/token-bindings.ts'
import { packed, type StoreWalk, shortKey } from './walk.ts'

const HASH_BYTES = 32
const SEQUENCE_OFFSET = 16
const SEQUENCE_BYTES = 8
const OPEN_BYTES = (bytes: Buffer): Buffer => bytes

/**
 * Checks organizations with their names, members and audit logs, and secrets with their indexes.
 */
export function checkAccounts(walk: StoreWalk): void {
  checkOrganizations(walk)
  checkNames(walk)
  checkRemovals(walk)
  checkMembers(walk)
  checkOwnPlatforms(walk)
  checkRegistryReleases(walk)
  checkAuditLog(walk)
  checkSecrets(walk, 'api-keys', 'api-key-hashes', walk.store.apiKeys)
  checkSecrets(walk, 'monitoring-tokens', 'token-hashes', walk.store.monitoringTokens)
  checkSecrets(walk, 'block-list-links', 'block-list-link-hashes', walk.store.blockListLinks)
  checkBindings(walk)
  checkKeyUses(walk)
  checkVersions(walk)
}

function checkOrganizations(walk: StoreWalk): void {
  const names = walk.store.environment.table('organization-names')
  const form = { keyBytes: UUID_BYTES, open: packed<Organization>('organization') }
  walk.table('organizations', form, ({ key, value, organizationId }) => {
    const wrong = (found: string, expected: string): void =>
      walk.wrong('organizations', organizationId, found, expected)
    if (value.id !== organizationId) wrong(`the id ${value.id} in the record`, 'the one in its key')
    if (!PLANS.includes(value.plan)) wrong(`the plan ${value.plan}`, `one of ${PLANS.join(', ')}`)
    if (!SCAN_FREQUENCIES.includes(value.scanFrequency)) {
      wrong(`the scan frequency ${value.scanFrequency}`, `one of ${SCAN_FREQUENCIES.join(', ')}`)
    }
    const indexed = names.get(Buffer.from(value.name.toLowerCase()))
    if (indexed?.equals(key)) return
    const found = indexed === undefined ? 'no entry' : `the entry of ${uuidText(indexed)}`
    wrong(`${found} for the name ${JSON.stringify(value.name)} in organization-names`, 'its own')
  })
}

function checkKeyUses(walk: StoreWalk): void {
  const form = { keyBytes: 2 * UUID_BYTES, open: packed<number>('use of an API key') }
  const keys = walk.store.environment.table('api-keys')
  walk.table('key-uses', form, ({ key, value, organizationId }) => {
    if (!keys.doesExist(key)) walk.wrong('key-uses', organizationId, `a use at ${shortKey(key)}`, 'of an existing key')
    if (!(Number.isSafeInteger(value) && value > 0)) walk.wrong('key-uses', organizationId, `the time ${value}`, 'one')
  })
}

function checkVersions(walk: StoreWalk): void {
  const form = { keyBytes: UUID_BYTES, mayBeUnattributed: true, open: OPEN_BYTES }
  for (const table of ['api-versions', 'registry-versions']) {
    walk.table(table, form, ({ value, organizationId }) => {
      const found = value.length === 8 ? value.readDoubleLE(0) : Number.NaN
      if (Number.isSafeInteger(found) && found > 0) return
      walk.wrong(table, organizationId, `the version ${found}`, 'a whole number from 1')
    })
  }
}

/**
 * Each in the form of a registry file, under its own id; and where there are any, a version that
 * threads compare.
 */
function checkOwnPlatforms(walk: StoreWalk): void {
  const form = {
    keyBytes: UUID_BYTES,
    keyIsLonger: true,
    mayBeUnattributed: true,
    open: packed<OwnPlatform>('own platform'),
  }
  walk.table('own-platforms', form, ({ key, value, organizationId }) => {
    const wrong = (found: string, expected: string): void =>
      walk.wrong('own-platforms', organizationId, found, expected)
    const checked = changedEntry.safeParse(value.entry)
    if (!checked.success) wrong(`the entry at ${shortKey(key)}`, 'one of a registry file')
    if (key.toString('utf8', UUID_BYTES) !== value.entry.id) wrong(`the id ${value.entry.id}`, 'that of its key')
    if (walk.store.ownPlatforms.version(organizationId) === 0) wrong('the version 0', 'a whole number from 1')
  })
}

/** Each under its own version, and all that the state names. */
function checkRegistryReleases(walk: StoreWalk): void {
  const form = { keyBytes: 0, keyIsLonger: true, isIndex: true }
  const release = { ...form, open: packed<StoredRelease>('release of the registry') }
  walk.table('registry-releases', release, ({ key, value }) => {
    const found = `the release ${value.version} at ${shortKey(key)}`
    if (key.toString() !== value.version) walk.wrong('registry-releases', '', found, 'that of its key')
    const sha256 = createHash('sha256').update(value.bytes).digest('hex')
    if (sha256 !== value.sha256) walk.wrong('registry-releases', '', `the SHA-256 ${sha256}`, value.sha256)
  })
  const state = { ...form, open: packed<ReleaseState>('state of the registry') }
  walk.table('registry-state', state, ({ value: { installed, previous } }) => {
    for (const version of [installed, ...previous].filter((each) => each !== '')) {
      walk.unlessUnreadable(() => {
        if (walk.store.registryReleases.get(version) !== undefined) return
        walk.wrong(
          'registry-state',
          '',
          `no release ${version}`,
          'one, because it is installed or rollback restores it',
        )
      })
    }
  })
}

function checkNames(walk: StoreWalk): void {
  const form = { keyBytes: 0, keyIsLonger: true, isIndex: true, open: OPEN_BYTES }
  walk.table('organization-names', form, ({ key, value }) => {
    const id = value.length === UUID_BYTES ? uuidText(value) : value.toString('hex')
    walk.unlessUnreadable(() => {
      const name = walk.store.organizations.get(id)?.name
      if (name !== undefined && Buffer.from(name.toLowerCase()).equals(key)) return
      const found = name === undefined ? 'no organization' : `one named ${JSON.stringify(name)}`
      walk.wrong('organization-names', id, `${found} of that id`, `one named ${JSON.stringify(key.toString())}`)
    })
  })
}

function checkRemovals(walk: StoreWalk): void {
  const form = { keyBytes: UUID_BYTES, isIndex: true, open: packed<Removal>('removal of an organization') }
  walk.table('organization-removals', form, ({ key, value }) => {
    const wrong = (found: string, expected: string): void =>
      walk.wrong('organization-removals', uuidText(key), found, expected)
    if (value.organizationId !== uuidText(key)) wrong(`the removal of ${value.organizationId}`, 'the one of its key')
    if (walk.hasOrganization(uuidText(key))) wrong('an organization that was removed', 'none of that id')
  })
}

function checkMembers(walk: StoreWalk): void {
  const form = { keyBytes: UUID_BYTES, keyIsLonger: true, open: packed<Member>('member') }
  walk.table('members', form, ({ key, value, organizationId }) => {
    const own = Buffer.concat([uuidBytes(value.organizationId), Buffer.from(value.name.toLowerCase())])
    if (!own.equals(key))
      walk.wrong('members', organizationId, `the name ${JSON.stringify(value.name)}`, 'the one in its key')
    if (!ROLES.includes(value.role)) walk.wrong('members', organizationId, `the role ${value.role}`, ROLES.join(', '))
  })
}

function checkAuditLog(walk: StoreWalk): void {
  const form = {
    keyBytes: SEQUENCE_OFFSET + SEQUENCE_BYTES,
    mayBeUnattributed: true,
    open: packed<AuditEntry>('audit entry'),
  }
  let before = { organizationId: '', sequence: 0 }
  walk.table('audit-log', form, ({ key, value, organizationId }) => {
    const sequence = Number(key.readBigUInt64BE(SEQUENCE_OFFSET))
    const wrong = (found: string, expected: string): void => walk.wrong('audit-log', organizationId, found, expected)
    if (value.sequence !== sequence || value.organizationId !== organizationId) {
      wrong(`the entry ${value.sequence} of ${value.organizationId} at ${sequence}`, 'the one in its key')
    }
    if (before.organizationId === organizationId && sequence !== before.sequence + 1) {
      wrong(`entry ${sequence} after ${before.sequence}`, `${before.sequence + 1}`)
    }
    before = { organizationId, sequence }
  })
}

function checkSecrets<T extends Secret>(walk: StoreWalk, table: string, index: string, secrets: Secrets<T>): void {
  const hashes = walk.store.environment.table(index)
  walk.table(table, { keyBytes: 2 * UUID_BYTES, open: packed<T>(table) }, ({ key, value, organizationId }) => {
    const wrong = (found: string, expected: string): void =>
      walk.wrong(table, organizationId, `${found} of ${value.visible}`, expected)
    const own = Buffer.concat([uuidBytes(value.organizationId), uuidBytes(value.id)])
    if (!own.equals(key)) wrong(`the id ${value.id}`, 'the one in its key')
    const hash = Buffer.from(value.hash, 'hex')
    const isIndexed = hashes.get(hash)?.equals(key) ?? false
    if (hash.length !== HASH_BYTES) wrong(`a hash of ${hash.length} bytes`, `${HASH_BYTES}`)
    if (value.revokedAtMs === 0 && !isIndexed) wrong(`no entry in ${index}`, 'one, since it is active')
    if (value.revokedAtMs !== 0 && isIndexed) wrong(`an entry in ${index}`, 'none, since it was revoked')
  })
  walk.table(index, { keyBytes: HASH_BYTES, isIndex: true, open: OPEN_BYTES }, ({ key, value }) => {
    walk.unlessUnreadable(() => {
      const secret = secrets.byHash(key)
      if (secret !== undefined && secret.hash === key.toString('hex')) return
      const owner = value.length === 2 * UUID_BYTES ? uuidText(value) : ''
      const found = secret === undefined ? `an entry without a record in ${table}` : `the entry of ${secret.visible}`
      walk.wrong(index, owner, found, 'the entry of an active one with that hash')
    })
  })
}

function checkBindings(walk: StoreWalk): void {
  const tokens = walk.store.monitoringTokens
  const form = { keyBytes: 2 * UUID_BYTES, keyIsLonger: true, open: packed<TokenBinding>('token binding') }
  walk.table('token-bindings', form, ({ key, value, organizationId }) => {
    const { tokenId, tokenHash, network, port } = value
    const own = Buffer.concat([uuidBytes(value.organizationId), uuidBytes(tokenId), Buffer.from(`${network} ${port}`)])
    const wrong = (found: string, expected: string): void =>
      walk.wrong('token-bindings', organizationId, found, expected)
    if (!own.equals(key)) wrong(`the binding of ${tokenId} to ${network} ${port}`, 'the one in its key')
    walk.unlessUnreadable(() => {
      const hash = tokens.get(organizationId, tokenId)?.hash
      if (hash === undefined) wrong(`no token ${tokenId}`, 'the one that is bound')
      else if (hash !== tokenHash) wrong(`another hash than that of the token ${tokenId}`, 'the same')
    })
  })
}
