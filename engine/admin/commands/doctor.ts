import type { Command } from 'commander'
import type { StoreCheck } from '../../check/check.ts'
import { checkInThread } from '../../check/check-thread.ts'
import { LMDB_VERSION } from '../../lmdb/environment.ts'
import { Fault, isFault } from '../../process/error-codes.ts'
import { programVersion } from '../../process/version.ts'
import { SCHEMA_VERSION } from '../../store/migrate.ts'
import type { Organization } from '../../store/organizations.ts'
import { SCAN_STATUSES, type ScanStatus } from '../../store/scans.ts'
import type { Store } from '../../store/store.ts'
import { dataDirectoryOf, sharedOptions, show, timeText, withStore } from './context.ts'
import { longWork } from './long-work.ts'

/** posture-admin doctor */
export function addDoctorCommand(command: Command): void {
  const doctor = sharedOptions(command)
  doctor.action(() =>
    withStore(doctor, async ({ store, clock }) => {
      const check = await longWork('check canceled', (onStep, signal) =>
        checkInThread(dataDirectoryOf(doctor), (done, total) => onStep('check', done, total), signal),
      )
      if (check === undefined) return
      showAbout(doctor, store)
      showTables(doctor, store, check)
      showOrganizations(doctor, store, clock.nowMs())
      showFindings(doctor, check)
    }),
  )
}

function showAbout(command: Command, { environment }: Store): void {
  const { fileBytes, unusedBytes, diskFreeBytes, freeBytesMin } = environment.space()
  show(command, {
    vertical: true,
    columns: [
      ['Program version', 'version'],
      ['Schema version', 'schema_version'],
      ['Node.js version', 'node_version'],
      ['LMDB version', 'lmdb_version'],
      ['Path', 'path'],
      ['Store bytes', 'store_bytes'],
      ['Unused bytes', 'unused_bytes'],
      ['Free bytes on disk', 'disk_free_bytes'],
      ['Minimum free bytes', 'disk_free_bytes_min'],
      ['Disk full', 'disk_full'],
    ],
    rows: [
      {
        version: programVersion(),
        schema_version: environment.schemaVersion,
        schema_version_newest: SCHEMA_VERSION,
        node_version: process.versions.node,
        lmdb_version: LMDB_VERSION,
        path: environment.path,
        store_bytes: fileBytes,
        unused_bytes: unusedBytes,
        disk_free_bytes: diskFreeBytes,
        disk_free_bytes_min: freeBytesMin,
        disk_full: environment.full,
      },
    ],
  })
}

function showTables(command: Command, { environment }: Store, { records }: StoreCheck): void {
  show(command, {
    columns: [
      ['Table', 'table'],
      ['Records', 'records'],
      ['Bytes', 'bytes'],
    ],
    rows: Object.entries(records).map(([table, count]) => {
      return { table, records: count, bytes: environment.tableBytes(table) }
    }),
  })
}

function showOrganizations(command: Command, store: Store, nowMs: number): void {
  show(command, {
    columns: [
      ['Organization', 'organization', { wrap: true }],
      ['Active keys', 'active_api_keys', { hide: 2 }],
      ['Active tokens', 'active_tokens', { hide: 3 }],
      ['Buffered events', 'buffered_events'],
      ['Oldest event', 'oldest_event_at', { hide: 4 }],
      ...SCAN_STATUSES.map(
        (status) => [`Last ${status}`, `last_${status}_at`, { hide: status === 'completed' ? 1 : 5 }] as const,
      ),
    ],
    rows: organizationsOf(store).map((organization) => rowOf(store, organization, nowMs)),
  })
}

/** Unreadable records are reported as findings instead. */
function organizationsOf(store: Store): Organization[] {
  try {
    return store.environment.read(() => store.organizations.all())
  } catch (error) {
    if (isFault(error, 'STORE_DAMAGED') || isFault(error, 'STORE_VERSION')) return []
    throw error
  }
}

function rowOf(store: Store, { id, name }: Organization, nowMs: number): Record<string, unknown> {
  const { apiKeys, monitoringTokens, buffer, scans } = store
  const lastMs = (status: ScanStatus): number => {
    const scan = scans.last(id, (each) => each.status === status)
    return scan === undefined ? 0 : scan.completedAtMs || scan.startedAtMs || scan.requestedAtMs
  }
  try {
    return store.environment.read(() => ({
      organization: name,
      id,
      active_api_keys: apiKeys.activeCount(id, nowMs),
      active_tokens: monitoringTokens.activeCount(id, nowMs),
      buffered_events: buffer.count(id),
      oldest_event_at: timeText(buffer.oldestMs(id)),
      ...Object.fromEntries(SCAN_STATUSES.map((status) => [`last_${status}_at`, timeText(lastMs(status))])),
    }))
  } catch (error) {
    if (isFault(error, 'STORE_DAMAGED') || isFault(error, 'STORE_VERSION')) return { organization: name, id }
    throw error
  }
}

/** @throws Fault STORE_UNSOUND if there are findings */
function showFindings(command: Command, { findings, findingsCount }: StoreCheck): void {
  if (findingsCount === 0) {
    if (process.stderr.isTTY) process.stderr.write('posture-admin: the store is sound\n')
    return
  }
  show(command, {
    columns: [
      ['Damaged table', 'damaged_table'],
      ['Organization', 'organization_id', { hide: 1 }],
      ['Found', 'found', { wrap: true }],
      ['Expected', 'expected', { wrap: true }],
    ],
    rows: findings.map(({ table, organizationId, found, expected }) => {
      return { damaged_table: table, organization_id: organizationId, found, expected }
    }),
  })
  const more = findingsCount > findings.length ? `, of which ${findings.length} are shown` : ''
  throw new Fault('STORE_UNSOUND', `the store has ${findingsCount} findings${more}; restore a backup`)
}
