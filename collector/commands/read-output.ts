import { MatchTally } from '../../engine/kernel/event/match-tally.ts'
import { isoSeconds } from '../../engine/kernel/process/clock.ts'
import { csvRecord } from '../../engine/kernel/process/csv.ts'
import { type Column, jsonLine, tableOf } from '../../engine/kernel/process/table.ts'
import type { Catalog, Rule } from '../../registry/catalog.ts'
import { ruleOfName } from '../../registry/infer-role.ts'
import { NameMatcher } from '../../registry/match.ts'
import type { ObserveCounts, ObservedName } from '../pipeline/observe.ts'

export const OUTPUT_FORMATS = ['table', 'ndjson', 'csv'] as const
export type OutputFormat = (typeof OUTPUT_FORMATS)[number]

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
export class ReadOutput {
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
export function directionHint({ classes, counters }: Pick<ObserveCounts, 'classes' | 'counters'>): string | undefined {
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
