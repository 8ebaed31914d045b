import { createHash } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { checkedChannel } from '../../../engine/admin/alert-settings.ts'
import { sealedChannel } from '../../../engine/admin/alerts.ts'
import { AlertEvaluator } from '../../../engine/alert/evaluator.ts'
import { checkStore } from '../../../engine/check/check.ts'
import { sealRecord } from '../../../engine/kernel/lmdb/record.ts'
import { DAY_MS } from '../../../engine/kernel/process/clock.ts'
import { SecretsKey } from '../../../engine/kernel/process/secrets-key.ts'
import { CLIENT_BYTES_MAX } from '../../../engine/limits.ts'
import { beginErasure } from '../../../engine/scan/erase-clients.ts'
import { requestScan, runScan } from '../../../engine/scan/scan-runner.ts'
import { SKETCH_BYTES } from '../../../engine/store/candidates.ts'
import { ClientWriter } from '../../../engine/store/client-records.ts'
import { Family } from '../../../engine/store/family.ts'
import { newUuid, u64Bytes, uuidBytes } from '../../../engine/store/keys.ts'
import { NODE_ROLES } from '../../../engine/store/nodes.ts'
import type { Organization } from '../../../engine/store/organizations.ts'
import { NO_ORGANIZATION, Sources } from '../../../engine/store/sources.ts'
import { Store } from '../../../engine/store/store.ts'
import { loadCatalog } from '../../../registry/catalog.ts'
import { report } from '../../support/coverage.ts'
import { platform } from '../../support/own-platforms.ts'
import {
  findingsOf,
  makeOrganization,
  NOON,
  openStore,
  registries,
  Sender,
  type TestStore,
  testClock,
} from '../../support/store.ts'

interface Site extends TestStore {
  readonly id: string
  readonly prefix: Buffer
}

const ITEM = {
  id: 'U1',
  title: 'There is a list of tools',
  recommendation: 'Keep a list',
  weight: 1,
  priority: 1,
  answer: 'no',
  note: '',
} as const

/** Writes a store with a record in every table, all written by the programs' own code. */
function fill(opened: TestStore): void {
  const { store, clock } = opened
  const organization = makeOrganization(opened, 'Acme')
  const { id } = organization
  const administration = new Administration(store, clock)
  administration.members.add(organization, 'alice@acme.example', 'owner')
  administration.members.add(organization, 'bob@acme.example', 'viewer')
  administration.members.remove(organization, 'bob@acme.example')
  administration.accountLinks.setup(organization)
  const provider = { name: 'Okta', issuer: 'https://login.example', clientId: 'console', scopes: ['openid'] }
  const claims = { nameClaim: 'email', groupsClaim: 'groups', defaultRole: 'viewer' } as const
  const settings = { ...provider, ...claims, groups: [] }
  administration.signIn.set(organization, settings, { keyId: '00', sealed: '' })
  administration.apiKeys.create(organization, 'one', ['scores:read'])
  administration.apiKeys.revoke(
    organization,
    administration.apiKeys.create(organization, 'two', ['scores:read']).record.id,
  )
  const catalog = loadCatalog()
  administration.approvals.reject(organization, catalog, ['claude'])
  administration.approvals.add(organization, catalog, ['claude'], { note: 'Pilot', expiresAtMs: NOON + 1000 })
  const { record: token } = administration.tokens.generate(organization, 'firewalls')
  administration.tokens.bind(organization, token.id, [{ network: '192.0.2.0/24', port: 0 }])
  administration.assessments.import(
    organization,
    {
      frameworkId: 'ai-security',
      title: 'Autumn',
      categories: [{ name: 'Use', weight: 1, items: [ITEM] }],
    },
    { complete: true },
  )
  const sender = new Sender()
  const events = ['claude.ai', 'chatgpt.com', 'nobody.example'].map((name) => sender.event(name, NOON))
  const buffered = (): void =>
    store.environment.write(() => {
      store.seenEvents.keepUnseen(id, [{ instance: sender.instance, first: 1, count: 3 }], NOON)
      store.buffer.append(id, events)
    })
  buffered()
  // Enough gaps that some are in a page.
  const gaps = Array.from({ length: 1500 }, (_, at) => ({ instance: 'f'.repeat(16), first: 1 + 2 * at, count: 1 }))
  store.environment.write(() => store.seenEvents.keepUnseen(id, gaps, NOON))
  runScan(store, registries, id, 'schedule', clock)
  clock.add(1)
  buffered()
  const source = {
    organizationId: id,
    tokenId: token.id,
    listener: 'tcp',
    address: '192.0.2.1',
    host: 'fw',
    lastSeenMs: NOON,
    received: 3,
    counts: [2, 0, 1, 0, 0, 0, 0, 0],
    formats: {},
    sample: '',
    zoneMinutes: 0,
    timesUnread: 0,
    hasUnknownToken: false,
  }
  const reject = { ...source, timeMs: NOON, format: '', reason: 'unknown', sample: 'x' }
  store.environment.write(() => {
    beginErasure(store, id)
    store.clientNames.putHost(id, '10.0.0.1', [{ name: 'laptop', fromMs: 0, toMs: NOON }])
    store.clientNames.putNetwork(id, { network: '10.0.0.0/8', name: 'Office' })
    store.clientGroups.put(id, { name: 'Finance', members: ['jdoe'], people: 1 })
    store.savedViews.put(id, { name: 'Waiting', path: '/platforms', query: 'state=waiting' })
    store.sources.add([source, { ...source, organizationId: NO_ORGANIZATION, tokenId: NO_ORGANIZATION }])
    store.sources.addRejects([reject])
    const seen = { firstSeenMs: NOON, lastSeenMs: NOON, requests: 1, withAi: 0, clients: new Uint8Array(SKETCH_BYTES) }
    store.candidates.put(id, { name: 'unknown.ai', ...seen, dismissedAtMs: 0 })
    store.readLines.put(id, Buffer.alloc(16, 1), Buffer.alloc(16, 2), Uint32Array.of(1, 2, 3), NOON)
    requestScan(store, organization, clock)
    store.coverage.add(id, report({ counters: { packets: 100, names: 9 } }), NOON)
    const own = {
      entry: platform('corp-llm', 'llm.corp.example'),
      disabled: false,
      addedAtMs: NOON,
      provisioned: false,
    }
    store.ownPlatforms.put(id, own)
    const framework = { id: 'own-one', organizationId: id, name: 'One', version: '00000000' } as const
    store.ownFrameworks.put({ ...framework, categories: 0, items: 0, addedAtMs: NOON }, [])
    const version = '2026.11.24'
    const bytes = Buffer.from('update')
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    store.registryReleases.put({ version, sha256, keyNumber: 1, installedAtMs: NOON, bytes })
    store.registryReleases.setState({ installed: version, previous: [''], keyNumber: 1 })
    store.logPositions.put({ sequence: 7, created: '2026-11-20T12:00:00Z' })
    const node = { id: newUuid(), name: 'node-1', isPrimary: true, roles: NODE_ROLES, version: '0.1.0' } as const
    store.nodes.put({ ...node, sequence: 7, lastSequence: 8, reportedAtMs: NOON })
    const hash = 'ab'.repeat(32)
    const user = { id: newUuid(), name: 'alice@acme.example', passwordHash: '', createdAtMs: NOON, browsers: [] }
    const member = store.members.get({ organizationId: id, name: 'alice@acme.example' })
    store.users.put(user)
    if (member !== undefined) store.members.put({ ...member, userId: user.id })
    const times = { createdAtMs: NOON, usedAtMs: NOON, confirmedAtMs: NOON }
    const session = { id: newUuid(), userId: user.id, organizationId: id, hash, ...times }
    store.sessions.put({ ...session, address: '192.0.2.1', browser: 'Firefox' })
    const identity = { organizationId: id, issuer: 'https://login.example', subject: 'alice', userId: user.id }
    store.federatedIdentities.put({ ...identity, createdAtMs: NOON, signedInAtMs: NOON })
    store.passkeys.put({
      ...{
        id: newUuid(),
        userId: user.id,
        credentialId: 'AQ',
        publicKey: 'AQ',
        rpId: 'posture.example',
        name: 'laptop',
      },
      ...{
        counter: 0,
        transports: [],
        isSyncable: false,
        isSynced: false,
        createdAtMs: NOON,
        usedAtMs: 0,
        blockedAtMs: 0,
      },
    })
    const link = { id: newUuid(), organizationId: id, label: 'firewall', hash: 'cd'.repeat(32), visible: '12345678' }
    store.blockListLinks.add({ ...link, createdAtMs: NOON, revokedAtMs: 0, blocks: 'rejected', riskMin: 0 })
    store.keyUses.put({ organizationId: id, keyId: store.apiKeys.ofOrganization(id)[0]?.id ?? '', timeMs: NOON })
  })
  addAlerts(opened, organization)
}

const directory = t.testdir()
const filled = { store: new Store(directory), directory, clock: testClock(NOON) }
fill(filled)
const ORGANIZATION_ID = filled.store.organizations.all()[0]?.id ?? ''
await filled.store.close()

/** A store of the test's own with a record in every table. */
function made(t: Parameters<typeof openStore>[0], options: Parameters<typeof openStore>[1] = {}): Site {
  const opened = openStore(t, { ...options, copyOf: filled.directory })
  return { ...opened, id: ORGANIZATION_ID, prefix: uuidBytes(ORGANIZATION_ID) }
}

/** Alerts with a message that waits, and one that is a dead letter. */
function addAlerts({ store, clock, directory }: TestStore, organization: Organization): void {
  const { id } = organization
  const administration = new Administration(store, clock)
  const checked = checkedChannel({ kind: 'webhook', url: 'https://alerts.example' })
  if (checked.kind === 'invalid') throw new Error('an invalid channel')
  const given = { name: 'soc', severityMin: 'low', settings: checked.settings } as const
  const sealed = sealedChannel(new SecretsKey(join(directory, 'secrets.key')), organization, given)
  const channel = administration.alerts.addChannel(organization, sealed)
  administration.alerts.mute(organization, 'coverage-low', true)
  new AlertEvaluator(store, registries, clock).evaluate(id)
  store.environment.write(() => {
    store.alertChannels.append(id, channel.id, '{}', NOON)
    store.alertChannels.fail(id, channel.id, 1, 'refused', NOON)
  })
  const mail = checkedChannel({ kind: 'smtp', host: 'mail.example', from: 'a@acme.example', to: ['b@acme.example'] })
  if (mail.kind === 'invalid') throw new Error('an invalid channel')
  const mailChannel = { name: 'mail', severityMin: 'critical', settings: mail.settings } as const
  const secrets = new SecretsKey(join(directory, 'secrets.key'))
  const sender = administration.alerts.addChannel(organization, sealedChannel(secrets, organization, mailChannel))
  administration.reports.schedule(organization, { every: 'weekly', channel: sender, to: [] })
}

/** Sketches of no clients (DistinctClients.toBytes). */
const NONE = { all: Buffer.from([0]), notApproved: Buffer.from([0]) }

/** Changes the bytes of a record: returns other bytes, or undefined to delete the record. */
type Damage = (bytes: Buffer) => Buffer | undefined

const gone: Damage = () => undefined
const flipped: Damage = (bytes) => {
  const other = Buffer.from(bytes)
  other[other.length - 1] = (other.at(-1) ?? 0) ^ 1
  return other
}

/** Changes fields of a record and updates its checksum. */
function changed<T extends object>(change: (value: T) => object): (site: Site, table: string) => void {
  return (site, table) => {
    const family = new Family<object>(site.store.environment.table(table), table)
    const [first] = family.range(site.prefix)
    if (first === undefined) throw new Error(`nothing in ${table}`)
    family.put(first.key, { ...first.value, ...change(first.value as T) })
  }
}

/**
 * Damages a record of a table: the first, or the one at `at`, which counts from the end if
 * negative.
 */
function record(damage: Damage, at = 0): (site: Site, table: string) => void {
  return ({ store }, name) => {
    const table = store.environment.table(name)
    const { key, value } = [...table.getRange({})].at(at) ?? {}
    if (key === undefined || value === undefined) throw new Error(`nothing in ${name}`)
    const other = damage(value)
    if (other === undefined) table.removeSync(key)
    else table.putSync(key, other)
  }
}

/** Moves a record to another key. */
function movedTo(keyOf: (key: Buffer) => Buffer): (site: Site, table: string) => void {
  return ({ store }, name) => {
    const table = store.environment.table(name)
    for (const { key, value } of [...table.getRange({})].slice(0, 1)) {
      table.removeSync(key)
      table.putSync(keyOf(key), value)
    }
  }
}

const otherLast = (key: Buffer): Buffer => Buffer.concat([key.subarray(0, -1), Buffer.of((key.at(-1) ?? 0) ^ 1)])
const longer = (key: Buffer): Buffer => Buffer.concat([key, Buffer.of(0)])

const CLIENT = { client: '10.0.0.1', matches: 1, lastSeenMs: NOON }

/** Replaces the clients of the first platform and day. */
function putClients(store: Store, id: string, clients: readonly Partial<typeof CLIENT>[]): void {
  const [first] = [...store.clientDays.since(id, 0)]
  if (first === undefined) throw new Error('no clients')
  const writer = new ClientWriter()
  writer.begin(first.day)
  for (const each of clients) {
    const { client, matches, lastSeenMs } = { ...CLIENT, ...each }
    const numbers = {
      methods: 1,
      access: 1,
      matches,
      firstSeenMs: lastSeenMs,
      lastSeenMs,
      bytesSent: 0,
      bytesReceived: 0,
      blocked: 0,
      touched: 0,
    }
    writer.add(Buffer.from(client), 0, client.length, client.length, numbers)
  }
  store.clientDays.write(id, [{ ...first, bytes: writer.end(0) }], 0, CLIENT_BYTES_MAX)
}

type Row = readonly [table: string, name: string, damage: (site: Site, table: string) => void, finds: RegExp]

const SEALED = [
  ...['organizations', 'members', 'audit-log', 'api-keys', 'monitoring-tokens', 'token-bindings', 'sources', 'rejects'],
  'candidates',
  ...['read-lines', 'buffer', 'seen', 'seen-pages', 'evidence', 'detections', 'scans', 'scan-requests', 'scan-states'],
  ...[
    'assessments',
    'assessment-answers',
    'recommendations',
    'published',
    'coverage-sensors',
    'coverage-days',
    'key-uses',
    'own-platforms',
    'own-frameworks',
    'own-framework-items',
    'unmatched-events',
    'decisions',
    'decision-history',
    'daily-use',
    'clients',
    'client-totals',
    'client-summaries',
    'client-summary-totals',
    'block-list-links',
    'client-names',
    'client-networks',
    'client-groups',
    'saved-views',
    'client-erasures',
    'history',
    'identity-providers',
    'federated-identities',
    'alerts',
    'alert-rules',
    'alert-states',
    'alert-reports',
    'alert-channels',
    'alert-channel-states',
    'alert-queue',
    'alert-outcomes',
    'alert-dead-letters',
    'report-schedules',
    'removed-members',
  ],
]
/** Sealed records that belong to no organization. */
const OF_SERVICE = ['registry-releases', 'registry-state', 'log-positions', 'nodes']
/** Sealed records whose keys begin with a user. */
const OF_USERS = ['users', 'sessions', 'passkeys', 'account-links']
const INDEXES = [
  ...[
    'organization-names',
    'api-key-hashes',
    'token-hashes',
    'block-list-link-hashes',
    'api-versions',
    'registry-versions',
  ],
  ...['memberships', 'user-names', 'session-hashes', 'passkey-credentials'],
]
/** Records whose content tells their key. */
const KEYED = [
  ...['members', 'removed-members', 'audit-log', 'api-keys', 'monitoring-tokens', 'block-list-links', 'token-bindings'],
  ...[
    'federated-identities',
    'own-platforms',
    'candidates',
    'sources',
    'scans',
    'client-names',
    'client-networks',
    'client-groups',
    'saved-views',
  ],
  ...['client-summaries', 'history', 'decision-history', 'assessments', 'recommendations', 'own-frameworks', 'alerts'],
  ...['alert-channels', 'report-schedules', 'nodes', ...OF_USERS],
]

/** What is found if the only record of a table is gone. */
const MISSING: Readonly<Record<string, RegExp>> = {
  'organization-names': /^organizations of \S+: found no entry in organization-names for \S+, expected its own$/,
  memberships: /^members of \S+: found no entry in memberships for /,
  'user-names': /^users of \S+ \S+: found no entry in user-names for /,
  'session-hashes': /^sessions of .*found no entry in session-hashes for /,
  'passkey-credentials': /^passkeys of .*found no entry in passkey-credentials for /,
  'api-key-hashes': /^api-keys of \S+: found no entry in api-key-hashes for /,
  'token-hashes': /^monitoring-tokens of \S+: found no entry in token-hashes for /,
  'block-list-link-hashes': /^block-list-links of \S+: found no entry in block-list-link-hashes for /,
  users: /^members of \S+: found a record at \S+ without one in users, expected both$/,
  members: /^memberships of .*found an entry at \S+, expected a record in members with that entry$/,
  sessions: /^session-hashes of .*found an entry at \S+, expected a record in sessions with that entry$/,
  passkeys: /^passkey-credentials of .*found an entry at \S+, expected a record in passkeys with that entry$/,
  'monitoring-tokens': /^token-bindings of \S+: found a binding of the token \S+, expected a token with this id/,
  'registry-versions': /^own-platforms of \S+: found a record at \S+ without one in registry-versions/,
  'registry-releases': /^registry-state of .*without one in registry-releases/,
  'assessment-answers': /^assessments of \S+: found a record at \S+ without one in assessment-answers/,
  assessments: /^assessment-answers of \S+: found a record at \S+ without one in assessments/,
  'own-framework-items': /^own-frameworks of \S+: found a record at \S+ without one in own-framework-items/,
  'own-frameworks': /^own-framework-items of \S+: found a record at \S+ without one in own-frameworks/,
  'scan-requests': /the pending scan \S+ without its request, expected one$/,
  'scan-states': /^scans of \S+: found a record at \S+ without one in scan-states/,
  decisions: /decision 1 about claude, expected the 50 up to 0$/,
  scans: /^scan-states of \S+: found 2 stored scans, expected 1$/,
  'client-totals': /^clients of \S+: found a record at \S+ without one in client-totals/,
  'client-summary-totals': /^client-summaries of \S+: found a record at \S+ without one in client-summary-totals/,
  clients: /^client-totals of \S+: found \d records of \d+ bytes, expected \d of \d+$/,
  published: /part 1 of discovery without a head, expected the head before it$/,
  buffer: /^buffer of \S+: found no chunk, expected those of 3 entries$/,
  'seen-pages': /^seen of \S+: found \d+ pages through \d+, expected 0 through 0$/,
}

const ROWS: readonly Row[] = [
  ...SEALED.map(
    (table): Row => [
      table,
      `a byte of a record in ${table} is flipped`,
      record(flipped),
      /found .*the checksum does not match; restore a backup, expected a valid record at [0-9a-f.]+$|^\S+ of \S+: found unexpected fields at .*the checksum does not match/,
    ],
  ),
  ...SEALED.filter((table) => table !== 'organizations').map(
    (table): Row => [
      table,
      `a record in ${table} belongs to an unknown organization`,
      movedTo((key) => Buffer.concat([Buffer.alloc(16, 9), key.subarray(16)])),
      /of 09090909-0909-0909-0909-090909090909: found a record at 09+\S*, expected an organization of that id$/,
    ],
  ),
  ...OF_USERS.map(
    (table): Row => [
      table,
      `a byte of a record in ${table} flips`,
      record(flipped),
      /the checksum does not match; restore a backup/,
    ],
  ),
  ...KEYED.map(
    (table): Row => [
      table,
      `a record in ${table} is stored under another key`,
      movedTo(otherLast),
      /: found a record at [0-9a-f.]+, expected its key, [0-9a-f.]+$/,
    ],
  ),
  ...['read-lines', 'buffer', 'seen', 'seen-pages', 'daily-use', 'coverage-sensors', 'alert-outcomes'].map(
    (table): Row => [
      table,
      `a key in ${table} is too long`,
      movedTo(longer),
      /found a key of \d+ bytes, \S+, expected \d+ bytes$/,
    ],
  ),
  ...Object.entries(MISSING).map(
    ([table, finds]): Row => [table, `a record in ${table} is missing`, record(gone), finds],
  ),
  [
    'seen',
    'pages of ranges without their head',
    record(gone, -1),
    /^seen-pages of \S+: found a record at \S+ without one in seen, expected both$/,
  ],
  [
    'organization-removals',
    'a removed organization exists',
    ({ store, id }) => store.removals.put({ organizationId: id, name: 'Acme', removedAtMs: NOON }),
    /an organization that was removed, expected none of that id$/,
  ],
  [
    'members',
    'a record of a later release',
    record((bytes) => sealRecord(9, bytes.subarray(5))),
    /found member: found version 9, this release reads 1 to 1, expected a valid record/,
  ],
  [
    'scans',
    'a record of another type with a valid checksum',
    record(() => sealRecord(1, Buffer.of(0xc0))),
    /found unexpected fields at \S+ \(Cannot .*\), expected the current format$/,
  ],
  [
    'organization-names',
    'a name without an organization',
    record(() => Buffer.alloc(16, 7)),
    /^organization-names of no organization: found an entry at \S+, expected a record in organizations with/,
  ],
  ['audit-log', 'a missing audit entry', record(gone, 2), /^audit-log of \S+: found entry 4 after 2, expected 3$/],
  [
    'api-keys',
    'the hash of a revoked key',
    ({ store, id }) => {
      for (const key of store.apiKeys.ofOrganization(id)) store.apiKeys.replace({ ...key, revokedAtMs: NOON })
    },
    /^api-key-hashes of .*found an entry at \S+, expected a record in api-keys with that entry$/,
  ],
  [
    'token-bindings',
    'a binding with another hash',
    changed(() => ({ tokenHash: 'ab' })),
    /found a binding of the token \S+, expected a token with this id and this hash$/,
  ],
  [
    'sources',
    'more messages counted than received',
    changed(() => ({ received: 1 })),
    /^sources of \S+: found -2 messages of tcp not counted, expected 0 or more$/,
  ],
  [
    'rejects',
    'a rejected message of another organization',
    changed(() => ({ organizationId: NO_ORGANIZATION })),
    /^rejects of \S+: found a record at \S+, expected its key, 0000/,
  ],
  [
    'read-lines',
    'truncated hashes of messages',
    record((bytes) => sealRecord(1, bytes.subarray(5, -1))),
    /hashes of log messages: 1 versions fill 24 bytes of 23/,
  ],
  ['buffer', 'a missing queue state', record(gone, -1), /1 chunks without the queue's state/],
  [
    'buffer',
    'a moved chunk',
    movedTo((key) => Buffer.concat([key.subarray(0, 16), u64Bytes(5)])),
    /the next sequence 7, expected 8$/,
  ],
  [
    'buffer',
    'descending sequences',
    record(() => stateBytes(3, 5, 0), -1),
    /the sequences 5 to 3, expected whole numbers/,
  ],
  ['buffer', 'a wrong footprint', record(() => stateBytes(7, 4, 12), -1), /a footprint of 12 bytes, expected \d+$/],
  [
    'buffer',
    'waiting events that have been removed',
    record(() => stateBytes(7, 7, 0), -1),
    /1 chunks, expected none, since the queue is empty$/,
  ],
  ['buffer', 'missing older events', record(() => stateBytes(7, 2, 0), -1), /4 as the oldest entry, expected 2$/],
  [
    'buffer',
    'an entry that is not an event',
    record(() => chunkBytes([Buffer.of(1), Buffer.of(2), Buffer.of(3)])),
    /in entry 4: .*, expected a valid entry$/,
  ],
  [
    'buffer',
    'wrong lengths in a chunk',
    record(() => sealRecord(1, Buffer.from('00000000000000000100ff00', 'hex'))),
    /queue: 1 entries fill \d+ bytes, their chunk has 12/,
  ],
  ...[[1, 5, 4, 9], [1], [], [5, 1]].map(
    (ranges): Row => [
      'seen',
      `the ranges [${ranges}]`,
      changed(() => ({ ranges })),
      /^seen of \S+: found the ranges [\d ]*, expected pairs that ascend from \d+ to \d+$/,
    ],
  ),
  [
    'seen-pages',
    'a page of ranges reaches beyond its last sequence',
    changed(() => ({ ranges: [1, 2 ** 40] })),
    /found the ranges 1 1099511627776, expected pairs that ascend from 0 to \d+$/,
  ],
  ...(
    [
      [
        'methods that do not add up',
        { byMethod: { dns: 7 } },
        /found 7 matches by methods of \S+ on day \d+, expected \d$/,
      ],
      ['roles that do not add up', { byRole: {} }, /0 matches by roles/],
      ['purposes that do not add up', { byPurpose: { use: 7 } }, /7 matches by purposes/],
      ['names that do not add up', { otherNames: 5 }, /\d matches by names/],
      [
        'more matches by access than used ones',
        { byAccess: { web: 99 } },
        /99 matches by access of .*the \d+ used ones$/,
      ],
      ['more blocked than matched', { blocked: 9 }, /9 matches blocked of \S+ on day \d+, expected 0 to \d$/],
      ['more matches by source than in all', { bySource: { '1a2b3c4d': 1000 } }, /1000 matches by source .*0 to \d$/],
      ['use without strength', { domainStrength: 0 }, /the strength 0 of \S+ on day \d+, expected more than 0/],
      ['an end before the beginning', { firstSeenMs: NOON + 1 }, /not before the beginning$/],
      ['another day', { firstSeenMs: 0, lastSeenMs: 0 }, /the times 0 to 0 of .*an end on that day/],
      ['a sketch in an unknown format', { clients: Buffer.of(0, 1, 2) }, /a sketch of 3 bytes/],
      ['a damaged sketch of the clients of the API', { apiClients: Buffer.from([7]) }, /a sketch of 1 bytes/],
    ] as const
  ).map(([name, change, finds]): Row => ['evidence', `evidence: ${name}`, changed(() => change), finds]),
  [
    'clients',
    'clients with more matches than their platform',
    ({ store, id }) => putClients(store, id, [{ client: '10.0.0.1', matches: 70 }]),
    /^clients of \S+: found 70 matches by client of \S+ on day \d+, expected at most \d$/,
  ],
  [
    'clients',
    'a client twice',
    ({ store, id }) => putClients(store, id, [CLIENT, CLIENT]),
    /found the client 10\.0\.0\.1 {2}twice in/,
  ],
  [
    'clients',
    'a record without clients',
    ({ store, id }) => putClients(store, id, []),
    /found 0 clients of \S+ on day \d+, expected 1 to 1000$/,
  ],
  [
    'clients',
    'clients of another day',
    ({ store, id }) => putClients(store, id, [{ ...CLIENT, lastSeenMs: NOON - DAY_MS }]),
    /expected one of that day$/,
  ],
  [
    'client-summary-totals',
    'more clients in the list than are counted',
    changed(() => ({ clients: 0 })),
    /^client-summary-totals of \S+: found 0 clients, expected \d$/,
  ],
  [
    'client-summaries',
    'days of a client that are not in order',
    changed(() => ({ days: new Uint8Array(Float64Array.of(9, 1, 0, 0, 0, 8, 1, 0, 0, 0).buffer) })),
    /^client-summaries of \S+: found the days of \S+, expected days in order from \d+$/,
  ],
  [
    'history',
    'fewer platforms in the history than found',
    changed(() => ({ platforms: [] })),
    /found 0 AI platforms and 0 others in the scan of \d+, expected \d and \d$/,
  ],
  [
    'report-schedules',
    'a report schedule without its mail channel',
    changed(() => ({ channelId: '11111111-1111-4111-8111-111111111111' })),
    /^report-schedules of \S+: found a record at \S+ without one in alert-channels, expected both$/,
  ],
  ...(
    [
      ['days in disorder', [2, 2].map((day) => ({ day, approved: 0, notApproved: 1 })), /day 2 after day 2/],
      ['a negative count of clients', [{ day: 1, approved: -1, notApproved: 0 }], /-1 and 0 clients on day 1/],
      [
        'sketches that come to another count',
        [{ day: 1, approved: 0, notApproved: 1, sketches: NONE }],
        /those of its sketches$/,
      ],
      [
        'sketches of an earlier day',
        [
          { day: 1, approved: 0, notApproved: 0, sketches: NONE },
          { day: 2, approved: 0, notApproved: 0 },
        ],
        /0 and 0 clients on day 1, expected those of its sketches$/,
      ],
    ] as const
  ).map(
    ([name, days, finds]): Row => [
      'daily-use',
      `daily use: ${name}`,
      ({ store, id }: Site) => store.dailyUse.put(id, days),
      finds,
    ],
  ),
  [
    'decision-history',
    'the last decision is missing in the history',
    record(gone, -1),
    /decision 2 about claude, expected the one of the history$/,
  ],
  [
    'decisions',
    'another expiry than in the history',
    changed<Record<string, object>>(({ claude }) => ({ claude: { ...claude, expiresAtMs: 7 } })),
    /decision 2 about claude, expected the one of the history$/,
  ],
  ...(
    [
      ['a completed scan without an end', { completedAtMs: 0 }],
      ['a completed scan with a reason', { failure: 'why' }],
      ['a running scan with an end', { status: 'running' }],
    ] as const
  ).map(
    ([name, change]): Row => [
      'scans',
      name,
      changed(() => change),
      /the \S+ scan \S+ from \d+ to \d+, ".*", expected times and a reason of that status$/,
    ],
  ),
  [
    'scans',
    'two pending scans',
    changed(() => ({ status: 'pending', startedAtMs: 0, completedAtMs: 0 })),
    /2 pending scans and 0 running ones, expected one of each at most$/,
  ],
  [
    'scan-requests',
    'a request for a missing scan',
    changed(() => ({ requestedAtMs: 1 })),
    /^scan-requests of \S+: found a request of scan \S+, gone, expected pending$/,
  ],
  [
    'assessments',
    'a completed assessment without a result',
    changed(() => ({ result: null, completedAtMs: 0 })),
    /found \S+, completed, completed at 0, expected a time and a result$/,
  ],
  [
    'assessments',
    "a score missing from the API's list",
    changed<{ result: object }>(({ result }) => ({ result: { ...result, overallScore: 99 } })),
    /^published of \S+: found 1 of scores, expected the 1 in the records$/,
  ],
  [
    'recommendations',
    "a recommendation that differs from the API's list",
    changed(() => ({ title: 'Other' })),
    /found 1 of recommendations, expected the 1 in the records$/,
  ],
  [
    'published',
    'a missing part',
    record(gone, 1),
    /^published of \S+: found 0 elements of discovery with the tag \S+, expected 2 with \S+, as in its head$/,
  ],
  ...(
    [
      ['a head with another tag', 0, 0],
      ['a head with a count that is too high', 19, 0],
      ['an element that differs', 404, 1],
    ] as const
  ).map(
    ([name, byte, at]): Row => [
      'published',
      name,
      record((bytes) => resealed(bytes, byte), at),
      /elements of discovery with the tag \S+, expected \d+ with \S+, as in its head$/,
    ],
  ),
  ...(
    [
      ['a prepared body that differs', 3],
      ['a compressed body that differs', 2],
    ] as const
  ).map(
    ([name, at]): Row => [
      'published',
      name,
      record((bytes) => resealed(bytes, 30), at),
      /^published of \S+: found another ready body of discovery, expected that of its parts$/,
    ],
  ),
  [
    'key-uses',
    'a use of a nonexistent key',
    movedTo(otherLast),
    /^key-uses of \S+: found a record at \S+ without one in api-keys, expected both$/,
  ],
  ...['api-versions', 'registry-versions'].map(
    (table): Row => [
      table,
      `a version in ${table} in an unknown format`,
      record(() => Buffer.from('x')),
      /found the version NaN, expected a whole number from 1$/,
    ],
  ),
  [
    'federated-identities',
    'an identity without a user',
    changed(() => ({ userId: newUuid() })),
    /^federated-identities of \S+: found a record at \S+ without one in users, expected both$/,
  ],
  [
    'removed-members',
    'a removed member who is a member',
    ({ store, id }) => {
      const removed = { organizationId: id, name: 'alice@acme.example', role: 'viewer', removedAtMs: NOON } as const
      store.environment.write(() => store.removedMembers.put({ ...removed, identities: [] }))
    },
    /^removed-members of \S+: found the member "\S+", expected none of this name$/,
  ],
  [
    'identity-providers',
    'a provider of another organization',
    changed(() => ({ organizationId: newUuid() })),
    /^identity-providers of \S+: found a record at \S+, expected its key, /,
  ],
  [
    'own-platforms',
    'an invalid custom platform',
    changed(() => ({ entry: { id: 'corp-llm', url: 'nowhere' } })),
    /^own-platforms of \S+: found the entry corp-llm, expected one of a registry file$/,
  ],
  [
    'registry-releases',
    'a release of the registry that was changed',
    ({ store }) => {
      const release = store.registryReleases.get('2026.11.24')
      if (release !== undefined) store.registryReleases.put({ ...release, bytes: Buffer.from('other') })
    },
    /found the SHA-256 [0-9a-f]{64}, expected [0-9a-f]{64}$/,
  ],
  [
    'published',
    'a list unknown to the API',
    movedTo((key) => Buffer.concat([key.subarray(0, 16), Buffer.of(9), key.subarray(17)])),
    /found a list 9, expected one that the API has$/,
  ],
]

function stateBytes(next: number, first: number, footprint: number): Buffer {
  const bytes = Buffer.alloc(24)
  for (const [index, value] of [next, first, footprint].entries()) bytes.writeDoubleLE(value, index * 8)
  return sealRecord(1, bytes)
}

function chunkBytes(entries: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(10 + entries.length * 2)
  head.writeUInt16LE(entries.length, 8)
  for (const [index, { length }] of entries.entries()) head.writeUInt16LE(length, 10 + index * 2)
  return sealRecord(1, Buffer.concat([head, ...entries]))
}

/** Changes one byte of the payload and updates the checksum. */
function resealed(bytes: Buffer, at: number): Buffer {
  const payload = Buffer.from(bytes.subarray(5))
  payload[at] = (payload[at] ?? 0) ^ 1
  return sealRecord(1, payload)
}

t.test('a store written by the programs passes, and every table has a record', async (t) => {
  const { store } = made(t)
  const asked: number[] = []
  const { findings, findingsCount, records } = checkStore(store, (_, total) => asked.push(total))
  t.same(findings, [])
  t.equal(findingsCount, 0)
  // An organization that is removed has no other record that could be checked.
  const { 'organization-removals': removals, ...others } = records
  t.equal(removals, 0)
  for (const [name, count] of Object.entries(others)) t.ok(count > 0, name)
  t.same(Object.keys(others).sort(), [...SEALED, ...OF_USERS, ...OF_SERVICE, ...INDEXES].sort())
  t.ok(asked.length > 0)
})

for (const [table, name, damage, finds] of ROWS) {
  t.test(`found: ${name}`, async (t) => {
    const site = made(t, { unchecked: true })
    site.store.environment.write(() => damage(site, table))
    const lines = findingsOf(site.store)
    t.ok(
      lines.some((line) => finds.test(line)),
      lines.join('\n') || 'nothing was found',
    )
    t.ok(lines.every((line) => !line.includes('\n')))
  })
}

t.test('of very many findings, the first are listed and all are counted', async (t) => {
  const { store } = openStore(t, { unchecked: true })
  const sources = new Sources(store.environment)
  const reject = {
    organizationId: '99999999-9999-4999-8999-999999999999',
    timeMs: 1,
    listener: 'tcp',
    address: '',
    host: '',
  }
  store.environment.write(() => {
    for (let times = 0; times < 3; times++) {
      sources.addRejects(
        Array.from({ length: 500 }, () => ({ ...reject, tokenId: '', format: '', reason: '', sample: '' })),
      )
    }
    for (let index = 0; index < 1200; index++) store.environment.table('members').putSync(u64Bytes(index), Buffer.of(1))
  })
  const { findings, findingsCount } = checkStore(store)
  t.equal(findings.length, 1000)
  t.equal(findingsCount, 1700)
})

t.test('the progress callback can end a check', async (t) => {
  const { store } = made(t)
  t.throws(
    () =>
      checkStore(store, () => {
        throw new Error('given up')
      }),
    /given up/,
  )
})
