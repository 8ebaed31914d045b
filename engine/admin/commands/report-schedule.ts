import { type Command, Option } from 'commander'
import type { Shown } from '../../process/table.ts'
import { nextDueMs } from '../../report/report-time.ts'
import { REPORT_INTERVALS, type ReportInterval, type ReportSchedule } from '../../store/report-schedules.ts'
import {
  type AdminContext,
  changeOptions,
  ofOrganization,
  sharedOptions,
  show,
  timeText,
  withStore,
} from './context.ts'

interface Given {
  readonly org?: string
  readonly every: ReportInterval
  readonly channel: string
  readonly to?: readonly string[]
}

/** posture-admin report schedule add | list | remove */
export function addReportScheduleCommands(report: Command): void {
  const schedule = report.command('schedule').description('Manage scheduled reports, which are sent by mail')

  const add = ofOrganization(
    changeOptions(schedule.command('add').description('Send a report by mail on Mondays, or on the first of a month')),
  )
    .addOption(
      new Option('--every <interval>', 'Send at this interval').choices(REPORT_INTERVALS).makeOptionMandatory(),
    )
    .requiredOption('--channel <channel>', 'Send through this alert channel of the kind smtp, by name or id')
    .option('--to <address...>', 'Send to these addresses instead of those of the alert channel')
  add.action(({ org, every, channel, to = [] }: Given) =>
    withStore(add, (context) => {
      const { administration } = context
      const organization = administration.organization(org)
      const found = administration.alerts.channel(organization.id, channel)
      show(add, table(context, [administration.reports.schedule(organization, { every, channel: found, to })]))
    }),
  )

  const list = ofOrganization(
    sharedOptions(schedule.command('list').description('List the scheduled reports of an organization')),
  )
  list.action(({ org }: { org?: string }) =>
    withStore(list, (context) => {
      const { id } = context.administration.organization(org)
      show(list, table(context, context.store.reportSchedules.ofOrganization(id)))
    }),
  )

  const remove = ofOrganization(
    changeOptions(
      schedule
        .command('remove')
        .description('Remove a scheduled report; those that wait for the mail server are still sent')
        .argument('<schedule>', 'Id of the schedule, or its first 8 characters'),
    ),
  )
  remove.action((id: string, { org }: { org?: string }) =>
    withStore(remove, (context) => {
      const { administration } = context
      show(remove, table(context, [administration.reports.unschedule(administration.organization(org), id)]))
    }),
  )
}

function table({ store, clock }: AdminContext, schedules: readonly ReportSchedule[]): Shown {
  const nowMs = clock.nowMs()
  return {
    columns: [
      ['Every', 'every'],
      ['Channel', 'channel', { wrap: true }],
      ['To', 'to', { wrap: true, hide: 2, text: (value) => (value as string[]).join(', ') }],
      ['Next', 'next_at'],
      ['Last', 'last_at', { hide: 1 }],
      ['Id', 'id', { text: (value) => String(value).slice(0, ID_SHOWN_CHARACTERS) }],
    ],
    rows: schedules.map(({ id, organizationId, every, channelId, to, reportedAtMs }) => ({
      id,
      every,
      channel: store.alertChannels.get(organizationId, channelId)?.name ?? channelId,
      to,
      next_at: timeText(nextDueMs(every, nowMs)),
      last_at: timeText(reportedAtMs),
    })),
  }
}

const ID_SHOWN_CHARACTERS = 8
