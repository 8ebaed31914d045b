import {
  AT,
  COLON,
  DOT,
  digitsEnd,
  HYPHEN,
  hexDigit,
  indexOfByte,
  isDigit,
  isLetter,
  isText,
  NO_KEY,
  NOT_FOUND,
  QUOTE,
  SLASH,
  skipBlanks,
  trimEnd,
} from './bytes.ts'
import {
  ACTION_FIELD,
  ACTIVITY_FIELD,
  APP_FIELD,
  DATE_FIELD,
  DOMAIN_FIELD,
  FIELD_RANKS,
  FieldKind,
  HOST_FIELD,
  NAME_FIELD,
  NameTable,
  NO_FIELD,
  SYNONYMS,
  TIME_FIELD,
  URL_OR_FILE_FIELD,
  WEBSITE_FIELD,
} from './field-names.ts'
import type { Fields } from './fields.ts'
import { hasRecordWord } from './generic-request.ts'
import { hasScheme, isPlausibleHost } from './host.ts'
import { AddressKind, addressKind } from './ip-address.ts'
import { type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { UserForm } from './user-name.ts'

/**
 * What the content of a cell without a header looks like. A `path` is the target of a web server's
 * own log; a `bareUrl` has a host that is no domain.
 */
export const CellKind = {
  other: 0,
  absent: 1,
  time: 2,
  impossibleTime: 3,
  date: 4,
  timeOfDay: 5,
  address: 6,
  host: 7,
  url: 8,
  path: 9,
  status: 10,
  bareUrl: 11,
} as const
export type CellKind = (typeof CellKind)[keyof typeof CellKind]

/**
 * A ten-digit number is a time only if it is this near to the receipt; otherwise it is an
 * identifier.
 */
const EPOCH_YEARS_MS = 10 * 365 * 86_400_000
/**
 * The kind of the cell in [start, end). Sets the line's time or host as a side effect, so the
 * caller must take both again.
 */
export function cellKind(line: LogLine, start: number, end: number): CellKind {
  const { view } = line
  start = skipBlanks(view, start, end)
  end = trimEnd(view, start, end)
  if (start === end || isText(view, start, end, '-')) return CellKind.absent
  const first = view.getUint8(start)
  if (first === SLASH) return CellKind.path
  if (addressKind(view, start, end) !== AddressKind.none) return CellKind.address
  if (isDigit(first) || isLetter(first)) {
    const time = timeKind(line, start, end)
    if (time !== CellKind.other) return time
  }
  if (hasScheme(view, start, end)) {
    return line.takeHostOf(start, end) === Verdict.event ? CellKind.url : CellKind.bareUrl
  }
  if (!isPlausibleHost(view, start, end) || line.takeHostOf(start, end) !== Verdict.event) return CellKind.other
  return indexOfByte(view, start, end, SLASH) === NOT_FOUND ? CellKind.host : CellKind.url
}

function timeKind(line: LogLine, start: number, end: number): CellKind {
  const { view } = line
  const digits = digitsEnd(view, start, end)
  if (digits === end && end - start === 3) {
    const hundreds = view.getUint8(start) - 0x30
    return hundreds >= 1 && hundreds <= 5 ? CellKind.status : CellKind.other
  }
  const found = line.takeTimeIfAny(start, end)
  if (found === TimeFound.impossible) return CellKind.impossibleTime
  if (found === TimeFound.found && line.timeEnd === end) {
    const isNear = Math.abs(line.timeMs - line.referenceMs) < EPOCH_YEARS_MS
    return digits < start + 10 || isNear ? CellKind.time : CellKind.other
  }
  if (digits === start || digits === end) return CellKind.other
  const separator = view.getUint8(digits)
  if (separator === COLON && digits - start <= 2 && end - start >= 4 && isDigit(view.getUint8(digits + 1))) {
    return CellKind.timeOfDay
  }
  return isDate(view, start, end) ? CellKind.date : CellKind.other
}

/** Three numbers with the same separator: `2026-11-20`, `20.11.2026`, `11/20/26`. */
function isDate(view: DataView, start: number, end: number): boolean {
  if (end - start < 6 || end - start > 10) return false
  const first = digitsEnd(view, start, end)
  const separator = view.getUint8(first)
  if (separator !== HYPHEN && separator !== DOT && separator !== SLASH) return false
  const second = digitsEnd(view, first + 1, end)
  if (second === first + 1 || second >= end || view.getUint8(second) !== separator) return false
  return second + 1 < end && digitsEnd(view, second + 1, end) === end
}

/** A longer cell is a text, which may contain any word. */
const WORD_CELL_BYTES_MAX = 32
/** One mail address may be the user's; two are a sender and a recipient. */
const MAIL_ADDRESSES_MIN = 2

/**
 * Whether a row without a header is evidently no client's request: a cell is a MAC address (a
 * lease) or a short text with a word of other records, or two cells are mail addresses.
 */
export function isOtherRow(view: DataView, cells: Fields): boolean {
  let mailAddresses = 0
  for (let column = 0; column < cells.count; column++) {
    const start = skipBlanks(view, cells.start(column), cells.end(column))
    const end = trimEnd(view, start, cells.end(column))
    if (isMacAddress(view, start, end)) return true
    if (indexOfByte(view, start, end, AT) !== NOT_FOUND) mailAddresses++
    // A cell with a dot is a name: `auth.example.com` is no evidence about the record.
    if (end - start > WORD_CELL_BYTES_MAX || indexOfByte(view, start, end, DOT) !== NOT_FOUND) continue
    if (hasRecordWord(view, start, end)) return true
  }
  return mailAddresses >= MAIL_ADDRESSES_MIN
}

/**
 * `00:53:00:00:00:2a`, `00-53-00-00-00-2a` or `00530000002A`; a number without letters is no MAC
 * address.
 */
function isMacAddress(view: DataView, start: number, end: number): boolean {
  const isJoined = end - start === 12
  if (!isJoined && end - start !== 17) return false
  let hasLetter = false
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (!isJoined && (at - start) % 3 === 2) {
      if (byte !== COLON && byte !== HYPHEN) return false
    } else if (hexDigit(byte) < 0) return false
    hasLetter ||= isLetter(byte)
  }
  return hasLetter || !isJoined
}

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

/** A word for an address that may be a device's or a server's, if the table has more columns. */
const WEAK_ADDRESS_FIELD = FieldKind.address * FIELD_RANKS + FIELD_RANKS - 1
/**
 * More words for the columns of a table, also in Italian, Portuguese and Dutch. Among pairs and in
 * JSON, some have another meaning.
 */
const NAMES = new NameTable({
  ...SYNONYMS,
  ...alike(SYNONYMS['datetime'], 'dataora dataeora datahora dataehora datumtijd datumentijd tijdstip'),
  ...alike(TIME_FIELD, 'ora orario tijd'),
  ...alike(
    SYNONYMS['sourceip'],
    'ipsorgente indirizzosorgente indirizzoipsorgente iporigine iporigem ipdeorigem bronip bronadres bronipadres ipdocliente ipdelclient clientipadres',
  ),
  ...alike(
    WEAK_ADDRESS_FIELD,
    'address adresse adresseip ipadresse direccin direccion direccinip direccionip indirizzo indirizzoip endereo endereco endereoip enderecoip adres ipadres machineip workstationip deviceip',
  ),
  ...alike(
    DOMAIN_FIELD,
    'domainname domnenname domnio nomedominio nomedodominio nomedeldominio nomedidominio domein domeinnaam',
  ),
  // Check Point's export. Other exports have names of files and of applications here.
  ...alike(URL_OR_FILE_FIELD, 'resource'),
  ...alike(SYNONYMS['user'], 'utente usurio utilizador gebruiker'),
  ...alike(SYNONYMS['action'], 'azione ao acao actie'),
})

function alike(id: number | undefined, words: string): Record<string, number> {
  return Object.fromEntries(words.split(' ').map((word) => [word, id ?? NO_FIELD]))
}

/**
 * Flags of a host column: its name has no other meaning, may be a file's, or may be a machine's
 * own.
 */
const HostColumn = { requested: 0, file: 1, own: 2, ownOrFile: 3, uncertain: 4 } as const
type HostColumn = (typeof HostColumn)[keyof typeof HostColumn]

/** The columns of a table by role, of each the better evidence first. NO_KEY for an absent one. */
interface Roles {
  readonly times: readonly number[]
  /** The column of the date, if the time of day has another column. */
  readonly date: number
  readonly clients: readonly number[]
  readonly hosts: readonly number[]
  /** One of HostColumn for each host column. */
  readonly hostColumns: readonly HostColumn[]
  readonly actions: readonly number[]
  readonly user: readonly number[]
  readonly sent: readonly number[]
  readonly received: readonly number[]
  /** Columns that say which kind of record a row is. */
  readonly kinds: readonly number[]
}

/** The columns of a source's table. Kept with the source. */
export class CsvTable {
  readonly delimiter: number
  /** The number of columns of the header, or of the learned lines. */
  readonly width: number
  /** The columns were learned from content, so each row must match them. */
  readonly isLearned: boolean
  #roles: Roles
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
  constructor(delimiter: number, width: number, roles: Roles, verdict: Verdict, isLearned: boolean) {
    this.delimiter = delimiter
    this.width = width
    this.#roles = roles
    this.#verdict = verdict
    this.isLearned = isLearned
  }

  /** Reads a row from its cells. Unknown if the row does not match the table. */
  read(line: LogLine, cells: Fields): Verdict {
    if (++this.#rows === ROWS_REMEMBERED) {
      this.#rows /= 2
      this.#failures /= 2
    }
    if (!this.#hasWidth(cells)) return this.#failed()
    if (this.#roles.times.length === 0 && this.#timeless < TIMELESS_ROWS_MAX) this.#findTime(line, cells)
    const roles = this.#roles
    const time = takeTime(line, cells, roles)
    if (time === TimeFound.impossible) return line.rejectTime()
    const hasClient = cells.takeClients(line, roles.clients)
    // With a header and a client, a row counts even if its time is unreadable.
    if (time === TimeFound.none && (this.isLearned || !hasClient)) return this.#failed()
    cells.takeActions(line, roles.actions)
    return this.#takeHost(line, cells)
  }

  /** Of the row that was read last. */
  takeUserAndBytes(line: LogLine, cells: Fields): void {
    const { user, sent, received } = this.#roles
    // A cell whose quotes are never closed may be incomplete.
    const truncatedEnd = cells.unclosed ? cells.end(cells.count - 1) : NO_KEY
    cells.takeUserAndBytes(line, user, sent, received, UserForm.text, truncatedEnd)
  }

  /** Whether the source must have changed its layout, by the number of failed rows. */
  get isOutdated(): boolean {
    return this.#rows >= ROWS_PER_FAILURE && this.#failures * ROWS_PER_FAILURE > this.#rows
  }

  /** A delimiter at the end of a row adds no column. */
  #hasWidth(cells: Fields): boolean {
    const { width } = this
    return cells.count === width || (cells.count === width + 1 && cells.start(width) === cells.end(width))
  }

  /**
   * Finds the time of a table whose header has an unknown name for it (`Zeit`): the first column
   * that looks like a time.
   */
  #findTime(line: LogLine, cells: Fields): void {
    this.#timeless++
    let before: CellKind = CellKind.other
    for (let column = 0; column < this.width; column++) {
      const kind = cellKind(line, cells.start(column), cells.end(column))
      const isApart = kind === CellKind.timeOfDay && before === CellKind.date
      if (kind === CellKind.time || isApart) {
        this.#roles = { ...this.#roles, times: [column], date: isApart ? column - 1 : this.#roles.date }
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

  #takeHost(line: LogLine, cells: Fields): Verdict {
    const { view } = line
    const { hosts, hostColumns } = this.#roles
    let verdict: Verdict = Verdict.noDomain
    let hasPath = false
    for (let index = 0; index < hosts.length; index++) {
      const column = hosts[index] ?? NO_KEY
      if (column >= cells.count) continue
      const start = cells.start(column)
      const end = cells.end(column)
      const kind = hostColumns[index] ?? HostColumn.requested
      hasPath ||= start < end && view.getUint8(start) === SLASH
      if ((kind & HostColumn.file) !== 0 && isFileName(view, start, end)) continue
      const found = line.takeHostOf(start, end)
      if (this.isLearned && found !== Verdict.skip && isNoHost(line, start, end)) return this.#failed()
      if (found === Verdict.event) return this.#verdictOf(line, cells, kind, hasPath)
      if (found === Verdict.skip) verdict = found
    }
    return verdict
  }

  #verdictOf(line: LogLine, cells: Fields, kind: number, hasPath: boolean): Verdict {
    if (this.#verdict === Verdict.noDomain || this.#isOtherRecord(line.view, cells)) return Verdict.noDomain
    if (this.#verdict !== Verdict.event) return line.ambiguous('client')
    // In a row with a path, a host is a web server's own.
    const isUncertain = (kind & HostColumn.uncertain) !== 0 || ((kind & HostColumn.own) !== 0 && hasPath)
    return isUncertain ? line.ambiguous('host') : Verdict.event
  }

  #isOtherRecord(view: DataView, cells: Fields): boolean {
    if (this.isLearned) return isOtherRow(view, cells)
    return this.#roles.kinds.some((column) => hasRecordWord(view, cells.start(column), cells.end(column)))
  }
}

function takeTime(line: LogLine, cells: Fields, { times, date }: Roles): TimeFound {
  for (let index = 0; index < times.length; index++) {
    const column = times[index] ?? NO_KEY
    if (column >= cells.count) continue
    const found = cells.takeTime(line, column)
    if (found !== TimeFound.none) return found
    if (date === column) continue
    const both = cells.takeDateAndTime(line, date, column)
    if (both !== TimeFound.none) return both
  }
  return TimeFound.none
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
export function tableOfHeader(view: DataView, cells: Fields, delimiter: number): CsvTable | undefined {
  const named: { id: number; column: number }[] = []
  for (let column = 0; column < cells.count; column++) {
    const start = cells.start(column)
    const end = cells.end(column)
    if (start < end && isDigit(view.getUint8(start))) return undefined
    // Text after the closing quote: pairs of another format.
    const isQuoted = column + 1 < cells.count && view.getUint8(end) === QUOTE
    if (isQuoted && view.getUint8(end + 1) !== delimiter) return undefined
    if (addressKind(view, start, end) !== AddressKind.none) return undefined
    const id = NAMES.find(view, start, end)
    if (id !== NO_FIELD) named.push({ id, column })
  }
  let kinds = 0
  for (const { id } of named) if (id !== WEAK_ADDRESS_FIELD) kinds |= 1 << kindOf(id)
  const has = (field: number): boolean => named.some(({ id }) => id === field)
  const isAlone = !hasAny(kinds, ...RIVALS)
  if (has(WEAK_ADDRESS_FIELD) && isAlone) kinds |= 1 << FieldKind.address
  if (!hasAny(kinds, FieldKind.host, FieldKind.url, FieldKind.own)) return undefined
  if (!hasAny(kinds, FieldKind.client, FieldKind.address, FieldKind.time)) return undefined
  // A login that a gateway saw is a request: with its URL, and the gateway's action or application.
  const isGateway = hasAny(kinds, FieldKind.url) && (has(ACTION_FIELD) || has(APP_FIELD))
  // By rank; of one rank, by column.
  named.sort((a, b) => a.id - b.id)
  const of = (...wanted: readonly FieldKind[]): { id: number; column: number }[] =>
    wanted.flatMap((kind) => named.filter(({ id }) => kindOf(id) === kind)).slice(0, CHOICES)
  const columnsOf = (...wanted: readonly FieldKind[]): number[] => of(...wanted).map(({ column }) => column)
  // A URL is better evidence than a host, which may be a machine's own.
  const hosts = of(FieldKind.url, FieldKind.host, FieldKind.own)
  const roles: Roles = {
    times: columnsOf(FieldKind.time),
    date: named.findLast(({ id }) => id === DATE_FIELD)?.column ?? NO_KEY,
    clients: of(FieldKind.client, FieldKind.address)
      .filter(({ id }) => id !== WEAK_ADDRESS_FIELD || isAlone)
      .map(({ column }) => column),
    hosts: hosts.map(({ column }) => column),
    hostColumns: hosts.map(({ id }) => hostColumnOf(id, kindOf(id), kinds)),
    user: columnsOf(FieldKind.user),
    actions: columnsOf(FieldKind.action),
    sent: columnsOf(FieldKind.sent),
    received: columnsOf(FieldKind.received),
    kinds: of(FieldKind.kind)
      .filter(({ id }) => id !== ACTIVITY_FIELD || !isGateway)
      .map(({ column }) => column),
  }
  return new CsvTable(delimiter, cells.count, roles, verdictOfHeader(kinds), false)
}

function kindOf(id: number): FieldKind {
  return Math.trunc(id / FIELD_RANKS) as FieldKind
}

/** With one of these columns, another address may be the client's. */
const RIVALS = [
  FieldKind.client,
  FieldKind.address,
  FieldKind.url,
  FieldKind.target,
  FieldKind.account,
  FieldKind.user,
  FieldKind.logger,
  FieldKind.system,
]

/** The verdict on rows that name a host: both roles must have a column. */
function verdictOfHeader(kinds: number): Verdict {
  if (hasAny(kinds, FieldKind.foreign)) return Verdict.noDomain
  return hasAny(kinds, FieldKind.client, FieldKind.address) ? Verdict.event : Verdict.ambiguous
}

function hasAny(kinds: number, ...wanted: readonly FieldKind[]): boolean {
  return wanted.some((kind) => (kinds & (1 << kind)) !== 0)
}

const FQDN_FIELD = SYNONYMS['fqdn'] ?? NO_FIELD
const PLAIN_KINDS = (1 << FieldKind.time) | (1 << FieldKind.client) | (1 << FieldKind.own)

function hostColumnOf(id: number, kind: FieldKind, kinds: number): HostColumn {
  if (id === URL_OR_FILE_FIELD) return HostColumn.file
  if (kind !== FieldKind.own) return HostColumn.requested
  if (hasAny(kinds, FieldKind.system)) return HostColumn.uncertain
  const isOfConnection = hasAny(kinds, FieldKind.target, FieldKind.action)
  if (id === DOMAIN_FIELD) {
    const hasAccount = hasAny(kinds, FieldKind.account, FieldKind.user)
    return isOfConnection || !hasAccount ? HostColumn.own : HostColumn.uncertain
  }
  // The only known name beside a client and a time.
  if (id === FQDN_FIELD && kinds === PLAIN_KINDS) return HostColumn.own
  // `hostname`, `fqdn` and `site` name the client itself or the device.
  if (id !== HOST_FIELD && id !== WEBSITE_FIELD && id !== NAME_FIELD) return HostColumn.uncertain
  if (hasAny(kinds, FieldKind.account, FieldKind.user, FieldKind.logger)) return HostColumn.uncertain
  return id === NAME_FIELD ? HostColumn.ownOrFile : HostColumn.own
}

/** The columns are decided after this many lines of one layout. */
const LEARNED_LINES = 20
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
  add(view: DataView, cells: Fields, kinds: Uint8Array): boolean {
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
    if (time === NO_KEY || client === NO_KEY || host === NO_KEY) return undefined
    const roles: Roles = {
      ...{ times: [time], clients: [client], hosts: [host], hostColumns: [HostColumn.requested] },
      date: this.#count(CellKind.time, time) < TIMES_MIN ? time - 1 : NO_KEY,
      ...{ user: [], kinds: [], actions: [], sent: [], received: [] },
    }
    return new CsvTable(this.delimiter, this.columns, roles, Verdict.event, true)
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
    return NO_KEY
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
    if (this.hasManyAddresses) return NO_KEY
    for (let column = 0; column < this.columns; column++) {
      if (this.#count(CellKind.address, column) >= ADDRESSES_MIN) return column
    }
    return NO_KEY
  }

  /**
   * The column with names: the first column with URLs, else the only column with hosts. A table
   * with paths is a web server's own log and has no such column. After a column that held only `-`
   * or URLs, URLs may be referers.
   */
  #hostColumn(): number {
    let best = NO_KEY
    let isTied = false
    let mayBeReferer = false
    for (let column = 0; column < this.columns; column++) {
      if (this.#count(CellKind.path, column) >= PATHS_MIN) return NO_KEY
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
      isTied ||= best !== NO_KEY
      if (best === NO_KEY) best = column
    }
    return isTied ? NO_KEY : best
  }
}

/** A hash: two cells with different hashes differ. */
function sumOf(view: DataView, start: number, end: number): number {
  let sum = end - start
  for (let at = start; at < end; at++) sum = (Math.imul(sum, 31) + view.getUint8(at)) | 0
  return sum
}
