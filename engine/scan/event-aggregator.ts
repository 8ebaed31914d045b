import type { Rule } from '../../registry/catalog.ts'
import { withInferredRole } from '../../registry/infer-role.ts'
import type { Matcher } from '../../registry/match.ts'
import { ACCESS_KINDS, accessOf } from '../../registry/use.ts'
import { METHODS, type Method, READ_METHOD, READ_METHODS } from '../event/event.ts'
import {
  BIN_8,
  EVENT_ARRAY,
  EVENT_ARRAY_BLOCKED,
  EVENT_ARRAY_FULL,
  ID_BYTES,
  ID_OFFSET,
  numberEnd,
  OptionalColumns,
  stringBytes,
  stringStart,
  wholeNumber,
} from '../event/packed-event.ts'
import { CLIENT_BYTES_PER_SCAN_MAX, EVIDENCE_CELLS_MAX } from '../limits.ts'
import type { ChunkView } from '../lmdb/queue.ts'
import { DAY_MS } from '../process/clock.ts'
import { ACCESS_SHIFT, API_BIT, INTERACTIVE_BITS } from '../store/client-records.ts'
import { ClientTable } from './client-table.ts'
import { domainStrength, METHOD_WEIGHT } from './confidence.ts'
import { DistinctClients, hashClient } from './distinct-clients.ts'
import { type Evidence, increase } from './evidence.ts'
import { mergeClients } from './kept-clients.ts'
import { NAMES_MAX, NameTable, TABLE_FULL } from './name-table.ts'
import { SourceCounts } from './source-counts.ts'
import { UnmatchedCopies } from './unmatched-copies.ts'

/*
 * Aggregates buffered events in place: columns are read from the bytes of a packed event, and
 * neither the event nor its name becomes an object.
 *
 *   cell    platform and day: blocked, matches by method and instance, distinct clients, and
 *           matches of names without a row by rule
 *   row     name and day: matches. A name caches its rule, and its last day with that day's row.
 *   client  client of a cell: see client-table.ts
 *
 * Only matches for use (registry/platform.ts) have clients. A visitor of a site with a chat window
 * did not choose the platform that the site embeds.
 *
 * Each name becomes a string twice: for its rule, and at the end.
 */
const ROWS_MAX = 2 * NAMES_MAX
/**
 * Days since 1970 have 22 bits up to the year 9999 (event.ts, TIME_MS_MAX), so that the number of a
 * name or platform and a day fit one number.
 */
const DAY_BITS = 2 ** 22
const NONE = -1
const METHOD_COUNT = METHODS.length
const METHOD_HUNDREDTHS = METHODS.map((method) => Math.round(100 * METHOD_WEIGHT[method]))
/** A client's record has the bit of the method in which the name was inferred. */
const METHOD_BITS = METHODS.map(
  (method) => 1 << (READ_METHODS as readonly Method[]).indexOf(READ_METHOD[method] ?? method),
)

/** What `#matchesOfRow` and `#weightOfRow` are for a name without a row. */
interface Overflow {
  readonly matches: number
  readonly weight: number
}

/** The aggregate of one platform on one day. */
export interface AggregatedDay {
  readonly day: number
  readonly platformId: string
  readonly addTo: (evidence: Evidence) => void
  /** The record of the stored and the new clients, see kept-clients.ts. Can be called once. */
  readonly mergeClients: (stored: Uint8Array | undefined) => Buffer | undefined
  /** Matches by instance of the id, 16 hex digits, as far as they have a column. */
  readonly instances: () => (readonly [instance: string, matches: number])[]
}

/** The bytes of the stored clients of a platform and day. */
export type StoredClientBytes = (day: number, platformId: string) => number

export class EventAggregator {
  #matcher: Matcher | undefined
  readonly #optional = new OptionalColumns()
  readonly #names = new NameTable()
  /** By name number: rule, platform number, last day, and the row of that day. */
  readonly #rules: (Rule | undefined)[] = []
  readonly #platformOfName = new Int32Array(NAMES_MAX)
  readonly #dayOfName = new Int32Array(NAMES_MAX)
  readonly #rowOfName = new Int32Array(NAMES_MAX)
  /** The access bits of a client that requests the name. */
  readonly #accessOfName = new Uint8Array(NAMES_MAX)
  readonly #platformIds: string[] = []
  readonly #platformNumbers = new Map<string, number>()

  readonly #rowOf = new Map<number, number>()
  #rows = 0
  readonly #nameOfRow = new Int32Array(ROWS_MAX)
  readonly #cellOfRow = new Int32Array(ROWS_MAX)
  readonly #matchesOfRow = new Float64Array(ROWS_MAX)
  /** The highest weight of a method among the matches of a row, in hundredths. */
  readonly #weightOfRow = new Uint8Array(ROWS_MAX)

  readonly #cellOf = new Map<number, number>()
  #cells = 0
  readonly #dayOfCell = new Int32Array(EVIDENCE_CELLS_MAX)
  readonly #platformOfCell = new Int32Array(EVIDENCE_CELLS_MAX)
  readonly #blocked = new Float64Array(EVIDENCE_CELLS_MAX)
  readonly #byMethod = new Float64Array(EVIDENCE_CELLS_MAX * METHOD_COUNT)
  readonly #sources = new SourceCounts()
  /** Times of matches that are not use. 0: there is none. */
  readonly #otherFirstMs = new Float64Array(EVIDENCE_CELLS_MAX)
  readonly #otherLastMs = new Float64Array(EVIDENCE_CELLS_MAX)
  readonly #distinct: DistinctClients[] = []
  readonly #clients = new ClientTable()
  #storedClientBytesOf: StoredClientBytes = () => 0
  /** Sum over all cells. */
  #storedClientBytes = 0
  /** By cell and rule: matches of names for which the tables were full. */
  readonly #overflow = new Map<number, Map<Rule, Overflow>>()

  /** Events whose name no platform of the registry has. */
  readonly unmatchedCopies = new UnmatchedCopies()
  /** Processed events. `unmatched`: of these, events in unmatchedCopies. */
  added = 0
  unmatched = 0
  /** Unreadable events: the bytes on disk changed. */
  damaged = 0
  /** Of the processed events, those of days before the first day. */
  tooOld = 0
  #firstDay = 0

  /**
   * Starts over with the registry of an organization. Events of days before `firstDay` are skipped.
   */
  clear(matcher: Matcher, firstDay = 0, storedClientBytesOf: StoredClientBytes = () => 0): void {
    this.#matcher = matcher
    this.#storedClientBytesOf = storedClientBytesOf
    this.#storedClientBytes = 0
    this.#clients.clear()
    this.unmatchedCopies.clear()
    this.#firstDay = firstDay
    this.tooOld = 0
    this.#names.clear()
    this.#rules.length = 0
    this.#platformIds.length = 0
    this.#platformNumbers.clear()
    this.#rowOf.clear()
    this.#rows = 0
    this.#cellOf.clear()
    this.#cells = 0
    this.#sources.clear()
    this.#distinct.length = 0
    this.#overflow.clear()
    this.added = 0
    this.unmatched = 0
    this.damaged = 0
  }

  /**
   * Adds the events of a chunk, oldest first. Returns the sequence after the last processed event,
   * which is less than the chunk's end if a limit is reached.
   */
  addChunk({ sequence, from, end, damaged, slices }: ChunkView): number {
    if (damaged) {
      this.damaged += end - sequence
      return end
    }
    const { bytes, starts, ends, count } = slices
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    for (let entry = from; entry < count; entry++) {
      if (!this.#add(view, starts[entry] ?? 0, ends[entry] ?? 0)) return sequence + entry - from
    }
    return end
  }

  /** Copies the events of a chunk from `sequence` on as unmatched, without matching them. */
  copyUnmatched({ sequence: first, from, damaged, slices }: ChunkView, sequence: number): void {
    if (damaged) return
    const { bytes, starts, ends, count } = slices
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    for (let entry = from + sequence - first; entry < count; entry++) {
      this.unmatchedCopies.add(view, starts[entry] ?? 0, ends[entry] ?? 0)
    }
  }

  /** The aggregates by platform and day. */
  *days(): Generator<AggregatedDay> {
    const rowsOfCell = Array.from({ length: this.#cells }, (): number[] => [])
    for (let row = 0; row < this.#rows; row++) rowsOfCell[this.#cellOfRow[row] ?? 0]?.push(row)
    const clientsOfCell = Array.from({ length: this.#cells }, (): number[] => [])
    for (let row = 0; row < this.#clients.count; row++) clientsOfCell[this.#clients.cellOf(row)]?.push(row)
    for (let cell = 0; cell < this.#cells; cell++) {
      const day = this.#dayOfCell[cell] ?? 0
      const clients = clientsOfCell[cell] ?? []
      yield {
        day,
        platformId: this.#platformIds[this.#platformOfCell[cell] ?? 0] ?? '',
        addTo: (evidence) => this.#addCell(cell, rowsOfCell[cell] ?? [], clients, evidence),
        mergeClients: (stored) => mergeClients(this.#clients, cell, clients, day, stored),
        instances: () => this.#sources.ofCell(cell),
      }
    }
  }

  /** Returns false, without processing the event, if there are too many cells or clients. */
  #add(view: DataView, start: number, end: number): boolean {
    if (this.#clients.full) return false
    const nameHeader = start + ID_OFFSET + ID_BYTES
    // A string header has one or two bytes.
    if (nameHeader + 1 >= end) return this.#countDamaged()
    const columns = view.getUint8(start)
    const isCommon =
      (columns === EVENT_ARRAY || columns === EVENT_ARRAY_BLOCKED || columns === EVENT_ARRAY_FULL) &&
      view.getUint8(start + 1) === BIN_8 &&
      view.getUint8(start + 2) === ID_BYTES
    if (!isCommon) return this.#countDamaged()
    const nameAt = stringStart(view, nameHeader)
    const nameEnd = nameAt + stringBytes(view, nameHeader)
    if (nameAt < 0 || nameEnd + 1 >= end) return this.#countDamaged()
    const clientAt = stringStart(view, nameEnd)
    const clientEnd = clientAt + stringBytes(view, nameEnd)
    if (clientAt < 0 || clientEnd >= end) return this.#countDamaged()
    const firstAt = clientEnd + 1
    const spanAt = numberEnd(view, firstAt, end)
    const countAt = spanAt < 0 ? NONE : numberEnd(view, spanAt, end)
    const countEnd = countAt < 0 ? NONE : numberEnd(view, countAt, end)
    const hasOptional = columns !== EVENT_ARRAY
    const eventEnd = countEnd < 0 || !hasOptional ? countEnd : this.#optional.find(view, columns, countEnd, end)
    const method = view.getUint8(clientEnd)
    if (eventEnd !== end || method >= METHOD_COUNT) return this.#countDamaged()

    const firstSeenMs = wholeNumber(view, firstAt)
    const lastSeenMs = firstSeenMs + wholeNumber(view, spanAt)
    const count = wholeNumber(view, countAt)
    const day = Math.floor(lastSeenMs / DAY_MS)
    if (day < this.#firstDay) {
      this.tooOld++
      this.added++
      return true
    }
    const name = this.#names.numberOf(view, nameAt, nameEnd)
    let cell: number
    let rule: Rule | undefined
    let access: number
    if (name === TABLE_FULL) {
      rule = this.#ruleOf(view, nameAt, nameEnd)
      if (rule === undefined) return this.#keepUnmatched(view, start, end)
      cell = this.#cell(this.#platformNumber(rule), day)
      if (cell === NONE) return false
      access = accessBits(rule)
      this.#countOverflow(cell, rule, method, count)
    } else {
      if (name === this.#rules.length) this.#resolveName(name, view, nameAt, nameEnd)
      rule = this.#rules[name]
      if (rule === undefined) return this.#keepUnmatched(view, start, end)
      access = this.#accessOfName[name] ?? 0
      const row = this.#dayOfName[name] === day ? (this.#rowOfName[name] ?? NONE) : this.#row(name, day)
      if (row === NONE) {
        cell = this.#cell(this.#platformOfName[name] ?? 0, day)
        if (cell === NONE) return false
        this.#countOverflow(cell, rule, method, count)
      } else {
        cell = this.#cellOfRow[row] ?? 0
        this.#matchesOfRow[row] = (this.#matchesOfRow[row] ?? 0) + count
        this.#weightOfRow[row] = Math.max(this.#weightOfRow[row] ?? 0, METHOD_HUNDREDTHS[method] ?? 0)
      }
    }
    if (hasOptional) this.#blocked[cell] = (this.#blocked[cell] ?? 0) + wholeNumber(view, countEnd)
    const column = cell * METHOD_COUNT + method
    this.#byMethod[column] = (this.#byMethod[column] ?? 0) + count
    this.#sources.add(cell, view, start + ID_OFFSET, count)
    this.added++
    if (rule.purpose !== 'use') {
      this.#addOtherTimes(cell, firstSeenMs, lastSeenMs)
      return true
    }
    const hash = hashClient(view, clientAt, clientEnd)
    const { count: clients } = this.#clients
    const optional = this.#optional
    const userStart = hasOptional ? optional.userStart : 0
    const userEnd = hasOptional ? optional.userEnd : 0
    const client = this.#clients.rowOf(cell, hash, view, clientAt, clientEnd, userStart, userEnd)
    if (client === clients) this.#distinct[cell]?.add(hash)
    this.#clients.add(client, (METHOD_BITS[method] ?? 0) | access, count, firstSeenMs, lastSeenMs)
    if (hasOptional) this.#clients.addBytes(client, optional.bytesSent(view), optional.bytesReceived(view))
    return true
  }

  #addOtherTimes(cell: number, firstMs: number, lastMs: number): void {
    const known = this.#otherFirstMs[cell] ?? 0
    this.#otherFirstMs[cell] = known === 0 ? firstMs : Math.min(known, firstMs)
    this.#otherLastMs[cell] = Math.max(this.#otherLastMs[cell] ?? 0, lastMs)
  }

  /** Ingest stores events only in the form of packed-event.ts. Any other form is damaged. */
  #countDamaged(): boolean {
    this.damaged++
    return true
  }

  /** A collector may have a newer registry, and an own platform may have been removed. */
  #keepUnmatched(view: DataView, start: number, end: number): boolean {
    this.unmatchedCopies.add(view, start, end)
    this.added++
    this.unmatched++
    return true
  }

  #resolveName(name: number, view: DataView, start: number, end: number): void {
    const rule = this.#ruleOf(view, start, end)
    this.#rules.push(rule)
    this.#dayOfName[name] = NONE
    if (rule === undefined) return
    this.#platformOfName[name] = this.#platformNumber(rule)
    this.#accessOfName[name] = accessBits(rule)
  }

  #ruleOf(view: DataView, start: number, end: number): Rule | undefined {
    const rule = this.#matcher?.matchBytes(view, start, end)
    if (rule?.match !== 'suffix') return rule
    // The bytes are ASCII, because they match a rule.
    return withInferredRole(rule, Buffer.from(view.buffer, view.byteOffset + start, end - start).toString('latin1'))
  }

  #platformNumber({ platform }: Rule): number {
    const known = this.#platformNumbers.get(platform.id)
    if (known !== undefined) return known
    const number = this.#platformIds.push(platform.id) - 1
    this.#platformNumbers.set(platform.id, number)
    return number
  }

  /** Returns NONE if there are too many rows or cells. */
  #row(name: number, day: number): number {
    const key = name * DAY_BITS + day
    let row = this.#rowOf.get(key)
    if (row === undefined) {
      if (this.#rows === ROWS_MAX) return NONE
      const cell = this.#cell(this.#platformOfName[name] ?? 0, day)
      if (cell === NONE) return NONE
      row = this.#rows++
      this.#rowOf.set(key, row)
      this.#nameOfRow[row] = name
      this.#cellOfRow[row] = cell
      this.#matchesOfRow[row] = 0
      this.#weightOfRow[row] = 0
    }
    this.#dayOfName[name] = day
    this.#rowOfName[name] = row
    return row
  }

  /** Returns NONE if there are too many cells. */
  #cell(platform: number, day: number): number {
    const key = platform * DAY_BITS + day
    const known = this.#cellOf.get(key)
    if (known !== undefined) return known
    if (this.#cells === EVIDENCE_CELLS_MAX) return NONE
    const storedBytes = this.#storedClientBytesOf(day, this.#platformIds[platform] ?? '')
    if (this.#cells > 0 && this.#storedClientBytes + storedBytes > CLIENT_BYTES_PER_SCAN_MAX) return NONE
    this.#storedClientBytes += storedBytes
    const cell = this.#cells++
    this.#cellOf.set(key, cell)
    this.#dayOfCell[cell] = day
    this.#platformOfCell[cell] = platform
    this.#blocked[cell] = 0
    this.#byMethod.fill(0, cell * METHOD_COUNT, (cell + 1) * METHOD_COUNT)
    this.#sources.clearCell(cell)
    this.#otherFirstMs[cell] = 0
    this.#otherLastMs[cell] = 0
    this.#distinct.push(new DistinctClients())
    return cell
  }

  #countOverflow(cell: number, rule: Rule, method: number, count: number): void {
    let rules = this.#overflow.get(cell)
    if (rules === undefined) {
      rules = new Map()
      this.#overflow.set(cell, rules)
    }
    const { matches, weight } = rules.get(rule) ?? { matches: 0, weight: 0 }
    rules.set(rule, { matches: matches + count, weight: Math.max(weight, METHOD_HUNDREDTHS[method] ?? 0) })
  }

  /** `clients` must not be merged yet. */
  #addCell(cell: number, rows: readonly number[], clients: readonly number[], evidence: Evidence): void {
    for (const client of clients) evidence.addSpan(this.#clients.firstSeenMs(client), this.#clients.lastSeenMs(client))
    const otherFirstMs = this.#otherFirstMs[cell] ?? 0
    if (otherFirstMs > 0) evidence.addOtherSpan(otherFirstMs, this.#otherLastMs[cell] ?? 0)
    evidence.blocked += this.#blocked[cell] ?? 0
    for (let index = 0; index < METHOD_COUNT; index++) {
      const count = this.#byMethod[cell * METHOD_COUNT + index] ?? 0
      if (count > 0) increase(evidence.byMethod, METHODS[index] as Method, count)
    }
    const addRule = (rule: Rule, count: number, weight: number): void => {
      const { role, specificity, purpose } = rule
      evidence.matches += count
      increase(evidence.byRole, role, count)
      increase(evidence.byPurpose, purpose, count)
      if (purpose !== 'use') return
      const access = accessOf(rule)
      if (access !== undefined) increase(evidence.byAccess, access, count)
      evidence.specificity = Math.max(evidence.specificity, specificity)
      evidence.domainStrength = Math.max(evidence.domainStrength, domainStrength(specificity, role, weight / 100))
    }
    for (const row of rows) {
      const name = this.#nameOfRow[row] ?? 0
      const count = this.#matchesOfRow[row] ?? 0
      const rule = this.#rules[name]
      if (rule === undefined) continue
      addRule(rule, count, this.#weightOfRow[row] ?? 0)
      evidence.addName(this.#names.nameOf(name), count)
    }
    for (const [rule, { matches, weight }] of this.#overflow.get(cell) ?? []) {
      addRule(rule, matches, weight)
      evidence.otherNames += matches
    }
    const all = this.#distinct[cell]
    if (all === undefined) return
    const interactive = this.#clientsWith(INTERACTIVE_BITS, clients, all)
    evidence.addClients({ all, interactive, api: this.#clientsWith(API_BIT, clients, all) })
  }

  /** Those of the clients with one of these bits of access. Most cells have all of them or none. */
  #clientsWith(bits: number, clients: readonly number[], all: DistinctClients): DistinctClients | undefined {
    const has = (client: number): boolean => (this.#clients.accessOf(client) & bits) !== 0
    let count = 0
    for (const client of clients) if (has(client)) count++
    if (count === 0 || count === clients.length) return count === 0 ? undefined : all
    const distinct = new DistinctClients()
    for (const client of clients) if (has(client)) distinct.add(this.#clients.hashOf(client))
    return distinct
  }
}

function accessBits(rule: Rule): number {
  const access = accessOf(rule)
  return access === undefined ? 0 : 1 << (ACCESS_SHIFT + ACCESS_KINDS.indexOf(access))
}
