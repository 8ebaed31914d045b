import type { Command } from 'commander'
import type { MatchTally, PlatformTally } from '../../event/match-tally.ts'
import { nameLoggingHint } from '../../ingest/formats/name-logging.ts'
import type { FileReport, LineProblem } from '../../ingest/read-log.ts'
import { EVIDENCE_WINDOW_DAYS_MAX, MESSAGE_BYTES_MAX } from '../../limits.ts'
import { dayOf, isoSeconds } from '../../process/clock.ts'
import { printable, printsTable } from '../../process/table.ts'
import type { Organization } from '../../store/organizations.ts'
import { printText, show } from './context.ts'

/** What `ingest file` has read of one file. */
export interface ReadFile {
  readonly report: FileReport
  /** Of a dry run; empty otherwise. */
  readonly tally: MatchTally
}

/** A line that was not understood, and its file. */
export type FileProblem = LineProblem & { readonly file: string }

/** Prints what was read of each file, and for a dry run what would be stored by platform. */
export function printFiles(command: Command, files: readonly ReadFile[], dryRun: boolean): void {
  show(command, {
    columns: [
      ['File', 'file', { wrap: true }],
      ['Lines', 'lines'],
      ['Formats', 'formats', { hide: 3, wrap: true, text: formatsText }],
      [dryRun ? 'Would match' : 'Matched', 'matched'],
      ['Duplicates', 'duplicates', { hide: 4 }],
      ['No platform', 'unmatched', { hide: 6 }],
      ['No host', 'no_domain', { hide: 7 }],
      ['Skipped', 'skipped', { hide: 5 }],
      ['Rejected', 'rejected', { hide: 1 }],
      ['Unknown', 'unknown', { hide: 2 }],
      ['Ambiguous', 'ambiguous', { hide: 3 }],
    ],
    rows: files.map(({ report, tally }) => {
      const { noDomain, tooLate, outsideWindow, newestMs, unfinished: _unfinished, ...counts } = report
      return {
        ...counts,
        ...{ too_late: tooLate, no_domain: noDomain, outside_window: outsideWindow },
        newest_match: Number.isNaN(newestMs) ? null : isoSeconds(newestMs),
        ...(dryRun ? { platforms: tally.platforms.map(platformRow) } : {}),
      }
    }),
  })
  if (dryRun && printsTable(command.optsWithGlobals<{ json?: boolean }>())) printPlatforms(command, files)
}

/** For standard error, so that a program that reads the report does not see these lines. */
export function remarks(
  files: readonly ReadFile[],
  problems: readonly FileProblem[],
  organization: Organization | undefined,
  nowMs: number,
): string[] {
  const lines: string[] = []
  for (const { report } of files) {
    const remark = (text: string): void => void lines.push(`${printable(report.file)}: ${text}`)
    if (report.unfinished) remark('the last line is incomplete and was skipped; read the file again later')
    if (report.truncated > 0) {
      remark(
        `${report.truncated} messages are longer than ${MESSAGE_BYTES_MAX / 1024} KiB: only their beginning was read`,
      )
    }
    const old = organization && outsideWindow(report, organization, nowMs)
    if (old !== undefined) remark(old)
    const { matched, unmatched, duplicates, ambiguous, noDomain } = report
    const formats = Object.keys(report.formats).join(', ')
    if (formats !== '' && noDomain > 0 && matched + unmatched + duplicates + ambiguous === 0) {
      const [most = ''] = Object.entries(report.formats).sort(([, a], [, b]) => b - a)[0] ?? []
      remark(`read as ${formats}, but no line names a host, so nothing can match; ${nameLoggingHint(most)}`)
    }
  }
  for (const { file, line, format, reason } of problems) {
    lines.push(`${printable(file)} line ${line}: ${format === '' ? '' : `${format}: `}${reason}`)
  }
  return lines
}

/** That matches are too old for any scan to show them. */
function outsideWindow(
  { matched, outsideWindow, newestMs }: FileReport,
  { name, evidenceWindowDays }: Organization,
  nowMs: number,
): string | undefined {
  if (outsideWindow === 0) return undefined
  const isAll = outsideWindow === matched
  const which = isAll ? `all ${matched} matches are` : `${outsideWindow} of ${matched} matches are`
  const found = `${which} older than the evidence window of ${evidenceWindowDays} days, so scans do not show them; the newest match is of ${isoSeconds(newestMs)}`
  const days = dayOf(nowMs) - dayOf(newestMs) + 1
  if (!isAll || days > EVIDENCE_WINDOW_DAYS_MAX) return found
  return `${found}; to include it: posture-admin organization set ${JSON.stringify(name)} --window ${days}`
}

/** What a dry run would store of each file, by platform. */
function printPlatforms(command: Command, reports: readonly ReadFile[]): void {
  const rows = reports.flatMap(({ report, tally }) => {
    return tally.platforms.map((platform) => ({ file: report.file, ...platformRow(platform) }))
  })
  if (rows.length === 0) return
  printText(command, '\n')
  show(command, {
    columns: [
      ...(reports.length > 1 ? ([['File', 'file', { wrap: true }]] as const) : []),
      ['Platform', 'platform_name', { wrap: true }],
      ['Matches', 'matches'],
      ['Clients', 'clients'],
      ['First', 'first_seen', { hide: 2 }],
      ['Last', 'last_seen', { hide: 1 }],
    ],
    rows,
  })
}

function platformRow({ platformId, platformName, matches, clients, ...tally }: PlatformTally) {
  return {
    platform_id: platformId,
    platform_name: platformName,
    matches,
    clients,
    clients_incomplete: tally.clientsIncomplete,
    first_seen: isoSeconds(tally.firstMs),
    last_seen: isoSeconds(tally.lastMs),
  }
}

function formatsText(formats: unknown): string {
  return Object.entries(formats as Readonly<Record<string, number>>)
    .sort(([, a], [, b]) => b - a)
    .map(([id, count]) => `${id} ${count}`)
    .join(', ')
}
