import { wholeNumber } from '../kernel/process/settings.ts'
import type { Shown } from '../kernel/process/table.ts'
import { RETENTION_DAYS_MAX } from '../limits.ts'
import type { Organization, Retention } from '../store/organizations.ts'
import { expiredNow, RETENTION_DAYS_MIN, type Removed, retentionOf } from '../store/retention.ts'
import { assertGiven, type Commands, change, defined, flag, option, query, table } from './command.ts'

const days = table<Organization>([
  ['Organization', 'organization', { wrap: true, of: ({ name }) => name }],
  ['Scans (days)', 'scan_days', { of: (organization) => retentionOf(organization).scanDays }],
  ['Audit entries (days)', 'audit_days', { of: (organization) => retentionOf(organization).auditDays }],
  ['Inactive senders (days)', 'source_days', { of: (organization) => retentionOf(organization).sourceDays }],
  ['Clients (days)', 'client_days', { of: (organization) => retentionOf(organization).clientDays }],
  ['Evidence window (days)', 'evidence_window_days'],
])

function removed(verb: string, rows: readonly Removed[]): Shown {
  return table<Removed>([
    [`${verb} scans`, 'scans'],
    [`${verb} audit entries`, 'audit_entries'],
    [`${verb} senders`, 'sources'],
    [`${verb} client records`, 'client_records'],
  ])(rows)
}

function daysOption(name: string, about: string, kept: keyof Retention) {
  return option(`--${name}-days <days>`, about, wholeNumber(RETENTION_DAYS_MIN[kept], RETENTION_DAYS_MAX).optional())
}

export const commands: Commands = {
  show: query('Show the retention in days', { run: ({ organization }) => days([organization]) }),
  set: change('Change the retention', {
    params: {
      scanDays: daysOption('scan', 'Keep finished scans for this many days', 'scanDays'),
      auditDays: daysOption(
        'audit',
        `Keep audit entries for this many days, at least ${RETENTION_DAYS_MIN.auditDays}`,
        'auditDays',
      ),
      sourceDays: daysOption('source', 'Keep inactive senders for this many days', 'sourceDays'),
      clientDays: daysOption(
        'client',
        'Keep who used each platform for this many days, at most the evidence window',
        'clientDays',
      ),
      dryRun: flag('--dry-run', 'Count what the retention would delete now, and delete nothing'),
    },
    run({ administration, organization, store, clock }, { scanDays, auditDays, sourceDays, clientDays, dryRun }) {
      const given = defined({ scanDays, auditDays, sourceDays, clientDays })
      assertGiven(given, '--scan-days, --audit-days, --source-days or --client-days')
      if (!dryRun) return days([administration.retention.set(organization, given)])
      const kept = retentionOf({ ...organization, retention: { ...organization.retention, ...given } })
      return removed('Would delete', [expiredNow(store, organization.id, kept, clock.nowMs())])
    },
  }),
  apply: change('Delete expired data now, as the service does once a day', {
    run: ({ administration, organization }) => removed('Deleted', [administration.retention.apply(organization)]),
  }),
}
