import type { AuditEntry } from '../../engine/store/audit-log.ts'
import type { Visit } from '../http/visit.ts'
import { actionName } from './action-names.ts'

export const AUDIT_ENTRIES_PER_PAGE = 50
/** Maximum number of entries that a filter reads for one page. */
const READ_MAX = 5000

export interface AuditView {
  /** Newest first. */
  readonly rows: readonly AuditEntry[]
  readonly search: string
  /** Where the next page begins; undefined if there are no older entries. */
  readonly olderBefore: number | undefined
  readonly isFirstPage: boolean
  readonly isEmpty: boolean
}

/** The audit log, newest first, from the query's `before`. `q` filters by text. */
export function auditView({ site, organization, request: { query } }: Visit, countMax: number): AuditView {
  const { auditLog } = site.store
  const last = auditLog.lastSequence(organization.id)
  const before = Number.parseInt(query.get('before') ?? '', 10) || last + 1
  const search = (query.get('q') ?? '').trim().slice(0, 100)
  const read = auditLog.before(organization.id, before, search === '' ? countMax : Math.max(READ_MAX, countMax))
  const rows = read.filter((entry) => search === '' || textOf(entry).includes(search.toLowerCase())).slice(0, countMax)
  // After a full page, the next page begins after its last row; otherwise, after the last entry
  // that was read.
  const oldest = rows.length === countMax ? rows.at(-1) : read.at(-1)
  const hasOlder = oldest !== undefined && auditLog.before(organization.id, oldest.sequence, 1).length > 0
  return {
    rows,
    search,
    olderBefore: hasOlder ? oldest.sequence : undefined,
    isFirstPage: before > last,
    isEmpty: last === 0,
  }
}

/** The details as `name: value`, comma-separated. */
export function detailsText({ details }: AuditEntry): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(' ') : value}`)
    .join(', ')
}

function textOf(entry: AuditEntry): string {
  const { actor, action, subject } = entry
  return `${actor} ${action} ${actionName(action)} ${subject} ${detailsText(entry)}`.toLowerCase()
}
