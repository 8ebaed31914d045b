import { isoSeconds } from '../kernel/process/clock.ts'
import { jsonLine } from '../kernel/process/table.ts'
import { AUDIT_ENTRIES_MAX } from '../limits.ts'
import type { AuditEntry } from '../store/audit-log.ts'
import { SERVICE_WIDE } from '../store/own-platforms.ts'
import { type Commands, limitOption, option, query, table } from './command.ts'

/** An entry, and the name of its organization if that exists. */
type Entry = AuditEntry & { readonly name: string | undefined }

const isServiceWide = ({ organizationId }: AuditEntry): boolean => organizationId === SERVICE_WIDE

const entries = table<Entry>([
  ['Time', 'time', { of: ({ timeMs }) => isoSeconds(timeMs) }],
  [null, 'organization_id', { of: (entry) => (isServiceWide(entry) ? null : entry.organizationId) }],
  [
    'Organization',
    'organization',
    { hide: 2, of: (entry) => (isServiceWide(entry) ? null : (entry.name ?? entry.organizationId)) },
  ],
  ['Actor', 'actor', { hide: 1, wrap: true }],
  ['Action', 'action'],
  ['Subject', 'subject', { wrap: true }],
  ['Details', 'details', { hide: 3, wrap: true }],
])

export const commands: Commands = {
  list: query('List the last changes, oldest first', {
    organization: false,
    params: {
      org: option('--org <name>', 'Select one organization by name or id; by default all'),
      limit: limitOption('--limit <count>', 'Show this many', 100, AUDIT_ENTRIES_MAX),
    },
    run({ store: { auditLog, organizations }, administration }, { org, limit }) {
      const all = org === undefined ? auditLog.all() : auditLog.ofOrganization(administration.organization(org).id)
      return entries(
        all.slice(-limit).map((entry) => ({ ...entry, name: organizations.get(entry.organizationId)?.name })),
      )
    },
  }),
}

/** Entries of the audit log of an organization as `audit list --json` prints them. */
export function auditLines(all: readonly AuditEntry[], name: string): string {
  return entries(all.map((entry) => ({ ...entry, name })))
    .rows.map((row) => `${jsonLine(row)}\n`)
    .join('')
}
