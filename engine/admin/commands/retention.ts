import { type Command, Option } from 'commander'
import { RETENTION_DAYS_MAX } from '../../limits.ts'
import { Fault } from '../../process/error-codes.ts'
import type { Organization, Retention } from '../../store/organizations.ts'
import { expiredNow, RETENTION_DAYS_MIN, type Removed, retentionOf } from '../../store/retention.ts'
import { changeOptions, countOption, ofOrganization, sharedOptions, show, withStore } from './context.ts'

interface Days {
  readonly org?: string
  readonly scans?: number
  readonly audit?: number
  readonly sources?: number
  readonly clients?: number
  readonly dryRun?: boolean
}

/** posture-admin retention show | set | apply */
export function addRetentionCommands(retention: Command): void {
  const shown = ofOrganization(sharedOptions(retention.command('show').description('Show the retention in days')))
  shown.action(({ org }: Days) =>
    withStore(shown, ({ administration }) => print(shown, administration.organization(org))),
  )

  const days = (flag: string, about: string, name: keyof Retention): Option =>
    new Option(`--${flag} <days>`, about).argParser(countOption(RETENTION_DAYS_MIN[name], RETENTION_DAYS_MAX))
  const set = ofOrganization(changeOptions(retention.command('set').description('Change the retention')))
    .addOption(days('scans', 'Keep finished scans for this many days', 'scanDays'))
    .addOption(
      days('audit', `Keep audit entries for this many days, at least ${RETENTION_DAYS_MIN.auditDays}`, 'auditDays'),
    )
    .addOption(days('sources', 'Keep inactive senders for this many days', 'sourceDays'))
    .addOption(
      days('clients', 'Keep who used each platform for this many days, at most the evidence window', 'clientDays'),
    )
    .addOption(new Option('--dry-run', 'Count what the retention would delete now, and delete nothing'))
  set.action(({ org, scans, audit, sources, clients, dryRun }: Days) =>
    withStore(set, ({ administration, store, clock }) => {
      const given = {
        ...(scans === undefined ? {} : { scanDays: scans }),
        ...(audit === undefined ? {} : { auditDays: audit }),
        ...(sources === undefined ? {} : { sourceDays: sources }),
        ...(clients === undefined ? {} : { clientDays: clients }),
      }
      if (Object.keys(given).length === 0) {
        throw new Fault('USAGE', 'nothing to change: give --scans, --audit, --sources or --clients')
      }
      const organization = administration.organization(org)
      if (dryRun !== true) return print(set, administration.retention.set(organization, given))
      const days = retentionOf({ ...organization, retention: { ...organization.retention, ...given } })
      printRemoved(set, expiredNow(store, organization.id, days, clock.nowMs()), 'Would delete')
    }),
  )

  const apply = ofOrganization(
    changeOptions(retention.command('apply').description('Delete expired data now, as the service does once a day')),
  )
  apply.action(({ org }: Days) =>
    withStore(apply, ({ administration }) => {
      printRemoved(apply, administration.retention.apply(administration.organization(org)), 'Deleted')
    }),
  )
}

function printRemoved(command: Command, { scans, auditEntries, sources, clientRecords }: Removed, verb: string): void {
  show(command, {
    columns: [
      [`${verb} scans`, 'scans'],
      [`${verb} audit entries`, 'audit_entries'],
      [`${verb} senders`, 'sources'],
      [`${verb} client records`, 'client_records'],
    ],
    rows: [{ scans, audit_entries: auditEntries, sources, client_records: clientRecords }],
  })
}

function print(command: Command, organization: Organization): void {
  const { scanDays, auditDays, sourceDays, clientDays } = retentionOf(organization)
  show(command, {
    columns: [
      ['Organization', 'organization', { wrap: true }],
      ['Scans (days)', 'scan_days'],
      ['Audit entries (days)', 'audit_days'],
      ['Inactive senders (days)', 'source_days'],
      ['Clients (days)', 'client_days'],
      ['Evidence window (days)', 'evidence_window_days'],
    ],
    rows: [
      {
        organization: organization.name,
        scan_days: scanDays,
        audit_days: auditDays,
        source_days: sourceDays,
        client_days: clientDays,
        evidence_window_days: organization.evidenceWindowDays,
      },
    ],
  })
}
