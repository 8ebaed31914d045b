import { foldedTextAt, textAt } from './bytes.ts'
import type { CsvFields } from './csv.ts'
import { CellKind } from './csv-cells.ts'
import { CsvTable, NO_COLUMN } from './csv-table.ts'
import { FieldKind } from './field-names.ts'
import { isIpv4Text } from './ip-address.ts'

/** After so many lines of one layout it is decided what its columns are. */
export const LEARNED_LINES = 20
/** Wider tables without header are not learned. */
export const LEARNED_COLUMNS_MAX = 64
/** Of LEARNED_LINES: a cell may miss, for a device writes a note between its rows, or knows no address. */
const TIMES_MIN = 19
const ADDRESSES_MIN = 16
const HOSTS_MIN = 18
const PATHS_MIN = 10
const KINDS = Object.keys(CellKind).length

/** What the columns of a source's table without header have held so far. Kept with the source, until it is decided. */
export class CsvLearning {
  readonly delimiter: number
  readonly columns: number
  #lines = 0
  /** For each kind of cell and each column how often. */
  readonly #counts = new Uint8Array(KINDS * LEARNED_COLUMNS_MAX)
  readonly #privates = new Uint8Array(LEARNED_COLUMNS_MAX)
  readonly #firsts = new Int32Array(LEARNED_COLUMNS_MAX)
  readonly #differs = new Uint8Array(LEARNED_COLUMNS_MAX)

  constructor(delimiter: number, columns: number) {
    this.delimiter = delimiter
    this.columns = columns
  }

  /** Counts a line's cells; `kinds` is what each looks like. True if it is time to decide. */
  add(view: DataView, cells: CsvFields, kinds: Uint8Array): boolean {
    for (let column = 0; column < this.columns; column++) {
      const start = cells.start(column)
      const end = cells.end(column)
      const place = (kinds[column] ?? 0) * LEARNED_COLUMNS_MAX + column
      this.#counts[place] = (this.#counts[place] ?? 0) + 1
      if (isPrivate(view, start, end)) this.#privates[column] = (this.#privates[column] ?? 0) + 1
      const sum = sumOf(view, start, end)
      if (this.#lines === 0) this.#firsts[column] = sum
      else if (this.#firsts[column] !== sum) this.#differs[column] = 1
    }
    this.#lines++
    return this.#lines === LEARNED_LINES
  }

  /** The table that the lines were of, or undefined where that cannot be told. */
  decide(): CsvTable | undefined {
    const time = this.#timeColumn()
    const client = this.#clientColumn()
    const host = this.#hostColumn(client)
    if (time === NO_COLUMN || client === NO_COLUMN || host === NO_COLUMN) return undefined
    const table = new CsvTable(this.delimiter, this.columns)
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

  /** The first column with addresses, private ones rather than others; one that never changes is the device, where there is another. */
  #clientColumn(): number {
    let best = NO_COLUMN
    let bestScore = -1
    for (let column = 0; column < this.columns; column++) {
      if (this.#count(CellKind.address, column) < ADDRESSES_MIN) continue
      const isMostlyPrivate = (this.#privates[column] ?? 0) * 2 > LEARNED_LINES
      const score = (this.#differs[column] === 1 ? 2 : 0) + (isMostlyPrivate ? 1 : 0)
      if (score <= bestScore) continue
      best = column
      bestScore = score
    }
    return best
  }

  /**
   * The column with names, URLs rather than hosts, the first of them: a referer comes later. Behind the target of a web server's own log there is
   * none, and behind a column that never held anything but `-` or URLs it may be that one's referer. Of two columns of plain hosts the one beside the address of the destination.
   */
  #hostColumn(client: number): number {
    let best = NO_COLUMN
    let bestScore = 0
    let isTied = false
    let mayBeReferer = false
    for (let column = 0; column < this.columns; column++) {
      if (this.#count(CellKind.path, column) >= PATHS_MIN) break
      const urls = this.#count(CellKind.url, column) + this.#count(CellKind.bareUrl, column)
      const names = urls + this.#count(CellKind.host, column)
      if (names < HOSTS_MIN || this.#differs[column] === 0) {
        mayBeReferer ||= names + this.#count(CellKind.absent, column) === LEARNED_LINES
        continue
      }
      if (urls > 0 && mayBeReferer) continue
      const score = urls > 0 ? 3 : this.#isBesideDestination(column, client) ? 2 : 1
      if (score < 3 && score === bestScore) isTied = true
      if (score <= bestScore) continue
      best = column
      bestScore = score
      isTied = false
    }
    return isTied ? NO_COLUMN : best
  }

  #isBesideDestination(column: number, client: number): boolean {
    return this.#isDestination(column - 1, client) || this.#isDestination(column + 1, client)
  }

  #isDestination(column: number, client: number): boolean {
    return column >= 0 && column !== client && this.#count(CellKind.address, column) >= ADDRESSES_MIN
  }
}

/** RFC 1918 and 4193. */
export function isPrivate(view: DataView, start: number, end: number): boolean {
  if (!isIpv4Text(view, start, end)) {
    return foldedTextAt(view, start, end, 'fd') && end - start > 3 && end - start <= 39
  }
  if (textAt(view, start, end, '10.') || textAt(view, start, end, '192.168.')) return true
  if (!textAt(view, start, end, '172.')) return false
  const second = (view.getUint8(start + 4) - 0x30) * 10 + view.getUint8(start + 5) - 0x30
  return second >= 16 && second <= 31 && view.getUint8(start + 6) === 0x2e
}

/** A number by which two cells differ, if they do. */
function sumOf(view: DataView, start: number, end: number): number {
  let sum = end - start
  for (let at = start; at < end; at++) sum = (Math.imul(sum, 31) + view.getUint8(at)) | 0
  return sum
}
