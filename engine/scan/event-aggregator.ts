import type { Rule } from '../../registry/catalog.ts'
import { ACCESS_KINDS, accessOf } from '../../registry/contact.ts'
import { ruleOfName } from '../../registry/infer-role.ts'
import type { Matcher } from '../../registry/match.ts'
import { METHODS, type Method, READ_METHOD, READ_METHODS } from '../kernel/event/event.ts'
import { PackedEvent } from '../kernel/event/packed-event.ts'
import type { ChunkView } from '../kernel/lmdb/queue.ts'
import { DAY_MS } from '../kernel/process/clock.ts'
import { CLIENT_BYTES_PER_SCAN_MAX, EVIDENCE_CELLS_MAX } from '../limits.ts'
import { ACCESS_SHIFT, API_BIT, type ClientNumbers, INTERACTIVE_BITS } from '../store/client-records.ts'
import { ClientTable } from './client-table.ts'
import { domainStrength, METHOD_WEIGHT } from './confidence.ts'
import { DistinctClients, hashClient } from './distinct-clients.ts'
import { NAMES_MAX, NameTable, NO_NAME, PairTable, SourceCounts, UnmatchedCopies } from './event-tables.ts'
import { type Evidence, increase } from './evidence.ts'
import { mergeClients } from './kept-clients.ts'

/*
 * Aggregates buffered events in place: columns are read from the bytes of a packed event, and
 * neither the event nor its name becomes an object.
 *
 *   cell    platform and day: matches by contact (registry/contact.ts), method and instance, times,
 *           and distinct clients that used the platform
 *   row     name and day: matches. A name caches its rule, and its last day with that day's row.
 *   client  client of a cell: see client-table.ts
 *
 * Each name becomes a string twice: for its rule, and at the end.
 */
const ROWS_MAX = 2 * NAMES_MAX
const NONE = -1
const METHOD_COUNT = METHODS.length
const METHOD_HUNDREDTHS = METHODS.map((method) => Math.round(100 * METHOD_WEIGHT[method]))
/** A client's record has the bit of the method in which the name was inferred. */
const METHOD_BITS = METHODS.map(
  (method) => 1 << (READ_METHODS as readonly Method[]).indexOf(READ_METHOD[method] ?? method),
)

/** The aggregate of one platform on one day. */
export interface AggregatedDay {
  readonly day: number
  readonly platformId: string
  readonly addTo: (evidence: Evidence) => void
  /** Calls `add` for each new client. `mergeClients` must not have been called. */
  readonly eachClient: (add: (client: string, user: string, numbers: ClientNumbers) => void) => void
  /** The record of the stored and the new clients, see kept-clients.ts. Can be called once. */
  readonly mergeClients: (stored: Uint8Array | undefined) => Buffer | undefined
  /** Matches by instance of the id, 16 hex digits, as far as they have a column. */
  readonly instances: () => (readonly [instance: string, matches: number])[]
}

/** The bytes of the stored clients of a platform and day. */
export type StoredClientBytes = (day: number, platformId: string) => number

export class EventAggregator {
  #matcher: Matcher | undefined
  readonly #event = new PackedEvent()
  readonly #names = new NameTable()
  /** By name number: rule, platform number, last day, and the row of that day. */
  readonly #rules: Rule[] = []
  readonly #platformOfName = new Int32Array(NAMES_MAX)
  readonly #dayOfName = new Int32Array(NAMES_MAX)
  readonly #rowOfName = new Int32Array(NAMES_MAX)
  /** The access bits of a client that requests the name. 0: the request is no use. */
  readonly #accessOfName = new Uint8Array(NAMES_MAX)
  readonly #platformIds: string[] = []
  readonly #platformNumbers = new Map<string, number>()

  /** By name number and day. */
  readonly #rows = new PairTable(ROWS_MAX)
  readonly #cellOfRow = new Int32Array(ROWS_MAX)
  readonly #matchesOfRow = new Float64Array(ROWS_MAX)
  readonly #usedOfRow = new Float64Array(ROWS_MAX)
  /** The highest weight of a method among the used matches of a row, in hundredths. */
  readonly #weightOfRow = new Uint8Array(ROWS_MAX)

  /** By platform number and day. */
  readonly #cells = new PairTable(EVIDENCE_CELLS_MAX)
  readonly #blocked = new Float64Array(EVIDENCE_CELLS_MAX)
  readonly #used = new Float64Array(EVIDENCE_CELLS_MAX)
  readonly #byMethod = new Float64Array(EVIDENCE_CELLS_MAX * METHOD_COUNT)
  readonly #sources = new SourceCounts()
  /** Times of used matches, and of the others. 0: there is none. */
  readonly #usedTimes = new Times()
  readonly #otherTimes = new Times()
  readonly #distinct: DistinctClients[] = []
  readonly #clients = new ClientTable()
  #storedClientBytesOf: StoredClientBytes = () => 0
  /** Sum over all cells. */
  #storedClientBytes = 0

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
    this.#rows.clear()
    this.#cells.clear()
    this.#sources.clear()
    this.#distinct.length = 0
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
    const rowsOfCell = Array.from({ length: this.#cells.count }, (): number[] => [])
    for (let row = 0; row < this.#rows.count; row++) rowsOfCell[this.#cellOfRow[row] ?? 0]?.push(row)
    const clientsOfCell = Array.from({ length: this.#cells.count }, (): number[] => [])
    for (let row = 0; row < this.#clients.count; row++) clientsOfCell[this.#clients.cellOf(row)]?.push(row)
    for (let cell = 0; cell < this.#cells.count; cell++) {
      const day = this.#cells.second(cell)
      const clients = clientsOfCell[cell] ?? []
      yield {
        day,
        platformId: this.#platformIds[this.#cells.first(cell)] ?? '',
        addTo: (evidence) => this.#addCell(cell, rowsOfCell[cell] ?? [], clients, evidence),
        eachClient: (add) => {
          for (const row of clients)
            add(this.#clients.clientOf(row), this.#clients.userOf(row), this.#clients.numbersOf(row))
        },
        mergeClients: (stored) => mergeClients(this.#clients, cell, clients, day, stored),
        instances: () => this.#sources.ofCell(cell),
      }
    }
  }

  /**
   * Returns false, without processing the event, if there are too many names, cells or clients. Ingest
   * stores events only in the form of packed-event.ts: any other form is damaged.
   */
  #add(view: DataView, start: number, end: number): boolean {
    if (this.#clients.full) return false
    const event = this.#event
    if (event.read(view, start, end) !== end || event.method >= METHOD_COUNT) {
      this.damaged++
      return true
    }
    const { nameAt, nameEnd, method, firstSeenMs, count, blocked } = event
    const lastSeenMs = firstSeenMs + event.spanMs
    const day = Math.floor(lastSeenMs / DAY_MS)
    if (day < this.#firstDay) {
      this.tooOld++
      this.added++
      return true
    }
    let name = this.#names.find(view, nameAt, nameEnd)
    if (name === NO_NAME) {
      const rule = this.#ruleOf(view, nameAt, nameEnd)
      if (rule === undefined) return this.#keepUnmatched(view, start, end)
      name = this.#names.add(view, nameAt, nameEnd)
      if (name === NO_NAME) return false
      this.#rules.push(rule)
      this.#dayOfName[name] = NONE
      this.#platformOfName[name] = this.#platformNumber(rule)
      this.#accessOfName[name] = accessBits(rule)
    }
    const row = this.#dayOfName[name] === day ? (this.#rowOfName[name] ?? NONE) : this.#row(name, day)
    if (row === NONE) return false
    const cell = this.#cellOfRow[row] ?? 0
    const access = this.#accessOfName[name] ?? 0
    const used = access === 0 ? 0 : count - blocked
    this.#matchesOfRow[row] = (this.#matchesOfRow[row] ?? 0) + count
    if (used > 0) {
      this.#usedOfRow[row] = (this.#usedOfRow[row] ?? 0) + used
      this.#weightOfRow[row] = Math.max(this.#weightOfRow[row] ?? 0, METHOD_HUNDREDTHS[method] ?? 0)
    }
    const column = cell * METHOD_COUNT + method
    this.#byMethod[column] = (this.#byMethod[column] ?? 0) + count
    this.#blocked[cell] = (this.#blocked[cell] ?? 0) + blocked
    this.#used[cell] = (this.#used[cell] ?? 0) + used
    // Of an event with blocked matches, only the first time is that of a used one for sure.
    if (used === 0) this.#otherTimes.add(cell, firstSeenMs, lastSeenMs)
    else this.#usedTimes.add(cell, firstSeenMs, blocked > 0 ? Math.max(firstSeenMs, day * DAY_MS) : lastSeenMs)
    this.#sources.add(cell, view, event.idAt, count)
    this.added++
    const { clientAt, clientEnd } = event
    const client = this.#clients.rowOf(cell, view, clientAt, clientEnd, event.userAt, event.userEnd)
    if (used > 0 && this.#clients.accessOf(client) === 0) {
      this.#distinct[cell]?.add(hashClient(view, clientAt, clientEnd))
    }
    const bits = (METHOD_BITS[method] ?? 0) | (used > 0 ? access : 0)
    this.#clients.add(client, bits, count, firstSeenMs, lastSeenMs)
    if (used < count) this.#clients.addOther(client, blocked, count - blocked - used)
    this.#clients.addBytes(client, event.bytesSent, event.bytesReceived)
    return true
  }

  /** A collector may have a newer registry, and a custom platform may have been removed. */
  #keepUnmatched(view: DataView, start: number, end: number): boolean {
    this.unmatchedCopies.add(view, start, end)
    this.added++
    this.unmatched++
    return true
  }

  #ruleOf(view: DataView, start: number, end: number): Rule | undefined {
    const rule = this.#matcher?.matchBytes(view, start, end)
    if (rule?.match !== 'suffix') return rule
    // The bytes are ASCII, because they match a rule.
    return ruleOfName(rule, Buffer.from(view.buffer, view.byteOffset + start, end - start).toString('latin1'))
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
    let row = this.#rows.find(name, day)
    if (row < 0) {
      if (this.#rows.full) return NONE
      const cell = this.#cell(this.#platformOfName[name] ?? 0, day)
      if (cell === NONE) return NONE
      row = this.#rows.add(name, day)
      this.#cellOfRow[row] = cell
      this.#matchesOfRow[row] = 0
      this.#usedOfRow[row] = 0
      this.#weightOfRow[row] = 0
    }
    this.#dayOfName[name] = day
    this.#rowOfName[name] = row
    return row
  }

  /** Returns NONE if there are too many cells. */
  #cell(platform: number, day: number): number {
    const known = this.#cells.find(platform, day)
    if (known >= 0) return known
    if (this.#cells.full) return NONE
    const storedBytes = this.#storedClientBytesOf(day, this.#platformIds[platform] ?? '')
    if (this.#cells.count > 0 && this.#storedClientBytes + storedBytes > CLIENT_BYTES_PER_SCAN_MAX) return NONE
    this.#storedClientBytes += storedBytes
    const cell = this.#cells.add(platform, day)
    this.#blocked[cell] = 0
    this.#used[cell] = 0
    this.#byMethod.fill(0, cell * METHOD_COUNT, (cell + 1) * METHOD_COUNT)
    this.#sources.clearCell(cell)
    this.#usedTimes.clear(cell)
    this.#otherTimes.clear(cell)
    this.#distinct.push(new DistinctClients())
    return cell
  }

  /** `clients` must not be merged yet. */
  #addCell(cell: number, rows: readonly number[], clients: readonly number[], evidence: Evidence): void {
    const { used: usedBefore } = evidence
    this.#usedTimes.addTo(cell, (firstMs, lastMs) => evidence.addSpan(firstMs, lastMs))
    this.#otherTimes.addTo(cell, (firstMs, lastMs) => evidence.addOtherSpan(firstMs, lastMs))
    evidence.blocked += this.#blocked[cell] ?? 0
    for (const client of clients) {
      evidence.bytesSent += this.#clients.sentBy(client)
      evidence.bytesReceived += this.#clients.receivedBy(client)
    }
    evidence.used += this.#used[cell] ?? 0
    for (let index = 0; index < METHOD_COUNT; index++) {
      const count = this.#byMethod[cell * METHOD_COUNT + index] ?? 0
      if (count > 0) increase(evidence.byMethod, METHODS[index] as Method, count)
    }
    for (const row of rows) {
      const name = this.#rows.first(row)
      const rule = this.#rules[name] as Rule
      const count = this.#matchesOfRow[row] ?? 0
      const used = this.#usedOfRow[row] ?? 0
      evidence.matches += count
      increase(evidence.byRole, rule.role, count)
      increase(evidence.byPurpose, rule.purpose, count)
      evidence.addName(this.#names.nameOf(name), count)
      const access = used > 0 ? accessOf(rule) : undefined
      if (access === undefined) continue
      const strength = domainStrength(rule.specificity, (this.#weightOfRow[row] ?? 0) / 100)
      increase(evidence.byAccess, access, used)
      evidence.specificity = Math.max(evidence.specificity, rule.specificity)
      evidence.domainStrength = Math.max(evidence.domainStrength, strength)
    }
    const all = this.#distinct[cell]
    if (all === undefined || evidence.used === usedBefore) return
    const users = clients.filter((client) => this.#clients.accessOf(client) !== 0)
    const interactive = this.#clientsWith(INTERACTIVE_BITS, users, all)
    evidence.addClients({ all, interactive, api: this.#clientsWith(API_BIT, users, all) })
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

/** The first and last time of some matches, by cell. */
class Times {
  readonly #firstMs = new Float64Array(EVIDENCE_CELLS_MAX)
  readonly #lastMs = new Float64Array(EVIDENCE_CELLS_MAX)

  clear(cell: number): void {
    this.#lastMs[cell] = 0
  }

  add(cell: number, firstMs: number, lastMs: number): void {
    const knownMs = this.#lastMs[cell] ?? 0
    this.#firstMs[cell] = knownMs === 0 ? firstMs : Math.min(this.#firstMs[cell] ?? 0, firstMs)
    this.#lastMs[cell] = Math.max(knownMs, lastMs)
  }

  addTo(cell: number, add: (firstMs: number, lastMs: number) => void): void {
    const lastMs = this.#lastMs[cell] ?? 0
    if (lastMs > 0) add(this.#firstMs[cell] ?? 0, lastMs)
  }
}
