import type { CsvFields } from './csv.ts'
import { CellKind } from './csv-cells.ts'
import { CsvTable, NO_COLUMN } from './csv-table.ts'
import { FieldKind } from './field-names.ts'
import { Verdict } from './log-line.ts'

/** The columns are decided after this many lines of one layout. */
export const LEARNED_LINES = 20
/** Wider tables without a header are not learned. */
export const LEARNED_COLUMNS_MAX = 64
/**
 * Minimum counts among LEARNED_LINES: a cell may be absent, or a device may write another line
 * between its rows.
 */
const TIMES_MIN = 19
const ADDRESSES_MIN = 16
const HOSTS_MIN = 18
const PATHS_MIN = 10
const KINDS = Object.keys(CellKind).length

/**
 * The contents of the columns of a source's table without a header. Kept with the source until the
 * columns are decided.
 */
export class CsvLearning {
  readonly delimiter: number
  readonly columns: number
  #lines = 0
  /** The number of cells, for each kind and column. */
  readonly #counts = new Uint8Array(KINDS * LEARNED_COLUMNS_MAX)
  /** 1 for a column that had an address in at least one line. */
  readonly #addresses = new Uint8Array(LEARNED_COLUMNS_MAX)
  readonly #firsts = new Int32Array(LEARNED_COLUMNS_MAX)
  readonly #differs = new Uint8Array(LEARNED_COLUMNS_MAX)

  constructor(delimiter: number, columns: number) {
    this.delimiter = delimiter
    this.columns = columns
  }

  /**
   * Counts a line's cells, which have these kinds. Returns true when the columns can be decided.
   */
  add(view: DataView, cells: CsvFields, kinds: Uint8Array): boolean {
    for (let column = 0; column < this.columns; column++) {
      const start = cells.start(column)
      const end = cells.end(column)
      const place = (kinds[column] ?? 0) * LEARNED_COLUMNS_MAX + column
      this.#counts[place] = (this.#counts[place] ?? 0) + 1
      if (kinds[column] === CellKind.address) this.#addresses[column] = 1
      const sum = sumOf(view, start, end)
      if (this.#lines === 0) this.#firsts[column] = sum
      else if (this.#firsts[column] !== sum) this.#differs[column] = 1
    }
    this.#lines++
    return this.#lines === LEARNED_LINES
  }

  /** The table of the lines, or undefined if the columns are ambiguous. */
  decide(): CsvTable | undefined {
    const time = this.#timeColumn()
    const client = this.#clientColumn()
    const host = this.#hostColumn()
    if (time === NO_COLUMN || client === NO_COLUMN || host === NO_COLUMN) return undefined
    const table = new CsvTable(this.delimiter, this.columns, Verdict.event)
    table.add(FieldKind.time, time)
    if (this.#count(CellKind.time, time) < TIMES_MIN) table.addDate(time - 1)
    table.add(FieldKind.client, client)
    table.add(FieldKind.host, host)
    table.isLearned = true
    return table
  }

  #count(kind: CellKind, column: number): number {
    return this.#counts[kind * LEARNED_COLUMNS_MAX + column] ?? 0
  }

  #timeColumn(): number {
    for (let column = 0; column < this.columns; column++) {
      if (this.#count(CellKind.time, column) >= TIMES_MIN) return column
    }
    for (let column = 1; column < this.columns; column++) {
      if (this.#count(CellKind.timeOfDay, column) < TIMES_MIN) continue
      if (this.#count(CellKind.date, column - 1) >= TIMES_MIN) return column
    }
    return NO_COLUMN
  }

  /**
   * Whether more than one column has addresses, so that no evidence shows which is the client's.
   */
  get hasManyAddresses(): boolean {
    let columns = 0
    for (let column = 0; column < this.columns; column++) {
      // In a column of hosts, an address is the destination of a request without a name.
      const hasNames = this.#count(CellKind.host, column) + this.#count(CellKind.url, column) > 0
      if (this.#addresses[column] === 1 && !hasNames) columns++
    }
    return columns > 1
  }

  /** Starts to count again. The columns with addresses stay known. */
  restart(): void {
    this.#lines = 0
    this.#counts.fill(0)
    this.#differs.fill(0)
  }

  /** The only column with addresses. */
  #clientColumn(): number {
    if (this.hasManyAddresses) return NO_COLUMN
    for (let column = 0; column < this.columns; column++) {
      if (this.#count(CellKind.address, column) >= ADDRESSES_MIN) return column
    }
    return NO_COLUMN
  }

  /**
   * The column with names: the first column with URLs, else the only column with hosts. A table
   * with paths is a web server's own log and has no such column. After a column that held only `-`
   * or URLs, URLs may be referers.
   */
  #hostColumn(): number {
    let best = NO_COLUMN
    let isTied = false
    let mayBeReferer = false
    for (let column = 0; column < this.columns; column++) {
      if (this.#count(CellKind.path, column) >= PATHS_MIN) return NO_COLUMN
      const urls = this.#count(CellKind.url, column) + this.#count(CellKind.bareUrl, column)
      const names = urls + this.#count(CellKind.host, column)
      if (names < HOSTS_MIN || this.#differs[column] === 0) {
        mayBeReferer ||= names + this.#count(CellKind.absent, column) === LEARNED_LINES
        continue
      }
      if (urls > 0) {
        if (!mayBeReferer) return column
        continue
      }
      isTied ||= best !== NO_COLUMN
      if (best === NO_COLUMN) best = column
    }
    return isTied ? NO_COLUMN : best
  }
}

/** A hash: two cells with different hashes differ. */
function sumOf(view: DataView, start: number, end: number): number {
  let sum = end - start
  for (let at = start; at < end; at++) sum = (Math.imul(sum, 31) + view.getUint8(at)) | 0
  return sum
}
