import { actionOf } from './action.ts'
import { isDigit, SLASH } from './bytes.ts'
import type { CsvFields } from './csv.ts'
import { CellKind, cellKind, hasScheme, isOtherRow, isPlausibleHost } from './csv-cells.ts'
import {
  DATE_FIELD,
  DOMAIN_FIELD,
  FIELD_RANKS,
  FieldKind,
  HOST_FIELD,
  NAME_FIELD,
  NameTable,
  NO_FIELD,
  SYNONYMS,
  URL_OR_FILE_FIELD,
  WEBSITE_FIELD,
} from './field-names.ts'
import { takeHostOf } from './found-fields.ts'
import { ambiguous } from './generic-request.ts'
import { AddressKind, addressKind } from './ip-address.ts'
import { type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { hasRecordWord } from './record-words.ts'
import { takeUser } from './user-name.ts'

export const NO_COLUMN = -1
/** This many columns of a role are tried, in the order of their names' ranks. */
const CHOICES = 4
/** A table with more than one failed row in this many rows is discarded. */
const ROWS_PER_FAILURE = 20
/**
 * Counts are halved after this many rows, so that an old table is discarded as soon as a new one.
 */
const ROWS_REMEMBERED = 1000
/** If the header names no time, this many rows are searched for a time. */
const TIMELESS_ROWS_MAX = 20

const NAMES = new NameTable(SYNONYMS)

/**
 * Flags of a host column: its name has no other meaning, may be a file's, or may be a machine's
 * own.
 */
const HostColumn = { requested: 0, file: 1, own: 2, ownOrFile: 3, uncertain: 4 } as const
type HostColumn = (typeof HostColumn)[keyof typeof HostColumn]

/** The roles of the columns of a source's table. Kept with the source. */
export class CsvTable {
  readonly delimiter: number
  /** The number of columns of the header, or of the learned lines. */
  readonly width: number
  /** The columns were learned from content, so each row must match them. */
  isLearned = false
  readonly #times = new Int16Array(CHOICES).fill(NO_COLUMN)
  readonly #clients = new Int16Array(CHOICES).fill(NO_COLUMN)
  readonly #hosts = new Int16Array(CHOICES).fill(NO_COLUMN)
  readonly #users = new Int16Array(CHOICES).fill(NO_COLUMN)
  #sent = NO_COLUMN
  #received = NO_COLUMN
  #action = NO_COLUMN
  /** The column of the date, if the time of day has another column. */
  #date = NO_COLUMN
  /** One of HostColumn for each host column. */
  readonly #hostColumns = new Uint8Array(CHOICES)
  /** Columns that say which kind of record a row is. */
  readonly #kinds = new Int16Array(CHOICES).fill(NO_COLUMN)
  /** The verdict on a row that names a host. */
  readonly #verdict: Verdict
  #rows = 0
  #failures = 0

  /** Rows that were searched for a time, because no column is named as one. */
  #timeless = 0

  /**
   * @param verdict of a row that names a host: an event if the columns are evidence of a client's
   * request
   */
  constructor(delimiter: number, width: number, verdict: Verdict) {
    this.delimiter = delimiter
    this.width = width
    this.#verdict = verdict
  }

  /** Columns are tried in the order in which they are added. */
  add(kind: FieldKind, column: number, hostColumn: HostColumn = HostColumn.requested): void {
    if (kind === FieldKind.action) {
      if (this.#action === NO_COLUMN) this.#action = column
      return
    }
    if (kind === FieldKind.sent) {
      if (this.#sent === NO_COLUMN) this.#sent = column
      return
    }
    if (kind === FieldKind.received) {
      if (this.#received === NO_COLUMN) this.#received = column
      return
    }
    const choices = this.#choicesOf(kind)
    const free = choices.indexOf(NO_COLUMN)
    if (free === NO_COLUMN) return
    choices[free] = column
    if (choices === this.#hosts) this.#hostColumns[free] = hostColumn
  }

  #choicesOf(kind: FieldKind): Int16Array {
    switch (kind) {
      case FieldKind.time:
        return this.#times
      case FieldKind.client:
      case FieldKind.address:
        return this.#clients
      case FieldKind.kind:
        return this.#kinds
      case FieldKind.user:
        return this.#users
      default:
        return this.#hosts
    }
  }

  addDate(column: number): void {
    this.#date = column
  }

  /** Reads a row from its cells. Unknown if the row does not match the table. */
  read(line: LogLine, cells: CsvFields): Verdict {
    if (++this.#rows === ROWS_REMEMBERED) {
      this.#rows /= 2
      this.#failures /= 2
    }
    if (!this.#hasWidth(cells)) return this.#failed()
    if (this.#times[0] === NO_COLUMN && this.#timeless < TIMELESS_ROWS_MAX) this.#findTime(line, cells)
    const time = this.#takeTime(line, cells)
    if (time === TimeFound.impossible) return line.reject('time: expected a valid date and time')
    const hasClient = this.#takeClient(line, cells)
    // With a header and a client, a row counts even if its time is unreadable.
    if (time === TimeFound.none && (this.isLearned || !hasClient)) return this.#failed()
    if (this.#action !== NO_COLUMN && this.#action < cells.count) {
      line.action = actionOf(line.view, cells.start(this.#action), cells.end(this.#action))
    }
    return this.#takeHost(line, cells)
  }

  /** Whether the source must have changed its layout, by the number of failed rows. */
  get isOutdated(): boolean {
    return this.#rows >= ROWS_PER_FAILURE && this.#failures * ROWS_PER_FAILURE > this.#rows
  }

  /** A delimiter at the end of a row adds no column. */
  #hasWidth(cells: CsvFields): boolean {
    const { width } = this
    return cells.count === width || (cells.count === width + 1 && cells.start(width) === cells.end(width))
  }

  /**
   * Finds the time of a table whose header has an unknown name for it (`Zeit`): the first column
   * that looks like a time.
   */
  #findTime(line: LogLine, cells: CsvFields): void {
    this.#timeless++
    let before: CellKind = CellKind.other
    for (let column = 0; column < this.width; column++) {
      const kind = cellKind(line, cells.start(column), cells.end(column))
      const isApart = kind === CellKind.timeOfDay && before === CellKind.date
      if (kind === CellKind.time || isApart) {
        this.add(FieldKind.time, column)
        if (isApart) this.addDate(column - 1)
        break
      }
      before = kind
    }
    line.reset()
  }

  #failed(): Verdict {
    this.#failures++
    return Verdict.unknown
  }

  #takeClient(line: LogLine, cells: CsvFields): boolean {
    for (let choice = 0; choice < CHOICES; choice++) {
      const column = this.#clients[choice] ?? NO_COLUMN
      if (column === NO_COLUMN) break
      if (column < cells.count && line.takeClient(cells.start(column), cells.end(column))) return true
    }
    return false
  }

  /** The client's user and byte counts of the row in these cells. */
  takeUserAndBytes(line: LogLine, cells: CsvFields): void {
    for (let choice = 0; choice < CHOICES; choice++) {
      const column = this.#users[choice] ?? NO_COLUMN
      if (column === NO_COLUMN) break
      // A cell whose quotes are never closed may be incomplete.
      if (column >= cells.count || (cells.unclosed && column === cells.count - 1)) continue
      if (takeUser(line, cells.start(column), cells.end(column))) break
    }
    if (this.#sent !== NO_COLUMN) line.takeSent(cells.start(this.#sent), cells.end(this.#sent))
    if (this.#received !== NO_COLUMN) line.takeReceived(cells.start(this.#received), cells.end(this.#received))
  }

  #takeTime(line: LogLine, cells: CsvFields): TimeFound {
    for (let choice = 0; choice < CHOICES; choice++) {
      const column = this.#times[choice] ?? NO_COLUMN
      if (column === NO_COLUMN) break
      if (column >= cells.count) continue
      const found = line.takeTime(cells.start(column), cells.end(column))
      if (found !== TimeFound.none) return found
      if (this.#date === NO_COLUMN || this.#date === column || this.#date >= cells.count) continue
      const date = this.#date
      const both = line.takeDateAndTime(cells.start(date), cells.end(date), cells.start(column), cells.end(column))
      if (both !== TimeFound.none) return both
    }
    return TimeFound.none
  }

  #takeHost(line: LogLine, cells: CsvFields): Verdict {
    const { view } = line
    let verdict: Verdict = Verdict.noDomain
    let hasPath = false
    for (let choice = 0; choice < CHOICES; choice++) {
      const column = this.#hosts[choice] ?? NO_COLUMN
      if (column === NO_COLUMN) break
      if (column >= cells.count) continue
      const start = cells.start(column)
      const end = cells.end(column)
      const kind = this.#hostColumns[choice] ?? HostColumn.requested
      hasPath ||= start < end && view.getUint8(start) === SLASH
      if ((kind & HostColumn.file) !== 0 && isFileName(view, start, end)) continue
      const found = takeHostOf(line, start, end)
      if (this.isLearned && found !== Verdict.skip && isNoHost(line, start, end)) return this.#failed()
      if (found === Verdict.event) return this.#verdictOf(line, cells, kind, hasPath)
      if (found === Verdict.skip) verdict = found
    }
    return verdict
  }

  #verdictOf(line: LogLine, cells: CsvFields, kind: number, hasPath: boolean): Verdict {
    if (this.#verdict === Verdict.noDomain || this.#isOtherRecord(line.view, cells)) return Verdict.noDomain
    if (this.#verdict !== Verdict.event) return ambiguous(line, 'client')
    // In a row with a path, a host is a web server's own.
    const isUncertain = (kind & HostColumn.uncertain) !== 0 || ((kind & HostColumn.own) !== 0 && hasPath)
    return isUncertain ? ambiguous(line, 'host') : Verdict.event
  }

  #isOtherRecord(view: DataView, cells: CsvFields): boolean {
    if (this.isLearned) return isOtherRow(view, cells)
    for (let choice = 0; choice < CHOICES; choice++) {
      const column = this.#kinds[choice] ?? NO_COLUMN
      if (column === NO_COLUMN) break
      if (column < cells.count && hasRecordWord(view, cells.start(column), cells.end(column))) return true
    }
    return false
  }
}

function isFileName(view: DataView, start: number, end: number): boolean {
  return !hasScheme(view, start, end) && !isPlausibleHost(view, start, end)
}

/** Whether a cell in a host column is no host, address or URL. */
function isNoHost(line: LogLine, start: number, end: number): boolean {
  const kind = cellKind(line, start, end)
  if (kind === CellKind.bareUrl) return false
  return kind !== CellKind.host && kind !== CellKind.url && kind !== CellKind.address && kind !== CellKind.absent
}

/**
 * The table that a header line announces, or undefined if the line is no header. A header's cells
 * are names of fields: at least one of a host or URL, and one of a client or time. No cell begins
 * with a digit.
 */
export function tableOfHeader(view: DataView, cells: CsvFields, delimiter: number): CsvTable | undefined {
  let kinds = 0
  for (let column = 0; column < cells.count; column++) {
    const start = cells.start(column)
    const end = cells.end(column)
    if (start < end && isDigit(view.getUint8(start))) return undefined
    if (addressKind(view, start, end) !== AddressKind.none) return undefined
    const id = NAMES.find(view, start, end)
    if (id !== NO_FIELD) kinds |= 1 << ((id / FIELD_RANKS) | 0)
  }
  if (!hasAny(kinds, FieldKind.host, FieldKind.url, FieldKind.own)) return undefined
  if (!hasAny(kinds, FieldKind.client, FieldKind.address, FieldKind.time)) return undefined
  const table = new CsvTable(delimiter, cells.count, verdictOfHeader(kinds))
  addByRank(table, view, cells, FieldKind.time, kinds)
  addByRank(table, view, cells, FieldKind.client, kinds)
  addByRank(table, view, cells, FieldKind.address, kinds)
  // A URL is better evidence than a host, which may be a machine's own.
  addByRank(table, view, cells, FieldKind.url, kinds)
  addByRank(table, view, cells, FieldKind.host, kinds)
  addByRank(table, view, cells, FieldKind.own, kinds)
  addByRank(table, view, cells, FieldKind.action, kinds)
  addByRank(table, view, cells, FieldKind.kind, kinds)
  addByRank(table, view, cells, FieldKind.user, kinds)
  addByRank(table, view, cells, FieldKind.sent, kinds)
  addByRank(table, view, cells, FieldKind.received, kinds)
  return table
}

/** The verdict on rows that name a host: both roles must have a column. */
function verdictOfHeader(kinds: number): Verdict {
  if (hasAny(kinds, FieldKind.foreign)) return Verdict.noDomain
  return hasAny(kinds, FieldKind.client, FieldKind.address) ? Verdict.event : Verdict.ambiguous
}

function hasAny(kinds: number, ...wanted: readonly FieldKind[]): boolean {
  return wanted.some((kind) => (kinds & (1 << kind)) !== 0)
}

function addByRank(table: CsvTable, view: DataView, cells: CsvFields, kind: FieldKind, kinds: number): void {
  for (let rank = 0; rank < FIELD_RANKS; rank++) {
    for (let column = 0; column < cells.count; column++) {
      const id = NAMES.find(view, cells.start(column), cells.end(column))
      if (id !== kind * FIELD_RANKS + rank) continue
      table.add(kind, column, hostColumnOf(id, kind, kinds))
      if (id === DATE_FIELD) table.addDate(column)
    }
  }
}

function hostColumnOf(id: number, kind: FieldKind, kinds: number): HostColumn {
  if (id === URL_OR_FILE_FIELD) return HostColumn.file
  if (kind !== FieldKind.own) return HostColumn.requested
  if (hasAny(kinds, FieldKind.system)) return HostColumn.uncertain
  const isOfConnection = hasAny(kinds, FieldKind.target, FieldKind.action)
  if (id === DOMAIN_FIELD) {
    const hasAccount = hasAny(kinds, FieldKind.account, FieldKind.user)
    return isOfConnection || !hasAccount ? HostColumn.own : HostColumn.uncertain
  }
  // `hostname`, `fqdn` and `site` name the client itself or the device.
  if (id !== HOST_FIELD && id !== WEBSITE_FIELD && id !== NAME_FIELD) return HostColumn.uncertain
  if (hasAny(kinds, FieldKind.account, FieldKind.user, FieldKind.logger)) return HostColumn.uncertain
  return id === NAME_FIELD ? HostColumn.ownOrFile : HostColumn.own
}
