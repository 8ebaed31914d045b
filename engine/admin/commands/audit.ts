import { type Command, Option } from 'commander'
import { AUDIT_ENTRIES_MAX } from '../../limits.ts'
import type { AuditEntry } from '../../store/audit-log.ts'
import type { Store } from '../../store/store.ts'
import { auditRow } from '../audit-export.ts'
import { countOption, sharedOptions, show, withStore } from './context.ts'

/** Default number of entries. */
const SHOWN = 100

/** posture-admin audit list */
export function addAuditCommands(audit: Command): void {
  const list = sharedOptions(audit.command('list').description('List the last changes, oldest first'))
    .option('--org <name>', 'Select one organization by name or id; by default all')
    .addOption(
      new Option('--last <count>', 'Show this many').default(SHOWN).argParser(countOption(1, AUDIT_ENTRIES_MAX)),
    )
  list.action((options: { org?: string; last: number }) =>
    withStore(list, ({ store, administration }) => {
      const entries =
        options.org === undefined
          ? store.auditLog.all()
          : store.auditLog.ofOrganization(administration.organization(options.org).id)
      print(list, store, entries.slice(-options.last))
    }),
  )
}

function print(command: Command, store: Store, entries: readonly AuditEntry[]): void {
  show(command, {
    columns: [
      ['Time', 'time'],
      ['Organization', 'organization', { hide: 2 }],
      ['Actor', 'actor', { hide: 1, wrap: true }],
      ['Action', 'action'],
      ['Subject', 'subject', { wrap: true }],
      ['Details', 'details', { hide: 3, wrap: true }],
    ],
    rows: entries.map((entry) => auditRow(entry, store.organizations.get(entry.organizationId)?.name)),
  })
}
