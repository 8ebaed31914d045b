import { type Command, Option } from 'commander'
import { z } from 'zod'
import { MatchTally } from '../../event/match-tally.ts'
import { EventAcceptor } from '../../ingest/accept.ts'
import { nameLoggingHint } from '../../ingest/formats/name-logging.ts'
import { OwnFormat } from '../../ingest/formats/own-format.ts'
import { addRows } from '../../ingest/ingest-accounting.ts'
import { Intake } from '../../ingest/intake.ts'
import { type FileReport, LogReader, READ_WORK_BYTES } from '../../ingest/read-log.ts'
import { LogStore } from '../../ingest/store-log.ts'
import { TokenAuthenticator } from '../../ingest/token-authenticator.ts'
import { STANDARD_INPUT } from '../../process/byte-source.ts'
import { type Clock, DAY_MS } from '../../process/clock.ts'
import { Fault } from '../../process/error-codes.ts'
import { exclusively } from '../../process/exclusive.ts'
import { fileProgress } from '../../process/file-progress.ts'
import { createLogger } from '../../process/log.ts'
import { addSettingOptions, readSettings } from '../../process/settings.ts'
import { exitStatusOf, stopSignal } from '../../process/shutdown.ts'
import { printable } from '../../process/table.ts'
import { sudoUser, tokenOf, tokenSettings } from '../../process/token-setting.ts'
import { firstDayOfWindow } from '../../scan/prepare.ts'
import { scanNow } from '../../scan/scan-now.ts'
import { requestScan } from '../../scan/scan-runner.ts'
import { EVENTS_FOR_IMMEDIATE_SCAN } from '../../scan/schedule.ts'
import { OUTCOMES, Outcome, totalOf } from '../../store/outcomes.ts'
import type { Registries } from '../../store/registry-in-force.ts'
import type { Scan } from '../../store/scans.ts'
import { NO_ORGANIZATION, type StoredSource } from '../../store/sources.ts'
import type { Store } from '../../store/store.ts'
import { ruleOfFile } from '../format-rule-file.ts'
import { shellWord } from '../senders.ts'
import { type AdminContext, countOption, ofOrganization, sharedOptions, show, timeText, withStore } from './context.ts'
import { NamesPrinter } from './ingest-names.ts'
import { type FileProblem, printFiles, type ReadFile, remarks } from './ingest-report.ts'

const tokenSetting = z.object(tokenSettings)

/** Default number of listed lines that were not understood. */
const PROBLEMS_SHOWN = 10

interface FileOptions {
  readonly dryRun?: boolean
  readonly names?: boolean
  readonly rule?: string
  readonly rejects: number
}

/** posture-admin ingest file | sources | rejects | counters */
export function addIngestCommands(ingest: Command): void {
  const file = ingest
    .command('file')
    .description('Read log files of firewalls, proxies and DNS servers, plain or compressed with gzip or zstd')
    .argument('<file...>', 'Log files; - is standard input')
  addSettingOptions(sharedOptions(file), tokenSetting)
    .option('--dry-run', 'Store nothing, and report what would be stored')
    .option('--rule <file>', "Read by the rule of an own format in this YAML file, instead of the token's")
    .option('--names', 'Print what was understood of each line as a JSON object, with --dry-run')
    .addOption(
      new Option('--rejects <count>', 'Show this many lines of each file that were not understood')
        .default(PROBLEMS_SHOWN)
        .argParser(countOption(0, 1e9)),
    )
  file.action((paths: string[], options: FileOptions) => {
    if (options.names === true && options.dryRun !== true) throw new Fault('USAGE', '--names: expected --dry-run, too')
    return withStore(file, (context) => {
      const read = (): Promise<void> => readFiles(file, paths, options, context)
      // Two concurrent runs would both count the lines of the same file.
      return options.dryRun === true ? read() : exclusively(context.store.environment.path, 'ingest file', read)
    })
  })

  const sources = sharedOptions(
    ingest.command('sources').description('Show who sends logs, in which format, and how much was understood'),
  ).option('--org <name>', 'Select one organization by name or id; by default all, and senders without a known token')
  sources.action((options: { org?: string }) =>
    withStore(sources, (context) => showSources(sources, options.org, context)),
  )

  const rejects = ofOrganization(
    sharedOptions(
      ingest.command('rejects').description('Show the last messages that were not understood, with secrets redacted'),
    ),
  )
  rejects.action((options: { org?: string }) =>
    withStore(rejects, ({ store, administration }) => {
      const { id } = administration.organization(options.org)
      show(rejects, {
        columns: [
          ['Time', 'time', { hide: 1 }],
          ['Address', 'address', { hide: 2 }],
          ['Host', 'host', { hide: 4 }],
          ['Format', 'format', { hide: 3 }],
          ['Reason', 'reason', { wrap: true }],
          ['Redacted message', 'sample', { wrap: true }],
        ],
        rows: store.sources.rejectsOf(id).map((reject) => ({
          time: timeText(reject.timeMs),
          listener: reject.listener,
          address: reject.address,
          host: reject.host,
          format: reject.format,
          reason: reject.reason,
          sample: reject.sample,
        })),
      })
    }),
  )

  const counters = sharedOptions(
    ingest.command('counters').description('Show how many messages had each outcome, by listener'),
  )
  counters.action(() => withStore(counters, ({ store }) => showCounters(counters, store)))
}

async function readFiles(
  command: Command,
  paths: readonly string[],
  options: FileOptions,
  { store, administration, registry, clock }: AdminContext,
): Promise<void> {
  const sources = { command, environment: process.env }
  const raw = tokenOf(readSettings(tokenSetting, sources), { ...sources, owners: sudoUser(process.env) })
  const log = createLogger('posture-admin', 'WARNING')
  const authenticator = new TokenAuthenticator(store, clock)
  const bytes = Buffer.from(raw)
  const token = authenticator.find(bytes, 0, bytes.length)
  if (token === undefined)
    throw new Fault(
      'NOT_FOUND',
      'the monitoring token is unknown or revoked; create one with posture-admin token generate',
    )
  const own = options.rule === undefined ? undefined : new OwnFormat(ruleOfFile('--rule', options.rule))
  const acceptor = new EventAcceptor(store, clock, log, () => {})
  const stop = stopSignal()
  let signal: Awaited<typeof stop.received> | undefined
  stop.received.then((received) => {
    signal = received
  })
  const organization = store.organizations.get(token.organizationId)
  const windowStartMs = organization === undefined ? 0 : firstDayOfWindow(organization, clock.nowMs()) * DAY_MS
  const reports: ReadFile[] = []
  const faults: Fault[] = []
  const problems: FileProblem[] = []
  for (const path of paths) {
    if (signal !== undefined) break
    const intake = new Intake(new Uint8Array(READ_WORK_BYTES), registry, authenticator, {
      tokenRate: undefined,
      noteUnauthorized: () => {},
      own,
    })
    const progress = fileProgress(path === STANDARD_INPUT ? undefined : path)
    let shown = 0
    const matcher = registry.matcherOf(token.organizationId)
    const tally = new MatchTally(matcher)
    const names = options.names === true ? new NamesPrinter(path, matcher) : undefined
    const storage = new LogStore(store, acceptor, intake, {
      stopped: () => signal !== undefined,
      stop: stop.received,
      freeSpace: () => scanToFreeSpace(store, registry, token.organizationId, clock),
    })
    const reader = new LogReader(store.readLines, options.dryRun === true ? undefined : storage, intake, token, {
      windowStartMs,
      ...(options.dryRun === true ? { onMatch: (match) => tally.add(match) } : {}),
      ...(names === undefined ? {} : { onLine: (line) => names.add(line) }),
      onProblem: (problem) => {
        if (names === undefined && shown++ < options.rejects) problems.push({ file: path, ...problem })
      },
      onProgress: (done, total) => {
        names?.flush()
        progress.update(done, total)
      },
      stopped: () => signal !== undefined,
      stop: stop.received,
    })
    try {
      const { report, fault } = await reader.read(path)
      reports.push({ report, tally })
      if (fault !== undefined) faults.push(fault)
    } catch (error) {
      // An unreadable file must not prevent reading the others.
      if (!(error instanceof Fault)) throw error
      faults.push(error)
    } finally {
      names?.flush()
      progress.end()
    }
    if (options.dryRun !== true) writeSources(store, intake)
    if (faults.at(-1)?.code === 'STORE_FULL' || !store.organizations.exists(token.organizationId)) break
  }
  // Without the organization, the fault of its file says so.
  if (options.dryRun !== true && reports.length > 0 && store.organizations.exists(token.organizationId)) {
    const sum = (of: (report: FileReport) => number): number =>
      reports.reduce((total, { report }) => total + of(report), 0)
    const messages = sum((report) => report.messages)
    administration.noteIngested(
      token.organizationId,
      paths,
      messages,
      sum(({ matched }) => matched),
    )
  }
  // The service has the buffer open and does not notice events that this process adds.
  if (store.buffer.count(token.organizationId) >= EVENTS_FOR_IMMEDIATE_SCAN)
    askForScan(store, token.organizationId, clock)
  stop.forget()
  if (options.names !== true) printFiles(command, reports, options.dryRun === true)
  for (const line of remarks(reports, problems, organization, clock.nowMs())) process.stderr.write(`${line}\n`)
  const waiting = store.buffer.count(token.organizationId)
  if (options.dryRun !== true && organization !== undefined && waiting > 0 && process.stderr.isTTY) {
    process.stderr.write(
      `${waiting} events wait for the next scan of the service; to scan now: posture-admin scan run --org ${shellWord(organization.name)}\n`,
    )
  }
  if (signal !== undefined) process.exitCode = exitStatusOf(signal)
  for (const fault of faults.slice(1))
    process.stderr.write(`posture-admin: ${fault.code} ${printable(fault.message)}\n`)
  if (faults[0] !== undefined) throw faults[0]
}

/** Scans the organization to empty a full buffer. */
async function scanToFreeSpace(
  store: Store,
  registry: Registries,
  organizationId: string,
  clock: Clock,
): Promise<void> {
  const pending = askForScan(store, organizationId, clock)
  if (pending !== undefined) await scanNow(store, registry, pending, clock, new AbortController().signal)
}

function askForScan(store: Store, organizationId: string, clock: Clock): Scan | undefined {
  return store.environment.shrink(() => {
    const organization = store.organizations.get(organizationId)
    return organization && requestScan(store, organization, clock, 'buffer')
  })
}

/** A few rows, so they may use the space that is reserved for removals. */
export function writeSources(store: Store, intake: Intake): void {
  const counters = {
    sources: intake.sources.takeDeltas(0),
    rejects: intake.takeRejects(),
    candidates: intake.candidates.take(),
  }
  store.environment.shrink(() => addRows(store, counters))
}

function showSources(command: Command, org: string | undefined, { store, administration }: AdminContext): void {
  const organizations =
    org === undefined
      ? [...store.organizations.all(), { id: NO_ORGANIZATION, name: '' }]
      : [administration.organization(org)]
  const rows = organizations.flatMap(({ id, name }) => {
    const labels = new Map(store.monitoringTokens.ofOrganization(id).map((token) => [token.id, token.label]))
    return store.sources
      .ofOrganization(id)
      .sort((a, b) => b.lastSeenMs - a.lastSeenMs)
      .map((source) => sourceRow(source, name, labels.get(source.tokenId) ?? ''))
  })
  show(command, {
    columns: [
      ...(org === undefined ? ([['Organization', 'organization', { hide: 4 }]] as const) : []),
      ['Address', 'address'],
      ['Host', 'host', { hide: 6 }],
      ['Listener', 'listener', { hide: 9 }],
      ...(rows.some((row) => 'node' in row) ? ([['Node', 'node', { hide: 11 }]] as const) : []),
      ['Token', 'token_label', { hide: 7 }],
      ['Format', 'format', { hide: 1 }],
      ['Messages', 'messages'],
      ['Understood', 'understood_share', { hide: 2, text: percentText }],
      ['Matched', 'matched', { hide: 3 }],
      ['Not understood', 'unparsed', { hide: 10 }],
      ['Last seen', 'last_seen', { hide: 5 }],
      ['Remark', 'remark', { wrap: true }],
      ['Redacted sample', 'sample', { hide: 8, wrap: true }],
    ],
    rows,
  })
}

function sourceRow(source: StoredSource, organization: string, label: string): Record<string, unknown> {
  const count = (outcome: keyof typeof Outcome): number => source.counts[Outcome[outcome]] ?? 0
  const messages = source.received
  const unparsed = count('rejected') + count('unknown')
  const [format = ''] = Object.entries(source.formats).sort(([, a], [, b]) => b - a)[0] ?? []
  return {
    organization,
    address: source.address,
    host: source.host,
    listener: source.listener,
    token_label: label,
    format,
    formats: source.formats,
    messages,
    understood_share: messages === 0 ? null : (messages - unparsed - count('unauthorized')) / messages,
    matched: count('stored') + count('duplicate'),
    unparsed,
    ...Object.fromEntries(OUTCOMES.map((outcome, index) => [snake(outcome), source.counts[index] ?? 0])),
    first_seen: timeText(source.firstSeenMs),
    last_seen: timeText(source.lastSeenMs),
    remark: remarkOf(source, format),
    sample: source.sample,
    ...((source.node ?? '') === '' ? {} : { node: source.node }),
  }
}

/** Rounded down: 100 % means that every message was understood. */
function percentText(share: unknown): string {
  return typeof share === 'number' ? `${Math.floor(share * 100)} %` : ''
}

function remarkOf(source: StoredSource, format: string): string {
  const { zoneMinutes, timesUnread, counts } = source
  const count = (...outcomes: readonly (keyof typeof Outcome)[]): number =>
    outcomes.reduce((sum, outcome) => sum + (counts[Outcome[outcome]] ?? 0), 0)
  if (count('unauthorized') > 0) return 'no known token'
  if (count('noDomain') > 0 && count('stored', 'duplicate', 'unmatched', 'ambiguous') === 0)
    return `no host names: ${nameLoggingHint(format)}`
  const unread = timesUnread > 0 ? `${timesUnread} times not understood` : ''
  if (zoneMinutes === 0) return unread
  const sign = zoneMinutes < 0 ? '-' : '+'
  const hours = String(Math.floor(Math.abs(zoneMinutes) / 60)).padStart(2, '0')
  const minutes = String(Math.abs(zoneMinutes) % 60).padStart(2, '0')
  const clock = `clock ${sign}${hours}:${minutes}; see token set --zone`
  return unread === '' ? clock : `${unread}; ${clock}`
}

function showCounters(command: Command, store: Store): void {
  const sums = new Map<string, number[]>()
  const received = new Map<string, number>()
  for (const { id } of [...store.organizations.all(), { id: NO_ORGANIZATION }]) {
    for (const { listener, counts, ...source } of store.sources.ofOrganization(id)) {
      const sum = sums.get(listener) ?? OUTCOMES.map(() => 0)
      for (const [index, count] of counts.entries()) sum[index] = (sum[index] ?? 0) + count
      sums.set(listener, sum)
      received.set(listener, (received.get(listener) ?? 0) + source.received)
    }
  }
  show(command, {
    columns: [
      ['Listener', 'listener'],
      ['Messages', 'messages'],
      ...OUTCOMES.map((outcome, index) => [heading(outcome), snake(outcome), { hide: index + 1 }] as const),
      ['In progress', 'in_progress', { hide: OUTCOMES.length + 1 }],
    ],
    rows: [...sums].map(([listener, counts]) => ({
      listener,
      messages: received.get(listener) ?? 0,
      // Not on disk yet, or lost because the service was killed.
      in_progress: (received.get(listener) ?? 0) - totalOf(counts),
      ...Object.fromEntries(OUTCOMES.map((outcome, index) => [snake(outcome), counts[index] ?? 0])),
    })),
  })
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function heading(name: string): string {
  const words = snake(name).replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}
