import { type Command, Option } from 'commander'
import { AUDIT_ENTRIES_MAX } from '../../limits.ts'
import type { AuditEntry } from '../../store/audit-log.ts'
import type { Store } from '../../store/store.ts'
import { countOption, sharedOptions, show, timeText, withStore } from './context.ts'

/** Entries that are shown unless told otherwise. */
const SHOWN = 100

/** posture-admin audit list */
export function addAuditCommands(program: Command): void {
  const audit = program.command('audit').description('who changed what, when')

  const list = sharedOptions(audit.command('list').description('show the last changes, the newest at the end'))
    .option('--org <name>', 'name or id of the organization; without it those of all')
    .addOption(new Option('--last <count>', 'how many').default(SHOWN).argParser(countOption(1, AUDIT_ENTRIES_MAX)))
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
      ['Organization', 'organization'],
      ['Who', 'actor'],
      ['What', 'action'],
      ['Of', 'subject'],
      ['Details', 'details'],
    ],
    rows: entries.map(({ organizationId, timeMs, actor, action, subject, details }) => ({
      time: timeText(timeMs),
      organization: store.organizations.get(organizationId)?.name ?? organizationId,
      actor,
      action,
      subject,
      details,
    })),
    wrapLast: true,
  })
}
