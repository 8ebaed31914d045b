import { z } from 'zod'
import { reportDocument } from '../export/report/article.tsx'
import { reportContent } from '../export/report/content.ts'
import { nextDueMs } from '../export/report/scheduled-reports.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { type NewFile, withNewFile } from '../kernel/process/new-file.ts'
import { oneOf, textOf } from '../kernel/process/settings.ts'
import { REPORT_INTERVALS, type ReportSchedule } from '../store/report-schedules.ts'
import { argument, type Commands, change, group, option, query, table, timeText } from './command.ts'
import type { AdminContext } from './context.ts'

/** The report names platforms and people. */
const FILE_MODE = 0o600
const ID_SHOWN_CHARACTERS = 8

const reports = table<{ file: string; organization: string; sinceMs: number }>([
  ['Report', 'file', { wrap: true }],
  ['Organization', 'organization', { wrap: true }],
  ['Changes since', 'since', { of: ({ sinceMs }) => timeText(sinceMs) }],
])

function schedules({ store, clock }: AdminContext, rows: readonly ReportSchedule[]) {
  const nameOf = ({ organizationId, channelId }: ReportSchedule): string =>
    store.alertChannels.get(organizationId, channelId)?.name ?? channelId
  return table<ReportSchedule>([
    ['Every', 'every'],
    ['Channel', 'channel', { wrap: true, of: nameOf }],
    ['To', 'to', { wrap: true, hide: 2, text: (value) => (value as string[]).join(', ') }],
    ['Next', 'next_at', { of: ({ every }) => timeText(nextDueMs(every, clock.nowMs())) }],
    ['Last', 'last_at', { hide: 1, of: ({ reportedAtMs }) => timeText(reportedAtMs) }],
    ['Id', 'id', { text: (value) => String(value).slice(0, ID_SHOWN_CHARACTERS) }],
  ])(rows)
}

/** The beginning of a day in UTC, in milliseconds since 1970. */
function pastDay(text: string): number | undefined {
  const timeMs = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  return timeMs <= Date.now() ? timeMs : undefined
}

export const commands: Commands = {
  '': change('', {
    params: {
      out: option('--out <file>', 'Write the report to this file and replace an older one; - is standard output'),
      sinceMs: option(
        '--since <date>',
        'Show what changed since this day (UTC), instead of since the last report',
        textOf(pastDay, 'expected a date in the past, such as 2026-10-01').optional(),
      ),
    },
    around({ out }, work: (file: NewFile | undefined) => Promise<void>) {
      // Not required by its schema: `report schedule` does without.
      if (out === undefined) throw new Fault('USAGE', "required option '--out <file>' not specified")
      return withNewFile('--out', out === '-' ? undefined : out, { mode: FILE_MODE }, work)
    },
    async run({ store, administration, registry, clock, organization, output }, { out = '', sinceMs }, file) {
      const nowMs = clock.nowMs()
      const content = store.environment.read(() => reportContent({ store, registry }, organization, nowMs, { sinceMs }))
      if (content.findings === undefined) {
        throw new Fault(
          'NOT_FOUND',
          'no scan has completed yet, so there is nothing to report; run posture-admin scan run',
        )
      }
      const html = reportDocument(content, content.findings)
      let completed = Promise.resolve()
      administration.reports.make(organization, nowMs, () => {
        if (file === undefined) return output.print(html)
        file.write(html)
        completed = file.complete()
      })
      await completed
      return file && reports([{ file: out, organization: organization.name, sinceMs: content.sinceMs }])
    },
  }),
  schedule: group('Manage scheduled reports, which are sent by mail', {
    add: change('Send a report by mail on Mondays, or on the first of a month', {
      params: {
        every: option('--every <interval>', 'Send at this interval', oneOf(REPORT_INTERVALS)),
        channel: option(
          '--channel <channel>',
          'Send through this alert channel of the kind smtp, by name or id',
          z.string(),
        ),
        to: option(
          '--to <address...>',
          'Send to these addresses instead of those of the alert channel',
          z.array(z.string()).default([]),
        ),
      },
      run(context, { every, channel, to }) {
        const { administration, organization } = context
        const found = administration.alerts.channel(organization.id, channel)
        return schedules(context, [administration.reports.schedule(organization, { every, channel: found, to })])
      },
    }),
    list: query('List the scheduled reports of an organization', {
      run: (context) => schedules(context, context.store.reportSchedules.ofOrganization(context.organization.id)),
    }),
    remove: change('Remove a scheduled report; those that wait for the mail server are still sent', {
      params: { schedule: argument('<schedule>', 'Id of the schedule, or its first 8 characters') },
      run: (context, { schedule }) =>
        schedules(context, [context.administration.reports.unschedule(context.organization, schedule)]),
    }),
  }),
}
