import { createHash } from 'node:crypto'
import { changedEntry } from '../../registry/registry-file.ts'
import type { LogPosition } from '../cluster/log/event-log.ts'
import { addressBytes, networkOf } from '../kernel/process/network.ts'
import type { AlertChannel, AlertChannelState, DeadLetter, MessageOutcome } from '../store/alert-channels.ts'
import type { AlertRules, AlertState, ReportedCondition } from '../store/alerts.ts'
import type { Assessment, AssessmentCategory } from '../store/assessments.ts'
import type { Candidate } from '../store/candidates.ts'
import type { ClientErasure } from '../store/client-erasures.ts'
import { type ClientGroup, groupKey } from '../store/client-groups.ts'
import type { NamedNetwork } from '../store/client-names.ts'
import type { StoredDay, StoredSensor } from '../store/coverage.ts'
import type { Detection } from '../store/evidence.ts'
import type { TemplateCategory } from '../store/framework.ts'
import { textKey, UUID_BYTES, u64Bytes, uuidBytes, uuidText } from '../store/keys.ts'
import {
  type FederatedIdentity,
  federatedIdentityKey,
  type IdentityProvider,
  type Member,
  memberKey,
  type RemovedMember,
} from '../store/members.ts'
import type { ClusterNode } from '../store/nodes.ts'
import type { Organization } from '../store/organizations.ts'
import type { OwnFramework } from '../store/own-frameworks.ts'
import type { OwnPlatform } from '../store/own-platforms.ts'
import { openBlock } from '../store/read-lines.ts'
import type { Recommendation } from '../store/recommendations.ts'
import type { ReleaseState, StoredRelease } from '../store/registry-releases.ts'
import type { Removal } from '../store/removals.ts'
import type { ReportSchedule } from '../store/report-schedules.ts'
import { type SavedView, viewKey } from '../store/saved-views.ts'
import type { ScanRequest } from '../store/scans.ts'
import type { Secret, TokenBinding } from '../store/secrets.ts'
import type { Reject } from '../store/sources.ts'
import { type AccountLink, credentialKey, type Passkey, type Session, type User } from '../store/users.ts'
import { type Form, packed, type StoreWalk, type Visited, type Wrong } from './walk.ts'

const DAY_BYTES = 4
const INSTANCE_BYTES = 8
const ADDRESS_BYTES = 16
const BLOCK_HASHES_BYTES = 32
const CHANNEL_KEY_BYTES = 2 * UUID_BYTES
const MESSAGE_KEY_BYTES = CHANNEL_KEY_BYTES + 8

const ids = (...all: readonly string[]): Buffer => Buffer.concat(all.map(uuidBytes))
const ownKey = ({ organizationId, id }: { readonly organizationId: string; readonly id: string }): Buffer =>
  ids(organizationId, id)
const numberedKey = (value: { readonly organizationId: string; readonly sequence: number }): Buffer =>
  Buffer.concat([uuidBytes(value.organizationId), u64Bytes(value.sequence)])
const lowerCase = ({ name }: { readonly name: string }): Buffer => Buffer.from(name.toLowerCase())

/** A family whose records can be checked one by one. */
function family<T>(
  table: string,
  form: Form<T>,
  visit?: (walk: StoreWalk, record: Visited<T>, wrong: Wrong) => void,
): (walk: StoreWalk) => void {
  return (walk) => walk.table(table, form, visit && ((record, wrong) => visit(walk, record, wrong)))
}

/** Records of which each has the next number of its organization. */
function numbered<T extends { readonly organizationId: string; readonly sequence: number }>(
  table: string,
  what: string,
  mayBeUnattributed: boolean,
): (walk: StoreWalk) => void {
  return (walk) => {
    let before = { organizationId: '', sequence: 0 }
    walk.table(table, { open: packed<T>(what), keyOf: numberedKey, mayBeUnattributed }, ({ value }, wrong) => {
      const { organizationId, sequence } = value
      if (before.organizationId === organizationId && sequence !== before.sequence + 1)
        wrong(`entry ${sequence} after ${before.sequence}`, `${before.sequence + 1}`)
      before = { organizationId, sequence }
    })
  }
}

/** Secrets, and the hashes of those that were not revoked. */
const secrets = (table: string, index: string): ((walk: StoreWalk) => void) =>
  family<Secret>(table, {
    open: packed(table),
    keyOf: ownKey,
    index: {
      table: index,
      keyOf: ({ hash, revokedAtMs }) => (revokedAtMs === 0 ? Buffer.from(hash, 'hex') : undefined),
    },
  })

/** Numbers that grow with each change, so that threads see that something changed. */
const versions = (table: string): ((walk: StoreWalk) => void) =>
  family<Buffer>(
    table,
    { open: (bytes) => bytes, keyBytes: UUID_BYTES, mayBeUnattributed: true },
    (_walk, { value }, wrong) => {
      const found = value.length === 8 ? value.readDoubleLE(0) : Number.NaN
      if (!(Number.isSafeInteger(found) && found > 0)) wrong(`the version ${found}`, 'a whole number from 1')
    },
  )

/** Records of an alert channel, or of one of its messages. */
const ofChannel = <T>(table: string, what: string, keyBytes: number): ((walk: StoreWalk) => void) =>
  family<T>(table, {
    open: packed(what),
    keyBytes,
    needs: (_value, key) => [['alert-channels', key.subarray(0, CHANNEL_KEY_BYTES)]],
  })

/** Two records at one key: what is listed, and its content. */
const withPart = <T>(table: string, what: string, part: string, keyOf?: (value: T) => Buffer) =>
  family<T>(table, { open: packed(what), needs: (_value, key) => [[part, key]], ...(keyOf && { keyOf }) })

/** Each family whose records need no other ones to be checked than those they name. */
const FAMILIES: readonly ((walk: StoreWalk) => void)[] = [
  family<Organization>('organizations', {
    open: packed('organization'),
    keyOf: ({ id }) => uuidBytes(id),
    index: { table: 'organization-names', keyOf: lowerCase },
  }),
  family<Removal>(
    'organization-removals',
    {
      open: packed('removal of an organization'),
      isIndex: true,
      keyOf: ({ organizationId }) => uuidBytes(organizationId),
    },
    (walk, { key }, wrong) => {
      if (walk.hasOrganization(uuidText(key))) wrong('an organization that was removed', 'none of that id')
    },
  ),
  family<Member>('members', {
    open: packed('member'),
    keyOf: memberKey,
    needs: ({ userId }) => (userId === undefined ? [] : [['users', uuidBytes(userId)]]),
    index: {
      table: 'memberships',
      keyOf: ({ userId, organizationId }) => (userId === undefined ? undefined : ids(userId, organizationId)),
    },
  }),
  family<RemovedMember>(
    'removed-members',
    { open: packed('removed member'), keyOf: memberKey },
    (walk, { value, organizationId }, wrong) => {
      if (walk.store.members.get({ organizationId, name: value.name }) !== undefined)
        wrong(`the member ${JSON.stringify(value.name)}`, 'none of this name')
    },
  ),
  family<User>('users', {
    open: packed('user'),
    isIndex: true,
    keyOf: ({ id }) => uuidBytes(id),
    index: { table: 'user-names', keyOf: (user) => (user.isFederated === true ? undefined : lowerCase(user)) },
  }),
  family<Session>('sessions', {
    open: packed('session'),
    isIndex: true,
    keyOf: ({ userId, id }) => ids(userId, id),
    needs: ({ userId }) => [['users', uuidBytes(userId)]],
    index: { table: 'session-hashes', keyOf: ({ hash }) => Buffer.from(hash, 'hex') },
  }),
  family<Passkey>('passkeys', {
    open: packed('passkey'),
    isIndex: true,
    keyOf: ({ userId, id }) => ids(userId, id),
    needs: ({ userId }) => [['users', uuidBytes(userId)]],
    index: { table: 'passkey-credentials', keyOf: ({ credentialId }) => credentialKey(credentialId) },
  }),
  family<AccountLink>('account-links', {
    open: packed('account link'),
    isIndex: true,
    keyOf: ({ hash }) => Buffer.from(hash, 'hex'),
    needs: ({ organizationId }) => (organizationId === '' ? [] : [['organizations', uuidBytes(organizationId)]]),
  }),
  family<IdentityProvider>('identity-providers', {
    open: packed('identity provider'),
    keyOf: ({ organizationId }) => uuidBytes(organizationId),
  }),
  family<FederatedIdentity>('federated-identities', {
    open: packed('federated identity'),
    keyOf: federatedIdentityKey,
    needs: ({ userId, organizationId }) => [
      ['users', uuidBytes(userId)],
      ['memberships', ids(userId, organizationId)],
    ],
  }),
  numbered('audit-log', 'audit entry', true),
  secrets('api-keys', 'api-key-hashes'),
  secrets('monitoring-tokens', 'token-hashes'),
  secrets('block-list-links', 'block-list-link-hashes'),
  withPart<number>('key-uses', 'use of an API key', 'api-keys'),
  family<TokenBinding>(
    'token-bindings',
    {
      open: packed('token binding'),
      keyOf: ({ organizationId, tokenId, network, port }) =>
        Buffer.concat([ids(organizationId, tokenId), Buffer.from(`${network} ${port}`)]),
    },
    (walk, { value: { tokenId, tokenHash }, organizationId }, wrong) => {
      if (walk.store.monitoringTokens.get(organizationId, tokenId)?.hash !== tokenHash)
        wrong(`a binding of the token ${tokenId}`, 'a token with this id and this hash')
    },
  ),
  versions('api-versions'),
  versions('registry-versions'),
  family<OwnPlatform>(
    'own-platforms',
    {
      open: packed('custom platform'),
      mayBeUnattributed: true,
      keyOf: ({ entry }, organizationId) => textKey(organizationId, entry.id),
      needs: (_value, key) => [['registry-versions', key.subarray(0, UUID_BYTES)]],
    },
    (_walk, { value: { entry } }, wrong) => {
      if (!changedEntry.safeParse(entry).success) wrong(`the entry ${entry.id}`, 'one of a registry file')
    },
  ),
  family<StoredRelease>(
    'registry-releases',
    { open: packed('release of the registry'), isIndex: true, keyOf: ({ version }) => Buffer.from(version) },
    (_walk, { value: { bytes, sha256 } }, wrong) => {
      const found = createHash('sha256').update(bytes).digest('hex')
      if (found !== sha256) wrong(`the SHA-256 ${found}`, sha256)
    },
  ),
  family<ReleaseState>('registry-state', {
    open: packed('state of the registry'),
    isIndex: true,
    needs: ({ installed, previous }) =>
      [installed, ...previous]
        .filter((version) => version !== '')
        .map((version) => ['registry-releases', Buffer.from(version)]),
  }),
  family<LogPosition>('log-positions', { open: packed('position in a log'), isIndex: true }),
  family<ClusterNode>('nodes', { open: packed('node'), isIndex: true, keyOf: ({ id }) => uuidBytes(id) }),
  family<Candidate>('candidates', {
    open: packed('candidate'),
    keyOf: ({ name }, organizationId) => textKey(organizationId, name),
  }),
  family<Reject>('rejects', {
    open: packed('rejected message'),
    mayBeUnattributed: true,
    keyOf: ({ organizationId }, _owner, key) => Buffer.concat([uuidBytes(organizationId), key.subarray(-8)]),
  }),
  family('read-lines', { open: openBlock, keyBytes: UUID_BYTES + BLOCK_HASHES_BYTES }),
  family<Detection>('detections', { open: packed('detection') }),
  family<ScanRequest>(
    'scan-requests',
    { open: packed('scan request'), keyBytes: UUID_BYTES },
    (walk, { value, organizationId }, wrong) => {
      const status = walk.store.scans.pending(organizationId)?.status ?? 'gone'
      if (status !== 'pending') wrong(`a request of scan ${value.scanId}, ${status}`, 'pending')
    },
  ),
  family<ClientErasure>('client-erasures', { open: packed('erasure of clients'), keyBytes: UUID_BYTES }),
  family<{ readonly address: string }>('client-names', {
    open: packed('name of a client'),
    keyOf: ({ address }, organizationId) =>
      Buffer.concat([uuidBytes(organizationId), addressBytes(address) ?? Buffer.alloc(ADDRESS_BYTES)]),
  }),
  family<NamedNetwork>('client-networks', {
    open: packed('named network'),
    keyOf: ({ network }, organizationId) => {
      const { bytes, prefixBits } = networkOf(network) ?? { bytes: [], prefixBits: 0 }
      return Buffer.from([...uuidBytes(organizationId), ...bytes, prefixBits])
    },
  }),
  family<ClientGroup>('client-groups', {
    open: packed('group of clients'),
    keyOf: (group, organizationId) => groupKey(organizationId, group),
  }),
  family<SavedView>('saved-views', {
    open: packed('saved view'),
    keyOf: (view, organizationId) => viewKey(organizationId, view),
  }),
  family<StoredSensor>('coverage-sensors', {
    open: packed("sensor's coverage"),
    keyBytes: UUID_BYTES + INSTANCE_BYTES,
  }),
  family<StoredDay>('coverage-days', { open: packed('coverage of a day'), keyBytes: UUID_BYTES + DAY_BYTES }),
  family<Assessment>(
    'assessments',
    { open: packed('assessment'), keyOf: ownKey, needs: (_value, key) => [['assessment-answers', key]] },
    (_walk, { value: { id, status, completedAtMs, result } }, wrong) => {
      const isCompleted = status === 'completed'
      if (completedAtMs > 0 !== isCompleted || (result !== null) !== isCompleted)
        wrong(`${id}, ${status}, completed at ${completedAtMs}`, isCompleted ? 'a time and a result' : 'neither')
    },
  ),
  withPart<readonly AssessmentCategory[]>('assessment-answers', 'answers of an assessment', 'assessments'),
  family<Recommendation>('recommendations', {
    open: packed('recommendation'),
    keyOf: ({ organizationId, frameworkId, itemId }) =>
      textKey(organizationId, `${frameworkId}\0${itemId.toLowerCase()}`),
  }),
  withPart<OwnFramework>('own-frameworks', 'own framework', 'own-framework-items', ({ organizationId, id }) =>
    textKey(organizationId, id),
  ),
  withPart<readonly TemplateCategory[]>('own-framework-items', 'items of an own framework', 'own-frameworks'),
  numbered('alerts', 'alert', false),
  family<AlertRules>('alert-rules', { open: packed('alert rules'), keyBytes: UUID_BYTES }),
  family<AlertState>('alert-states', { open: packed('state of alerts'), keyBytes: UUID_BYTES }),
  family<ReportedCondition>('alert-reports', { open: packed('reported condition') }),
  family<AlertChannel>('alert-channels', { open: packed('alert channel'), keyOf: ownKey }),
  ofChannel<AlertChannelState>('alert-channel-states', 'state of an alert channel', CHANNEL_KEY_BYTES),
  ofChannel<MessageOutcome>('alert-outcomes', 'outcome of an alert message', MESSAGE_KEY_BYTES),
  ofChannel<DeadLetter>('alert-dead-letters', 'dead letter', MESSAGE_KEY_BYTES),
  family<ReportSchedule>('report-schedules', {
    open: packed('report schedule'),
    keyOf: ownKey,
    needs: ({ organizationId, channelId }) => [['alert-channels', ids(organizationId, channelId)]],
  }),
]

/** Checks that records are stored under their keys, can be found by their indexes, and have what they name. */
export function checkFamilies(walk: StoreWalk): void {
  for (const check of FAMILIES) check(walk)
}
