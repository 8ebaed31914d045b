import { once } from 'node:events'
import type { Command } from 'commander'
import type { Matcher } from '../../registry/match.ts'
import { ruleOfFile } from '../admin/format-rule-file.ts'
import { FileIngest } from '../admin/ingest-file.ts'
import { shellWord } from '../admin/senders.ts'
import { nameLoggingHint } from '../formats/formats.ts'
import { OwnFormat } from '../formats/own-format.ts'
import {
  type FileReport,
  type LineProblem,
  type LineReading,
  type LogReading,
  type OpenedLog,
  openLog,
} from '../ingest/read-log.ts'
import { type KnownToken, TokenAuthenticator } from '../ingest/token-authenticator.ts'
import { NO_CLIENT } from '../kernel/event/client.ts'
import { MatchTally, type PlatformTally } from '../kernel/event/match-tally.ts'
import { STANDARD_INPUT } from '../kernel/process/byte-source.ts'
import { dayOf, isoSeconds } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { fileProgress } from '../kernel/process/file-progress.ts'
import { jsonLine, printable } from '../kernel/process/table.ts'
import { sudoUser, tokenOf } from '../kernel/process/token-setting.ts'
import { EVIDENCE_WINDOW_DAYS_MAX, MESSAGE_BYTES_MAX } from '../limits.ts'
import type { Organization } from '../store/organizations.ts'
import { table } from './command.ts'
import type { AdminContext, Output } from './context.ts'
import { interruptible } from './long-work.ts'

export interface IngestOptions {
  readonly dryRun: boolean
  /** Print what was understood of each line. */
  readonly names: boolean
  /** Lines of each file that are shown if they were not understood. */
  readonly rejects: number
}

/** @throws Fault USAGE */
export function assertNames({ names, dryRun }: IngestOptions): void {
  if (names && !dryRun) throw new Fault('USAGE', '--names: expected --dry-run, too')
}

/** What the command line names. */
export interface Input {
  readonly token: string
  readonly own: OwnFormat | undefined
  /** Those that are not read yet. An unreadable file must not prevent reading the others. */
  readonly files: (OpenedLog | Fault)[]
}

interface Given {
  readonly paths: readonly string[]
  readonly token: string
  readonly tokenFile: string
  readonly rule: string | undefined
}

/** Opens the files for `work`. @throws Fault USAGE */
export async function withInput(given: Given, command: Command, work: (input: Input) => Promise<void>): Promise<void> {
  const { paths, rule } = given
  const token = tokenOf(given, { command, environment: process.env, owners: sudoUser(process.env) })
  const own = rule === undefined ? undefined : new OwnFormat(ruleOfFile('--rule', rule))
  const files = paths.map(opened)
  try {
    await work({ token, own, files })
  } finally {
    for (const each of files) if (!(each instanceof Fault)) each.source.close()
  }
}

function opened(path: string): OpenedLog | Fault {
  try {
    return openLog(path)
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
}

/** What was read of one file. */
interface ReadFile extends LogReading {
  /** Of a dry run; empty otherwise. */
  readonly tally: MatchTally
}

/** What was read of all files. */
interface ReadFiles {
  readonly files: ReadFile[]
  /** Also those of which nothing could be read. */
  readonly paths: string[]
  readonly faults: Fault[]
  /** Lines that were not understood, with their files. */
  readonly problems: (LineProblem & { readonly file: string })[]
}

/** Reads the files in order, and reports what was read. @throws the first Fault of a file */
export async function ingestFiles(context: AdminContext, input: Input, options: IngestOptions): Promise<void> {
  const { administration, clock, output } = context
  const { dryRun } = options
  const token = authenticated(context, input.token)
  const matcher = context.registry.matcherOf(token.organizationId)
  const { result, exitStatus } = await interruptible(async (signal) => {
    const stopping = { stopped: () => signal.aborted, stop: once(signal, 'abort') }
    const ingest = new FileIngest(context, token, { dryRun, own: input.own, ...stopping })
    return { ingest, read: await readAll(input.files, ingest, matcher, options, stopping.stopped) }
  })
  const { ingest, read } = result
  const { organization } = ingest
  const waiting = ingest.finish(administration, read.paths, read.files)
  if (!options.names) printFiles(output, read.files, dryRun)
  for (const line of remarks(read, organization, clock.nowMs())) process.stderr.write(`${line}\n`)
  if (!dryRun && organization !== undefined && waiting > 0 && process.stderr.isTTY) {
    const command = `posture-admin scan run --org ${shellWord(organization.name)}`
    process.stderr.write(`${waiting} events wait for the next scan of the service; to scan now: ${command}\n`)
  }
  if (exitStatus !== undefined) process.exitCode = exitStatus
  const [first, ...others] = read.faults
  for (const fault of others) process.stderr.write(`posture-admin: ${fault.code} ${printable(fault.message)}\n`)
  if (first !== undefined) throw first
}

/** @throws Fault NOT_FOUND */
function authenticated({ store, clock }: AdminContext, raw: string): KnownToken {
  const bytes = Buffer.from(raw)
  const token = new TokenAuthenticator(store, clock).find(bytes, 0, bytes.length)
  if (token !== undefined) return token
  throw new Fault(
    'NOT_FOUND',
    'the monitoring token is unknown or revoked; create one with posture-admin token generate',
  )
}

/**
 * Reads until the signal, a full store, or the removal of the organization. Takes the files that
 * are read from the list.
 */
async function readAll(
  files: (OpenedLog | Fault)[],
  ingest: FileIngest,
  matcher: Matcher,
  options: IngestOptions,
  stopped: () => boolean,
): Promise<ReadFiles> {
  const read: ReadFiles = { files: [], paths: [], faults: [], problems: [] }
  for (let file = files.shift(); file !== undefined && !stopped(); file = files.shift()) {
    if (file instanceof Fault) {
      read.faults.push(file)
      continue
    }
    await readFile(file, ingest, matcher, options, read)
    if (read.faults.at(-1)?.code === 'STORE_FULL' || !ingest.isPresent) break
  }
  return read
}

async function readFile(
  file: OpenedLog,
  ingest: FileIngest,
  matcher: Matcher,
  options: IngestOptions,
  read: ReadFiles,
): Promise<void> {
  const { path } = file
  read.paths.push(path)
  const tally = new MatchTally(matcher)
  const names = options.names ? new NamesPrinter(path, matcher) : undefined
  const progress = fileProgress(path === STANDARD_INPUT ? undefined : path)
  let shown = 0
  try {
    const { report, fault } = await ingest.read(file, {
      ...(options.dryRun ? { onMatch: (match) => tally.add(match) } : {}),
      ...(names === undefined ? {} : { onLine: (line) => names.add(line) }),
      onProblem: (problem) => {
        if (names === undefined && shown++ < options.rejects) read.problems.push({ file: path, ...problem })
      },
      onProgress: (done, total) => {
        names?.flush()
        progress.update(done, total)
      },
    })
    read.files.push({ report, tally, fault })
    if (fault !== undefined) read.faults.push(fault)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    read.faults.push(error)
  } finally {
    names?.flush()
    progress.end()
  }
}

/** In the order of Verdict. */
const VERDICTS = ['unknown', 'event', 'no_domain', 'skipped', 'rejected', 'ambiguous'] as const

/** Prints what was understood of each line of a file as NDJSON. */
class NamesPrinter {
  readonly #file: string
  readonly #matcher: Matcher
  #lines = ''

  constructor(file: string, matcher: Matcher) {
    this.#file = file
    this.#matcher = matcher
  }

  add({ line, verdict, timeMs, client, host, format, reason }: LineReading): void {
    const rule = host === '' ? undefined : this.#matcher.match(host)
    this.#lines += `${jsonLine({
      file: this.#file,
      line,
      verdict: VERDICTS[verdict],
      time: Number.isNaN(timeMs) ? null : new Date(timeMs).toISOString(),
      client: client === NO_CLIENT ? null : client,
      host: host.toLowerCase(),
      platform: rule?.platform.id ?? null,
      format,
      reason,
    })}\n`
  }

  /** Called after each part of the file. */
  flush(): void {
    if (this.#lines === '') return
    process.stdout.write(this.#lines)
    this.#lines = ''
  }
}

interface PlatformRow extends PlatformTally {
  readonly file: string
}

/** What a dry run would store of files, by platform. */
function platforms(rows: readonly PlatformRow[], showsFile: boolean) {
  return table<PlatformRow>([
    ...(showsFile ? ([['File', 'file', { wrap: true }]] as const) : []),
    [null, 'platform_id'],
    ['Platform', 'platform_name', { wrap: true }],
    ['Matches', 'matches'],
    ['Clients', 'clients'],
    [null, 'clients_incomplete'],
    ['First', 'first_seen', { hide: 2, of: ({ firstMs }) => isoSeconds(firstMs) }],
    ['Last', 'last_seen', { hide: 1, of: ({ lastMs }) => isoSeconds(lastMs) }],
  ])(rows)
}

/** Prints what was read of each file, and for a dry run what would be stored by platform. */
function printFiles(output: Output, files: readonly ReadFile[], dryRun: boolean): void {
  const ofFile = ({ report: { file }, tally }: ReadFile): PlatformRow[] =>
    tally.platforms.map((platform) => ({ file, ...platform }))
  const formatsText = (formats: unknown): string =>
    mostFirst(formats as FileReport['formats'])
      .map(([id, count]) => `${id} ${count}`)
      .join(', ')
  output.show(
    table<ReadFile>([
      ['File', 'file', { wrap: true, of: ({ report }) => report.file }],
      ['Lines', 'lines', { of: ({ report }) => report.lines }],
      [null, 'messages', { of: ({ report }) => report.messages }],
      ['Formats', 'formats', { hide: 3, wrap: true, text: formatsText, of: ({ report }) => report.formats }],
      [dryRun ? 'Would match' : 'Matched', 'matched', { of: ({ report }) => report.matched }],
      ['Duplicates', 'duplicates', { hide: 4, of: ({ report }) => report.duplicates }],
      ['No platform', 'unmatched', { hide: 6, of: ({ report }) => report.unmatched }],
      ['No host', 'no_domain', { hide: 7, of: ({ report }) => report.noDomain }],
      ['Skipped', 'skipped', { hide: 5, of: ({ report }) => report.skipped }],
      ['Rejected', 'rejected', { hide: 1, of: ({ report }) => report.rejected }],
      ['Unknown', 'unknown', { hide: 2, of: ({ report }) => report.unknown }],
      ['Ambiguous', 'ambiguous', { hide: 3, of: ({ report }) => report.ambiguous }],
      [null, 'truncated', { of: ({ report }) => report.truncated }],
      [null, 'outside_dedup_window', { of: ({ report }) => report.outsideDedupWindow }],
      [null, 'outside_window', { of: ({ report }) => report.outsideWindow }],
      [null, 'newest_match', { of: ({ report: { newestMs } }) => (newestMs >= 0 ? isoSeconds(newestMs) : null) }],
      ...(dryRun
        ? ([[null, 'platforms', { of: (file: ReadFile) => platforms(ofFile(file), false).rows }]] as const)
        : []),
    ])(files),
  )
  const all = files.flatMap(ofFile)
  if (!dryRun || !output.isTable || all.length === 0) return
  output.print('\n')
  output.show(platforms(all, files.length > 1))
}

function mostFirst(formats: FileReport['formats']): [id: string, count: number][] {
  return Object.entries(formats).sort(([, a], [, b]) => b - a)
}

/** For standard error, so that a program that reads the report does not see these lines. */
function remarks({ files, problems }: ReadFiles, organization: Organization | undefined, nowMs: number): string[] {
  return [
    ...files.flatMap(({ report }) =>
      remarksOf(report, organization, nowMs).map((text) => `${printable(report.file)}: ${text}`),
    ),
    ...problems.map(({ file, line, format, reason }) => {
      return `${printable(file)} line ${line}: ${format === '' ? '' : `${format}: `}${reason}`
    }),
  ]
}

function remarksOf(report: FileReport, organization: Organization | undefined, nowMs: number): string[] {
  const { matched, unmatched, duplicates, ambiguous, noDomain, truncated } = report
  const lines: string[] = []
  if (report.unfinished) lines.push('the last line is incomplete and was skipped; read the file again later')
  if (truncated > 0) {
    lines.push(`${truncated} messages are longer than ${MESSAGE_BYTES_MAX / 1024} KiB: only their beginning was read`)
  }
  const old = organization && outsideWindow(report, organization, nowMs)
  if (old !== undefined) lines.push(old)
  const [[most] = ['']] = mostFirst(report.formats)
  if (most !== '' && noDomain > 0 && matched + unmatched + duplicates + ambiguous === 0) {
    const formats = Object.keys(report.formats).join(', ')
    lines.push(`read as ${formats}, but no line names a host, so nothing can match; ${nameLoggingHint(most)}`)
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
