import { join } from 'node:path'
import type { StoreCheck } from '../check/check.ts'
import { checkInThread } from '../check/check-thread.ts'
import { LMDB_VERSION } from '../kernel/lmdb/environment.ts'
import { certificateProblem } from '../kernel/process/certificate-expiry.ts'
import { Fault, isFault } from '../kernel/process/error-codes.ts'
import { programVersion } from '../kernel/process/version.ts'
import { SCHEMA_VERSION } from '../store/migrate.ts'
import type { Organization } from '../store/organizations.ts'
import { SCAN_STATUSES, type ScanStatus } from '../store/scans.ts'
import type { Store } from '../store/store.ts'
import { type Commands, query, table, timeText } from './command.ts'
import { longWork } from './long-work.ts'
import { printKeyProblems } from './service-options.ts'

type Environment = Store['environment']

const about = table<Environment>(
  [
    ['Program version', 'version', { of: () => programVersion() }],
    ['Schema version', 'schema_version'],
    [null, 'schema_version_newest', { of: () => SCHEMA_VERSION }],
    ['Node.js version', 'node_version', { of: () => process.versions.node }],
    ['LMDB version', 'lmdb_version', { of: () => LMDB_VERSION }],
    ['Path', 'path'],
    ['Store bytes', 'store_bytes', { of: (environment) => environment.space().fileBytes }],
    ['Unused bytes', 'unused_bytes', { of: (environment) => environment.space().unusedBytes }],
    ['Free bytes on disk', 'disk_free_bytes', { of: (environment) => environment.space().diskFreeBytes }],
    ['Minimum free bytes', 'disk_free_bytes_min', { of: (environment) => environment.space().freeBytesMin }],
    ['Disk full', 'disk_full', { of: ({ full }) => full }],
  ],
  { vertical: true },
)

const tables = table<{ table: string; records: number; bytes: number }>([
  ['Table', 'table'],
  ['Records', 'records'],
  ['Bytes', 'bytes'],
])

const organizations = table<Readonly<Record<string, unknown>>>([
  ['Organization', 'organization', { wrap: true }],
  [null, 'id'],
  ['Active keys', 'active_api_keys', { hide: 2 }],
  ['Active tokens', 'active_tokens', { hide: 3 }],
  ['Buffered events', 'buffered_events'],
  ['Oldest event', 'oldest_event_at', { hide: 4 }],
  ...SCAN_STATUSES.map(
    (status) => [`Last ${status}`, `last_${status}_at`, { hide: status === 'completed' ? 1 : 5 }] as const,
  ),
])

const findings = table<StoreCheck['findings'][number]>([
  ['Damaged table', 'damaged_table', { of: (finding) => finding.table }],
  ['Organization', 'organization_id', { hide: 1 }],
  ['Found', 'found', { wrap: true }],
  ['Expected', 'expected', { wrap: true }],
])

export const commands: Commands = {
  '': query('', {
    organization: false,
    async run({ store, clock, output }) {
      const { environment, dataDirectory } = store
      const check = await longWork('check canceled', (onStep, signal) =>
        checkInThread(dataDirectory, (done, total) => onStep('check', done, total), signal),
      )
      if (check === undefined) return
      output.show(about([environment]))
      const records = Object.entries(check.records)
      output.show(
        tables(records.map(([name, count]) => ({ table: name, records: count, bytes: environment.tableBytes(name) }))),
      )
      output.show(organizations(organizationsOf(store).map((each) => rowOf(store, each, clock.nowMs()))))
      printCertificateProblems(dataDirectory, clock.nowMs())
      printKeyProblems(store)
      if (check.findingsCount > 0) {
        output.show(findings(check.findings))
        throw unsound(check)
      }
      if (process.stderr.isTTY) process.stderr.write('posture-admin: the store is sound\n')
    },
  }),
}

/** Unreadable records are reported as findings instead. */
function unlessDamaged<T>(read: () => T, otherwise: T): T {
  try {
    return read()
  } catch (error) {
    if (isFault(error, 'STORE_DAMAGED') || isFault(error, 'STORE_VERSION')) return otherwise
    throw error
  }
}

function organizationsOf({ environment, organizations: all }: Store): Organization[] {
  return unlessDamaged(() => environment.read(() => all.all()), [])
}

function rowOf(store: Store, { id, name }: Organization, nowMs: number): Readonly<Record<string, unknown>> {
  const { apiKeys, monitoringTokens, buffer, scans, environment } = store
  const lastMs = (status: ScanStatus): number => {
    const scan = scans.last(id, (each) => each.status === status)
    return scan === undefined ? 0 : scan.completedAtMs || scan.startedAtMs || scan.requestedAtMs
  }
  const read = (): Readonly<Record<string, unknown>> => ({
    organization: name,
    id,
    active_api_keys: apiKeys.activeCount(id, nowMs),
    active_tokens: monitoringTokens.activeCount(id, nowMs),
    buffered_events: buffer.count(id),
    oldest_event_at: timeText(buffer.oldestMs(id)),
    ...Object.fromEntries(SCAN_STATUSES.map((status) => [`last_${status}_at`, timeText(lastMs(status))])),
  })
  return unlessDamaged(() => environment.read(read), { organization: name, id })
}

/** The service's files: as its settings name them, if this command has the same environment. */
function printCertificateProblems(dataDirectory: string, nowMs: number): void {
  const { TLS_CERTIFICATE: own = '', BROKER_CA_FILE = '', NODE_EXTRA_CA_CERTS = '' } = process.env
  const files = [
    { file: own === '' ? join(dataDirectory, 'tls/certificate.pem') : own },
    ...[BROKER_CA_FILE, NODE_EXTRA_CA_CERTS].map((file) => ({ file, isCa: true })),
  ]
  for (const problem of files.map((file) => certificateProblem(file, nowMs))) {
    if (problem !== '') process.stderr.write(`posture-admin: ${problem}\n`)
  }
}

function unsound({ findings: shown, findingsCount }: StoreCheck): Fault {
  const more = findingsCount > shown.length ? `, of which ${shown.length} are shown` : ''
  return new Fault('STORE_CHECK_FAILED', `the store has ${findingsCount} findings${more}; restore a backup`)
}
