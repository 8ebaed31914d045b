import { statSync } from 'node:fs'
import type { Command } from 'commander'
import type { z } from 'zod'
import { MatchTally } from '../../engine/kernel/event/match-tally.ts'
import { STANDARD_INPUT } from '../../engine/kernel/process/byte-source.ts'
import { isoSeconds } from '../../engine/kernel/process/clock.ts'
import { csvRecord } from '../../engine/kernel/process/csv.ts'
import { deferred } from '../../engine/kernel/process/deferred.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { type FileProgress, fileProgress } from '../../engine/kernel/process/file-progress.ts'
import { createLogger } from '../../engine/kernel/process/log.ts'
import { jsonOption } from '../../engine/kernel/process/program.ts'
import { catalogInForce } from '../../engine/kernel/process/registry-setting.ts'
import { addSettingOptions, oneOf, readSettings, setting } from '../../engine/kernel/process/settings.ts'
import { exitStatusOf, stopSignal } from '../../engine/kernel/process/signals.ts'
import { type Column, jsonLine, printable, printsTable, tableOf } from '../../engine/kernel/process/table.ts'
import { type Catalog, loadCatalog, type Rule } from '../../registry/catalog.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import { ruleOfName } from '../../registry/infer-role.ts'
import { NameMatcher } from '../../registry/match.ts'
import type { SharedPool } from '../batch/batch-pool.ts'
import { CaptureFile, openCapture } from '../capture/capture-file.ts'
import { lanesFor, readerSettings } from '../config.ts'
import type { DecodeOptions } from '../decode/decode-batch.ts'
import { serverPorts } from '../decode/ports.ts'
import { filePool, type ObserveCounts, type ObservedName, observe } from '../pipeline/observe.ts'
import { InlineObserver } from '../pipeline/observe-inline.ts'
import { RESOLVERS } from '../visibility.ts'

const OUTPUT_FORMATS = ['table', 'ndjson', 'csv'] as const
type OutputFormat = (typeof OUTPUT_FORMATS)[number]

/** Rows collected for a table. More rows are printed as further tables. */
const TABLE_ROWS_MAX = 1000
/** Fewer packets of one kind are no sign that those of the other direction are missing. */
const DIRECTION_PACKETS_MIN = 20

type Row = Readonly<Record<string, unknown>>

const SEEN_COLUMNS: readonly Column[] = [
  ['Time', 'time', { hide: 1 }],
  ['Client', 'client'],
  ['Method', 'method', { hide: 5 }],
  ['Name', 'name', { wrap: true }],
]
const NAME_COLUMNS: readonly Column[] = [
  ...SEEN_COLUMNS,
  ['Server', 'server', { hide: 4 }],
  ['Port', 'port', { hide: 6 }],
]
const MATCH_COLUMNS: readonly Column[] = [
  ...SEEN_COLUMNS,
  ['Platform', 'platform_name'],
  ['Type', 'platform_type', { hide: 4 }],
  ['Role', 'role', { hide: 6 }],
  ['Specificity', 'specificity', { hide: 3 }],
  ['Purpose', 'purpose', { hide: 7 }],
]
/** Of CSV, which has all columns in every row. */
const NAME_FIELDS = ['time', 'client', 'method', 'name', 'ech', 'via', 'server', 'port']
const MATCH_FIELDS = [
  ...['time', 'client', 'method', 'name', 'ech', 'via', 'platform_id', 'platform_name', 'platform_type'],
  ...['role', 'specificity', 'purpose', 'rule'],
]
const COUNTER_COLUMNS: readonly Column[] = [
  ['File', 'file', { wrap: true }],
  ['Counter', 'counter'],
  ['Count', 'count'],
]
const PLATFORM_COLUMNS: readonly Column[] = [
  ['Platform', 'platformName', { wrap: true }],
  ['Matches', 'matches'],
  ['Clients', 'clients'],
  ['First', 'first', { hide: 2 }],
  ['Last', 'last', { hide: 1 }],
]

/** Prints the names, or the counters, of capture files. */
class ReadOutput {
  readonly #format: OutputFormat
  readonly #rules: readonly Rule[]
  readonly #everyName: boolean
  readonly #hasFiles: boolean
  readonly #summary: MatchTally | undefined
  #rows: Row[] = []
  #hasHeader = false

  constructor(catalog: Catalog, format: OutputFormat, { everyName, files }: { everyName: boolean; files: number }) {
    this.#format = format
    this.#rules = catalog.rules
    this.#everyName = everyName
    this.#hasFiles = files > 1
    if (format === 'table' && !everyName) this.#summary = new MatchTally(new NameMatcher(catalog))
  }

  names(file: string, names: readonly ObservedName[]): void {
    const columns = this.#everyName ? NAME_COLUMNS : MATCH_COLUMNS
    for (const name of names) {
      const { client, timeMs } = name
      this.#summary?.add({ name: name.name, client, timeMs, count: 1 })
      this.#add({ ...(this.#hasFiles ? { file } : {}), ...this.#rowOf(name) }, columns)
    }
  }

  counters(file: string, { classes, counters, frames, bytes, names, matched, unmatched }: ObserveCounts): void {
    const all: Record<string, number> = { frames, bytes, names, matched, unmatched, ...counters }
    for (const [name, count] of Object.entries(classes)) all[`class ${name}`] = count
    for (const [counter, count] of Object.entries(all)) this.#add({ file, counter, count }, COUNTER_COLUMNS)
    this.#flush(COUNTER_COLUMNS)
  }

  /** Prints what waits for a table, and the summary of all files. */
  end(): void {
    if (this.#rows.length > 0) this.#flush(this.#everyName ? NAME_COLUMNS : MATCH_COLUMNS)
    if (this.#summary === undefined) return
    const rows = this.#summary.platforms.map(({ firstMs, lastMs, ...platform }) => {
      return { ...platform, first: isoSeconds(firstMs), last: isoSeconds(lastMs) }
    })
    write(rows.length === 0 ? 'No AI platform was found\n' : `\n${tableOf({ columns: PLATFORM_COLUMNS, rows })}\n`)
  }

  #add(row: Row, columns: readonly Column[]): void {
    if (this.#format === 'ndjson') return write(`${jsonLine(row)}\n`)
    if (this.#format === 'csv') return this.#csv(row, columns)
    this.#rows.push(row)
    if (this.#rows.length >= TABLE_ROWS_MAX) this.#flush(columns)
  }

  #flush(columns: readonly Column[]): void {
    if (this.#rows.length === 0) return
    const fileColumn: readonly Column[] =
      this.#hasFiles && columns !== COUNTER_COLUMNS ? [['File', 'file', { wrap: true, hide: 1 }]] : []
    write(`${tableOf({ columns: [...fileColumn, ...columns], rows: this.#rows })}\n`)
    this.#rows = []
  }

  #csv(row: Row, columns: readonly Column[]): void {
    const own = columns === MATCH_COLUMNS ? MATCH_FIELDS : columns === NAME_COLUMNS ? NAME_FIELDS : Object.keys(row)
    const fields = this.#hasFiles && !own.includes('file') ? ['file', ...own] : own
    if (!this.#hasHeader) write(csvRecord(fields))
    this.#hasHeader = true
    write(csvRecord(fields.map((field) => csvValue(row[field]))))
  }

  #rowOf(name: ObservedName): Row {
    const seen = {
      time: new Date(name.timeMs).toISOString(),
      client: name.client,
      method: name.method,
      name: name.name,
      ...(name.ech === undefined ? {} : { ech: true }),
      ...(name.via === undefined ? {} : { via: name.via }),
    }
    if (this.#everyName) return { ...seen, server: name.server, port: name.serverPort }
    const rule = this.#rules[name.rule]
    return {
      ...seen,
      platform_id: rule?.platform.id,
      platform_name: rule?.platform.name,
      platform_type: rule?.platform.platformType,
      role: rule && ruleOfName(rule, name.name).role,
      specificity: rule?.specificity,
      purpose: rule?.purpose,
      rule: rule?.domain,
    }
  }
}

/** Why a capture may lack names: it seems to hold the packets of one direction only. */
function directionHint({ classes, counters }: Pick<ObserveCounts, 'classes' | 'counters'>): string | undefined {
  const { dnsQuery, dnsResponse, quicOther } = classes
  const hellos = counters.helloName + counters.helloNoName + counters.helloEch + counters.helloIncomplete
  if (dnsQuery + hellos === 0 && dnsResponse + quicOther >= DIRECTION_PACKETS_MIN)
    return 'the file has packets of servers, and none of clients, which name the servers; capture both directions'
  if (dnsResponse === 0 && dnsQuery >= DIRECTION_PACKETS_MIN)
    return 'the file has DNS queries and no answers; capture both directions'
  return undefined
}

function csvValue(value: unknown): string | number {
  return typeof value === 'number' ? value : value === undefined ? '' : String(value)
}

function write(text: string): void {
  process.stdout.write(text)
}

/**
 * Files up to this size are read in the main thread: starting threads would take longer than
 * reading them.
 */
const SMALL_FILE_BYTES = 4 * 1024 * 1024

const readSchema = readerSettings.extend({
  format: setting(oneOf(OUTPUT_FORMATS).optional(), {
    flag: '--format <format>',
    about: 'Print a table, one JSON object per line, or CSV; by default a table on a terminal, and JSON in a pipe',
  }),
})

interface ReadOptions {
  readonly names?: boolean
  readonly stats?: boolean
  readonly json?: boolean
}

/** posture-collector read: prints the names in capture files, and forwards nothing. */
export function addReadCommand(program: Command): void {
  const read = addSettingOptions(
    program
      .command('read')
      .description('Print the names that the sensor finds in capture files, and forward nothing')
      .argument(
        '<file...>',
        'Files in pcap or pcapng format, plain or compressed with gzip or zstd; - is standard input',
      ),
    readSchema,
  )
    .option('--names', 'Print every name, not only matches')
    .option('--stats', 'Print counters instead of names')
  jsonOption(read)
  read.action(async (files: string[], options: ReadOptions) => {
    const stop = stopSignal()
    const { format: given, ...settings } = readSettings(readSchema, { command: read, environment: process.env })
    const catalog = catalogOf(settings)
    const { names: everyName = false, stats = false } = options
    const format = given ?? (printsTable(options) ? 'table' : 'ndjson')
    const output = new ReadOutput(catalog, format, { everyName, files: files.length })
    const reader = new FileReader(compileTrie(catalog.rules), settings, everyName)
    stop.received.then((signal) => {
      process.exitCode = exitStatusOf(signal)
      reader.stop()
    })
    const damages: Fault[] = []
    for (const file of files) {
      const damage = await reader
        .read(file, (names) => {
          if (!stats) output.names(file, names)
        })
        .then(({ counts, damage }) => {
          if (stats) output.counters(file, counts)
          const hint = directionHint(counts)
          if (hint !== undefined) process.stderr.write(`${printable(file)}: ${hint}\n`)
          return damage
        })
        .catch(faultOf)
      if (damage !== undefined) damages.push(damage)
      if (process.exitCode !== undefined) break
    }
    stop.forget()
    if (!stats) output.end()
    for (const damage of damages.slice(0, -1))
      process.stderr.write(`posture-collector: ${damage.code} ${damage.message}\n`)
    const last = damages.at(-1)
    if (last !== undefined) throw last
  })
}

/** Without an operator's file there is nothing to log, so no logger is created. */
function catalogOf({ registry, logLevel }: z.output<typeof readerSettings>): Catalog {
  if (registry === '') return loadCatalog()
  return catalogInForce(registry, createLogger('posture-collector', logLevel === 'INFO' ? 'WARNING' : logLevel))
}

/** A file that cannot be opened does not stop the others from being read. */
function faultOf(error: unknown): Fault {
  if (error instanceof Fault) return error
  throw error
}

interface FileRead {
  readonly counts: ObserveCounts
  /** Why the file ended early. */
  readonly damage: Fault | undefined
}

type TakeNames = (names: readonly ObservedName[]) => void

/** Reads capture files, one after the other, in memory that they share. */
class FileReader {
  readonly #settings: z.output<typeof readerSettings>
  readonly #lanes: number
  readonly #decode: DecodeOptions
  #pool: SharedPool | undefined
  #inline: InlineObserver | undefined
  /** Ends the reading in progress. */
  #stop: () => void = () => {}
  #isStopped = false

  constructor(trie: SharedArrayBuffer, settings: z.output<typeof readerSettings>, everyName: boolean) {
    this.#settings = settings
    this.#lanes = lanesFor('file', settings.decodeWorkers)
    const { loadBalancers } = settings
    this.#decode = { trie, resolvers: compileTrie(RESOLVERS), everyName, ...serverPorts(settings), loadBalancers }
  }

  /** @throws Fault CAPTURE_UNREADABLE, CAPTURE_FORMAT, CAPTURE_DAMAGED */
  async read(path: string, take: TakeNames): Promise<FileRead> {
    const progress = fileProgress(path)
    const isSmall = this.#settings.decodeWorkers === undefined && (sizeOf(path) ?? Infinity) <= SMALL_FILE_BYTES
    try {
      return await (isSmall ? this.#readHere(path, take) : this.#readInThreads(path, take, progress))
    } finally {
      progress.end()
      this.#stop = () => {}
    }
  }

  stop(): void {
    this.#isStopped = true
    this.#stop()
  }

  async #readHere(path: string, take: TakeNames): Promise<FileRead> {
    const file = await CaptureFile.open(path)
    this.#inline ??= new InlineObserver(this.#decode)
    const inline = this.#inline
    this.#stop = () => inline.stop()
    const { counts, damage } = await inline.observe(file, { onNames: take })
    return { counts, damage: damage === undefined ? undefined : new Fault('CAPTURE_DAMAGED', `${path}: ${damage}`) }
  }

  async #readInThreads(path: string, take: TakeNames, progress: FileProgress): Promise<FileRead> {
    this.#pool ??= filePool(this.#lanes)
    const canceled = deferred<void>()
    this.#stop = canceled.resolve
    const { resolvers: _resolvers, ...decode } = this.#decode
    const observation = await observe(
      { kind: 'file', path, descriptor: openCapture(path) },
      {
        ...decode,
        lanes: this.#lanes,
        memory: this.#pool,
        onNames: take,
        onProgress: progress.update,
        cancel: canceled.promise,
      },
    )
    this.#stop = () => void observation.stop()
    if (this.#isStopped) this.#stop()
    const { damage } = await observation.done
    return { counts: observation.counts, damage }
  }
}

/** The size of a regular file in bytes; undefined for a pipe. */
function sizeOf(path: string): number | undefined {
  if (path === STANDARD_INPUT) return undefined
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat?.isFile() === true ? stat.size : undefined
}
