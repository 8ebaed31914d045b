import { type Command, InvalidArgumentError } from 'commander'
import { Fault } from '../../process/error-codes.ts'
import { writeNewFile } from '../../process/new-file.ts'
import { reportContent } from '../../report/content.ts'
import { reportDocument } from '../../report/document.tsx'
import { changeOptions, ofOrganization, printText, show, timeText, withStore } from './context.ts'
import { addReportScheduleCommands } from './report-schedule.ts'

/** The report names platforms and people. */
const FILE_MODE = 0o600

interface Options {
  readonly org?: string
  readonly out?: string
  readonly since?: number
}

/** posture-admin report; report schedule add | list | remove */
export function addReportCommand(command: Command): void {
  const report = ofOrganization(
    changeOptions(
      command
        // Options after `schedule add` are those of that command.
        .enablePositionalOptions()
        .allowExcessArguments(),
    ),
  )
    .option('--out <file>', 'Write the report to this file and replace an older one; - is standard output')
    .option('--since <date>', 'Show what changed since this day (UTC), instead of since the last report', dayOption)
  addReportScheduleCommands(report)
  report.action(({ org, out, since }: Options) => {
    // A command with an action takes the wrong name of a command as an argument.
    const [word] = report.args
    if (word !== undefined) throw new Fault('USAGE', `unknown command '${word}' (Did you mean schedule?)`)
    if (out === undefined) throw new Fault('USAGE', "required option '--out <file>' not specified")
    return withStore(report, ({ store, administration, registry, clock }) => {
      const organization = administration.organization(org)
      const nowMs = clock.nowMs()
      const content = store.environment.read(() =>
        reportContent({ store, registry }, organization, nowMs, { sinceMs: since }),
      )
      if (content.findings === undefined) {
        throw new Fault(
          'NOT_FOUND',
          'no scan has completed yet, so there is nothing to report; run posture-admin scan run',
        )
      }
      const html = reportDocument(content, content.findings)
      administration.reports.make(organization, nowMs, () => {
        if (out === '-') printText(report, html)
        else writeNewFile('--out', out, html, FILE_MODE)
      })
      if (out === '-') return
      show(report, {
        columns: [
          ['Report', 'file', { wrap: true }],
          ['Organization', 'organization', { wrap: true }],
          ['Changes since', 'since'],
        ],
        rows: [{ file: out, organization: organization.name, since: timeText(content.sinceMs) }],
      })
    })
  })
}

/** The beginning of a day in UTC, in milliseconds since 1970. */
function dayOption(text: string): number {
  const timeMs = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  if (timeMs <= Date.now()) return timeMs
  throw new InvalidArgumentError('expected a day in the past, such as 2026-10-01')
}
