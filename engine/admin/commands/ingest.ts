import { type Command, Option } from 'commander'
import { z } from 'zod'
import { compileTrie } from '../../../registry/compile-trie.ts'
import { NameMatcher } from '../../../registry/match.ts'
import { EventAcceptor } from '../../ingest/accept.ts'
import { Intake } from '../../ingest/intake.ts'
import { OUTCOMES, Outcome, totalOf } from '../../ingest/outcome.ts'
import { type FileReport, type LineTrouble, LogReader, READ_WORK_BYTES } from '../../ingest/read-log.ts'
import { type KnownToken, TokenDoor } from '../../ingest/token-door.ts'
import { STANDARD_INPUT } from '../../process/byte-source.ts'
import type { Clock } from '../../process/clock.ts'
import { Fault } from '../../process/error-codes.ts'
import { exclusively } from '../../process/exclusive.ts'
import { fileProgress } from '../../process/file-progress.ts'
import { createLogger } from '../../process/log.ts'
import { catalogInForce } from '../../process/registry-setting.ts'
import { readSettings, setting, someText } from '../../process/settings.ts'
import { exitStatusOf, stopSignal } from '../../process/shutdown.ts'
import { printable } from '../../process/table.ts'
import { requestScan } from '../../scan/fold.ts'
import { scanNow } from '../../scan/scan-now.ts'
import { EVENTS_FOR_IMMEDIATE_SCAN } from '../../scan/schedule.ts'
import type { Scan } from '../../store/scans.ts'
import { NOBODY, type StoredSource } from '../../store/sources.ts'
import type { Store } from '../../store/store.ts'
import { type AdminContext, countOption, sharedOptions, show, timeText, withStore } from './context.ts'

const tokenSetting = z.object({
  token: setting(someText(), {
    flag: '--token <token>',
    env: 'SVC_TOKEN',
    about:
      'Monitoring token of the organization whose logs these are; better by the environment than in a list of processes',
    secret: true,
  }),
})

/** Lines that were not understood, of one file, that are shown unless told otherwise. */
const TROUBLES_SHOWN = 10

interface FileOptions {
  readonly dryRun?: boolean
  readonly registry: string
  readonly rejects: number
}

/** posture-admin ingest file | sources | rejects | books */
export function addIngestCommands(program: Command): void {
  const ingest = program.command('ingest').description('logs of other devices: read files, see who sends what')

  const file = sharedOptions(
    ingest
      .command('file <file...>')
      .description(
        'read logs of firewalls, proxies and DNS servers, packed by gzip or zstd or not; - is standard input',
      ),
  )
    .option(
      '--token <token>',
      'monitoring token of the organization (env: SVC_TOKEN, which does not show in a list of processes)',
    )
    .option('--dry-run', 'store nothing, tell what would be stored')
    .option('--registry <file>', "the service's registry file", process.env['REGISTRY_FILE'] ?? '')
    .addOption(
      new Option('--rejects <count>', 'lines that were not understood to show, of each file')
        .default(TROUBLES_SHOWN)
        .argParser(countOption(0, 1e9)),
    )
  file.action((paths: string[], options: FileOptions) =>
    withStore(file, (context) => {
      const read = (): Promise<void> => readFiles(file, paths, options, context)
      // Two at once would count what both read twice.
      return options.dryRun === true ? read() : exclusively(context.store.environment.path, 'ingest file', read)
    }),
  )

  const sources = sharedOptions(
    ingest.command('sources').description('show who sends logs, in which format, and how much of it was understood'),
  ).option('--org <name>', 'name or id of the organization; without it all, and who sends without a known token')
  sources.action((options: { org?: string }) =>
    withStore(sources, (context) => showSources(sources, options.org, context)),
  )

  const rejects = sharedOptions(
    ingest.command('rejects').description('show the last messages that were not understood, redacted'),
  ).requiredOption('--org <name>', 'name or id of the organization')
  rejects.action((options: { org: string }) =>
    withStore(rejects, ({ store, administration }) => {
      const { id } = administration.organization(options.org)
      show(rejects, {
        columns: [
          ['Time', 'time'],
          ['Address', 'address'],
          ['Host', 'host'],
          ['Format', 'format'],
          ['Reason', 'reason'],
          ['Message, redacted', 'sample'],
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
        wrapLast: true,
      })
    }),
  )

  const books = sharedOptions(
    ingest.command('books').description('show what became of all messages, by listener; the sums must balance'),
  )
  books.action(() => withStore(books, ({ store }) => showBooks(books, store)))
}

async function readFiles(
  command: Command,
  paths: readonly string[],
  options: FileOptions,
  { store, administration, clock }: AdminContext,
): Promise<void> {
  const { token: raw } = readSettings(tokenSetting, { command, environment: process.env })
  const log = createLogger('posture-admin', 'WARNING')
  const catalog = catalogInForce(options.registry, log)
  const door = new TokenDoor(store, clock)
  const bytes = Buffer.from(raw)
  const token = door.find(bytes, 0, bytes.length)
  if (token === undefined)
    throw new Fault('NOT_FOUND', '--token: unknown or revoked; posture-admin token generate makes one')
  const matcher = new NameMatcher(catalog)
  const acceptor = new EventAcceptor(store, matcher, clock, log, () => {})
  const stop = stopSignal()
  let signal: Awaited<typeof stop.received> | undefined
  stop.received.then((received) => {
    signal = received
  })
  const reports: FileReport[] = []
  const faults: Fault[] = []
  const troubles: (LineTrouble & { readonly file: string })[] = []
  for (const path of paths) {
    if (signal !== undefined) break
    const intake = new Intake(new Uint8Array(READ_WORK_BYTES), compileTrie(catalog.rules), door, {
      tokenRate: undefined,
      noteUnauthorised: () => {},
    })
    const progress = fileProgress(path === STANDARD_INPUT ? undefined : path)
    let shown = 0
    const reader = new LogReader(store, acceptor, intake, token, {
      dryRun: options.dryRun === true,
      onTrouble: (trouble) => {
        if (shown++ < options.rejects) troubles.push({ file: path, ...trouble })
      },
      onProgress: progress.update,
      stopped: () => signal !== undefined,
      stop: stop.received,
      fold: () => makeRoom(store, matcher, token.organizationId, clock),
    })
    try {
      const { report, fault } = await reader.read(path)
      reports.push(report)
      if (fault !== undefined) faults.push(fault)
    } catch (error) {
      // A file that cannot be opened does not keep the others from being read.
      if (!(error instanceof Fault)) throw error
      faults.push(error)
    } finally {
      progress.end()
    }
    if (options.dryRun !== true) writeSources(store, intake)
    if (faults.at(-1)?.code === 'STORE_FULL') break
  }
  if (options.dryRun !== true && reports.length > 0) {
    const sum = (of: (report: FileReport) => number): number => reports.reduce((total, report) => total + of(report), 0)
    const messages = sum((report) => report.messages)
    administration.noteIngested(
      token.organizationId,
      paths,
      messages,
      sum(({ matched }) => matched),
    )
  }
  // Who holds the buffer, which is the service, does not see that it was filled by us.
  if (store.buffer.count(token.organizationId) >= EVENTS_FOR_IMMEDIATE_SCAN)
    askForScan(store, token.organizationId, clock)
  stop.forget()
  print(command, reports, troubles, token, options, store)
  if (signal !== undefined) process.exitCode = exitStatusOf(signal)
  for (const fault of faults.slice(1))
    process.stderr.write(`posture-admin: ${fault.code} ${printable(fault.message)}\n`)
  if (faults[0] !== undefined) throw faults[0]
}

/** Folds a buffer that is full. */
async function makeRoom(store: Store, matcher: NameMatcher, organizationId: string, clock: Clock): Promise<void> {
  const pending = askForScan(store, organizationId, clock)
  if (pending !== undefined) await scanNow(store, () => matcher, pending, clock, new AbortController().signal)
}

function askForScan(store: Store, organizationId: string, clock: Clock): Scan | undefined {
  return store.environment.shrink(() => {
    const organization = store.organizations.get(organizationId)
    return organization && requestScan(store, organization, clock, 'buffer')
  })
}

/** A few rows: they may use what is held free for work that makes room. */
function writeSources(store: Store, intake: Intake): void {
  store.environment.shrink(() => {
    store.sources.add(intake.sources.takeDeltas(0))
    store.sources.addRejects(intake.takeRejects())
  })
}

function print(
  command: Command,
  reports: readonly FileReport[],
  troubles: readonly (LineTrouble & { readonly file: string })[],
  token: KnownToken,
  options: FileOptions,
  store: Store,
): void {
  show(command, {
    columns: [
      ['File', 'file'],
      ['Lines', 'lines'],
      ['Formats', 'formats_text'],
      [options.dryRun === true ? 'Would match' : 'Matched', 'matched'],
      ['Read before', 'duplicates'],
      ['No platform', 'unmatched'],
      ['No host', 'no_domain'],
      ['Skipped', 'skipped'],
      ['Rejected', 'rejected'],
      ['Unknown', 'unknown'],
      ['Ambiguous', 'ambiguous'],
    ],
    rows: reports.map(({ noDomain, formats, unfinished: _unfinished, ...report }) => ({
      ...report,
      no_domain: noDomain,
      formats,
      ...(process.stdout.isTTY ? { formats_text: formatsText(formats) } : {}),
    })),
  })
  for (const { file, unfinished } of reports) {
    if (unfinished) {
      process.stderr.write(`${printable(file)}: the last line has no end yet and was left; read the file again later\n`)
    }
  }
  // Beside the report, so that a program that reads the report is not disturbed.
  for (const { file, line, format, reason } of troubles) {
    process.stderr.write(`${printable(file)} line ${line}: ${format === '' ? '' : `${format}: `}${reason}\n`)
  }
  const { organizationId } = token
  const waiting = store.buffer.count(organizationId)
  if (options.dryRun !== true && waiting > 0 && process.stderr.isTTY) {
    process.stderr.write(
      `${waiting} events wait for the next scan, which the running service makes, or: posture-admin scan run --org ${organizationId}\n`,
    )
  }
}

function formatsText(formats: Readonly<Record<string, number>>): string {
  return Object.entries(formats)
    .sort(([, a], [, b]) => b - a)
    .map(([id, count]) => `${id} ${count}`)
    .join(', ')
}

function showSources(command: Command, org: string | undefined, { store, administration }: AdminContext): void {
  const organizations =
    org === undefined ? [...store.organizations.all(), { id: NOBODY, name: '' }] : [administration.organization(org)]
  const rows = organizations.flatMap(({ id, name }) => {
    const labels = new Map(store.monitoringTokens.ofOrganization(id).map((token) => [token.id, token.label]))
    return store.sources
      .ofOrganization(id)
      .sort((a, b) => b.lastSeenMs - a.lastSeenMs)
      .map((source) => sourceRow(source, name, labels.get(source.tokenId) ?? ''))
  })
  show(command, {
    columns: [
      ...(org === undefined ? ([['Organization', 'organization']] as const) : []),
      ['Address', 'address'],
      ['Host', 'host'],
      ['By', 'listener'],
      ['Token', 'token_label'],
      ['Format', 'format'],
      ['Messages', 'messages'],
      ['Understood', 'understood'],
      ['Matched', 'matched'],
      ['Not understood', 'unparsed'],
      ['Last seen', 'last_seen'],
      ['Remark', 'remark'],
      ['Last not understood, redacted', 'sample'],
    ],
    rows,
    wrapLast: true,
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
    understood:
      messages === 0 ? '' : `${Math.floor(((messages - unparsed - count('unauthorised')) / messages) * 100)} %`,
    matched: count('stored') + count('duplicate'),
    unparsed,
    ...Object.fromEntries(OUTCOMES.map((outcome, index) => [snake(outcome), source.counts[index] ?? 0])),
    first_seen: timeText(source.firstSeenMs),
    last_seen: timeText(source.lastSeenMs),
    remark: remarkOf(source, count('unauthorised')),
    sample: source.sample,
  }
}

function remarkOf({ zoneMinutes, timesUnread }: StoredSource, unauthorised: number): string {
  if (unauthorised > 0) return 'no known token'
  const unread = timesUnread > 0 ? `${timesUnread} times not read` : ''
  if (zoneMinutes === 0) return unread
  const sign = zoneMinutes < 0 ? '-' : '+'
  const hours = String(Math.floor(Math.abs(zoneMinutes) / 60)).padStart(2, '0')
  const minutes = String(Math.abs(zoneMinutes) % 60).padStart(2, '0')
  const clock = `clock ${sign}${hours}:${minutes}: see token set --zone`
  return unread === '' ? clock : `${unread}; ${clock}`
}

function showBooks(command: Command, store: Store): void {
  const sums = new Map<string, number[]>()
  const received = new Map<string, number>()
  for (const { id } of [...store.organizations.all(), { id: NOBODY }]) {
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
      ...OUTCOMES.map((one) => [heading(one), snake(one)] as const),
      ['On their way', 'unsettled'],
    ],
    rows: [...sums].map(([listener, counts]) => ({
      listener,
      messages: received.get(listener) ?? 0,
      // To the disk; or lost on the way, if the service was killed meanwhile.
      unsettled: (received.get(listener) ?? 0) - totalOf(counts),
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
