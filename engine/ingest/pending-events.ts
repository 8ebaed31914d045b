import { randomBytes } from 'node:crypto'
import { KeyedHash, keyedNames, PROBES_MAX } from '../../registry/keyed-hash.ts'
import { isUpper } from '../formats/bytes.ts'
import type { CoverageReport } from '../kernel/event/coverage-report.ts'
import { TRANSFERRED_BYTES_MAX, USER_BYTES_MAX } from '../kernel/event/event.ts'
import { DAY_MS, HOUR_MS } from '../kernel/process/clock.ts'
import { COVERAGE_PER_SECOND_MAX, QUESTION_HOLD_MS } from '../limits.ts'
import type { Source } from './sources.ts'

/*
 * Matched messages that wait for the writer, in the batch format of engine/kernel/event/event.ts: [1,
 * [event, ...]] in msgpack, which BatchReader reads in place. Numbers are big-endian and have their
 * full width, so that a later message of the same client and name can be added in place:
 *
 *   0   92 01 dc         array of 2, version 1, array of n
 *   3   u16              n
 *
 *   of each event
 *   0   97, 98 or 9b     array of 7, of 8 if requests were or may be blocked, or of 11 with user or
 *                        byte counts
 *   1   c4 10 id         bin of 16: instance, sequence
 *   19  d9 n name        str of n bytes
 *   .   d9 n client
 *   .   method           index in METHODS
 *   .   cb f64           first seen, milliseconds since 1970
 *   .   ce u32           milliseconds from first to last seen
 *   .   ce u32           count
 *   .   ce u32           blocked count, only in an array of 8 or 11
 *
 *   only in an array of 11
 *   .   d9 n user        0 bytes if unknown
 *   .   cb f64           bytes sent, 0 if unknown
 *   .   cb f64           bytes received, 0 if unknown
 */
const HEADER_BYTES = 5
/** Maximum of the u16 in the header. */
const EVENTS_MAX = 0xffff
const COLUMNS = 0x97
const COLUMNS_BLOCKED = 0x98
const COLUMNS_FULL = 0x9b
const ID_OFFSET = 3
const NAME_OFFSET = 19
const TAIL_BYTES = 1 + 9 + 5 + 5 + 5 + 2 + USER_BYTES_MAX + 9 + 9
const EVENT_BYTES_MAX = NAME_OFFSET + 2 + 255 + 2 + 64 + TAIL_BYTES

/** Maximum time span of the messages that are merged into one event. */
const SPAN_MS_MAX = HOUR_MS
const COUNT_MAX = 0xffff_ffff
/**
 * The stored span has 32 bits. A longer span of a collector's event loses its beginning, since the
 * last time is the one that counts.
 */
const SPAN_STORED_MS_MAX = 0xffff_ffff
const NO_EVENT = -1
/** What #join does to the event that it finds, and what #slotOf returns then. */
const JOIN = 0
const REFUSE = 1
const JOINED = -1

/** Positions in the key of an event: token, kind and method, client, and user. */
const KIND_POSITION = 4
const CLIENT_POSITION = 6
const USER_POSITION = CLIENT_POSITION + 64
const keyed = new KeyedHash(USER_POSITION + USER_BYTES_MAX)

/** An event, by offsets in a buffer. */
export interface PendingEvent {
  readonly nameStart: number
  readonly nameEnd: number
  /** Canonical address. */
  readonly client: string
  readonly method: number
  readonly firstMs: number
  readonly lastMs: number
  readonly count: number
  readonly blocked: number
  /** The user's name, of at most USER_BYTES_MAX bytes. Equal if unknown. */
  readonly userStart: number
  readonly userEnd: number
  /** A later line may say that it was blocked, so blocked and other matches are one event. */
  readonly isQuestion: boolean
  /** 0 if unknown. */
  readonly bytesSent: number
  readonly bytesReceived: number
}

/**
 * Creates ids for events of messages without one. The instance is the mark of the token, so that a
 * scan knows the source of an event (store/event-source.ts), and a random number for this start.
 * Each token has its own sequence without gaps, because a store keeps ranges of those that it has.
 */
export class EventIds {
  readonly #low = randomBytes(4).readUInt32BE(0)
  /** By the mark of the token. */
  readonly #last = new Map<number, number>()

  /** Writes the next id of a token as 16 bytes. */
  writeNext(view: DataView, at: number, tokenMark: number): void {
    const sequence = (this.#last.get(tokenMark) ?? 0) + 1
    this.#last.set(tokenMark, sequence)
    view.setUint32(at, tokenMark)
    view.setUint32(at + 4, this.#low)
    view.setUint32(at + 8, Math.floor(sequence / 0x1_0000_0000))
    view.setUint32(at + 12, sequence >>> 0)
  }
}

/** One batch: bytes for the writer, and the number of messages by sender. */
export interface EventBatch {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly events: number
  readonly messages: ReadonlyMap<Source, number>
  /**
   * The sender of each event, for events with their own id, which represent one message each. Empty
   * for log events.
   */
  readonly senders: readonly Source[]
  /** Coverage reports to be stored with the events. */
  readonly reports: readonly CoverageReport[]
}

/**
 * Fills batches. Merges log messages of the same token, client, user and name into one event and
 * creates its id. Events with their own id are not merged.
 */
export class PendingEvents {
  /** Number of events. */
  count = 0
  /** Number of messages in these events. */
  messages = 0
  #bytes: Uint8Array<ArrayBuffer>
  #view: DataView
  #end = HEADER_BYTES
  #messages = new Map<Source, number>()
  #senders: Source[] = []
  #reports: CoverageReport[] = []
  readonly #countMax: number
  /** Hash table of event offsets, by token, name, client, user and kind. At most half full. */
  readonly #slots: Int32Array
  readonly #ids: EventIds

  constructor(countMax: number, ids: EventIds) {
    this.#countMax = Math.min(countMax, EVENTS_MAX)
    this.#bytes = new Uint8Array(64 * 1024)
    this.#view = new DataView(this.#bytes.buffer)
    let slots = 16
    while (slots < countMax * 2) slots *= 2
    this.#slots = new Int32Array(slots).fill(NO_EVENT)
    this.#ids = ids
  }

  get full(): boolean {
    return this.count >= this.#countMax
  }

  get empty(): boolean {
    return this.count === 0 && this.#reports.length === 0
  }

  /** Adds a coverage report. Returns false if the batch already has COVERAGE_PER_SECOND_MAX. */
  addReport(report: CoverageReport): boolean {
    if (this.#reports.length >= COVERAGE_PER_SECOND_MAX) return false
    this.#reports.push(report)
    return true
  }

  /**
   * Adds the match of a message of `source`. The batch must not be full. `idStart` is the offset of
   * the event's own id, 32 hex digits in `view`, or negative. An event with its own id is never
   * merged.
   */
  add(view: DataView, event: PendingEvent, idStart: number, source: Source): void {
    this.#messages.set(source, (this.#messages.get(source) ?? 0) + 1)
    this.messages++
    if (idStart >= 0) {
      this.#append(view, event)
      this.#senders.push(source)
      for (let at = 0; at < 16; at++) {
        const high = hex(view.getUint8(idStart + at * 2))
        this.#bytes[this.#last + ID_OFFSET + at] = (high << 4) | hex(view.getUint8(idStart + at * 2 + 1))
      }
      return
    }
    const { tokenMark } = source.owner
    const slot = this.#slotOf(view, event, tokenMark, JOIN)
    if (slot === JOINED) return
    this.#append(view, event)
    this.#slots[slot] = this.#last
    this.#ids.writeNext(this.#view, this.#last + ID_OFFSET, tokenMark)
  }

  /**
   * Counts a question as blocked that was added as allowed. Returns false if it is not in this
   * batch.
   */
  refuse(view: DataView, event: PendingEvent, source: Source): boolean {
    return this.#slotOf(view, event, source.owner.tokenMark, REFUSE) === JOINED
  }

  /**
   * Returns JOINED if there is an event that this one can `change`, otherwise the slot for a new
   * one: that of another event, which no further message joins, if too many have the same hash.
   */
  #slotOf(view: DataView, event: PendingEvent, tokenMark: number, change: number): number {
    const mask = this.#slots.length - 1
    let slot = hashOf(view, event, tokenMark) & mask
    for (let probes = 0; ; probes++) {
      const at = this.#slots[slot] ?? NO_EVENT
      if (at === NO_EVENT) return slot
      if (this.#view.getUint32(at + ID_OFFSET) === tokenMark && this.#join(view, event, at, change)) return JOINED
      if (probes === PROBES_MAX) return slot
      slot = (slot + 1) & mask
    }
  }

  /** Returns the batch for the writer and begins a new one. */
  take(): EventBatch {
    this.#view.setUint8(0, 0x92)
    this.#view.setUint8(1, 0x01)
    this.#view.setUint8(2, 0xdc)
    this.#view.setUint16(3, this.count)
    const bytes = this.#bytes.slice(0, this.#end)
    const batch = {
      bytes,
      events: this.count,
      messages: this.#messages,
      senders: this.#senders,
      reports: this.#reports,
    }
    this.#messages = new Map()
    this.#senders = []
    this.#reports = []
    this.#end = HEADER_BYTES
    this.count = 0
    this.messages = 0
    this.#slots.fill(NO_EVENT)
    return batch
  }

  /** Offset of the last appended event. */
  #last = 0

  #append(view: DataView, event: PendingEvent): void {
    const { nameStart, nameEnd, client, method, firstMs, lastMs, count, blocked } = event
    if (this.#end + EVENT_BYTES_MAX > this.#bytes.length) this.#grow()
    const bytes = this.#bytes
    const first = Math.max(firstMs, lastMs - SPAN_STORED_MS_MAX)
    let at = this.#end
    this.#last = at
    const columns = columnsOf(event)
    bytes[at] = columns
    bytes[at + 1] = 0xc4
    bytes[at + 2] = 0x10
    at += NAME_OFFSET
    bytes[at++] = 0xd9
    bytes[at++] = nameEnd - nameStart
    for (let from = nameStart; from < nameEnd; from++) bytes[at++] = lowerCase(view.getUint8(from))
    bytes[at++] = 0xd9
    bytes[at++] = client.length
    for (let index = 0; index < client.length; index++) bytes[at++] = client.charCodeAt(index)
    bytes[at++] = method
    bytes[at] = 0xcb
    this.#view.setFloat64(at + 1, first)
    bytes[at + 9] = 0xce
    this.#view.setUint32(at + 10, lastMs - first)
    bytes[at + 14] = 0xce
    this.#view.setUint32(at + 15, count)
    at += 19
    if (columns !== COLUMNS) {
      bytes[at] = 0xce
      this.#view.setUint32(at + 1, blocked)
      at += 5
    }
    this.#end = columns === COLUMNS_FULL ? this.#appendOptional(view, event, at) : at
    this.count++
  }

  #appendOptional(view: DataView, event: PendingEvent, at: number): number {
    const { userStart, userEnd, bytesSent, bytesReceived } = event
    const bytes = this.#bytes
    bytes[at++] = 0xd9
    bytes[at++] = userEnd - userStart
    for (let from = userStart; from < userEnd; from++) bytes[at++] = view.getUint8(from)
    bytes[at] = 0xcb
    this.#view.setFloat64(at + 1, bytesSent)
    bytes[at + 9] = 0xcb
    this.#view.setFloat64(at + 10, bytesReceived)
    return at + 18
  }

  /**
   * Merges the event into the event at `at` if both have the same name, client, user and kind, and
   * their times are close; or, to refuse one of its matches, if it has one that is not blocked.
   */
  #join(view: DataView, event: PendingEvent, at: number, change: number): boolean {
    const bytes = this.#bytes
    const columns = columnsOf(event)
    if (bytes[at] !== columns) return false
    let place = at + NAME_OFFSET + 1
    const { nameStart, nameEnd, client } = event
    if (bytes[place++] !== nameEnd - nameStart) return false
    for (let from = nameStart; from < nameEnd; from++)
      if (bytes[place++] !== lowerCase(view.getUint8(from))) return false
    place++
    if (bytes[place++] !== client.length) return false
    for (let index = 0; index < client.length; index++) if (bytes[place++] !== client.charCodeAt(index)) return false
    if (bytes[place] !== event.method) return false
    const firstAt = place + 2
    const spanAt = place + 11
    const countAt = place + 16
    const blockedAt = place + 21
    const own = this.#view
    if (change === REFUSE) {
      const blocked = own.getUint32(blockedAt)
      if (blocked >= own.getUint32(countAt)) return false
      own.setUint32(blockedAt, blocked + 1)
      return true
    }
    const sentAt = columns === COLUMNS_FULL ? this.#sentAfterUser(view, event, blockedAt + 4) : 0
    if (sentAt === NO_EVENT) return false
    const firstMs = own.getFloat64(firstAt)
    const lastMs = firstMs + own.getUint32(spanAt)
    const first = Math.min(firstMs, event.firstMs)
    const last = Math.max(lastMs, event.lastMs)
    const count = own.getUint32(countAt) + event.count
    // An event counts for the day on which it was last seen.
    if (last - first > SPAN_MS_MAX || Math.floor(lastMs / DAY_MS) !== Math.floor(event.lastMs / DAY_MS)) return false
    if (count > COUNT_MAX) return false
    if (sentAt > 0 && !this.#addBytes(event, sentAt)) return false
    own.setFloat64(firstAt, first)
    own.setUint32(spanAt, last - first)
    own.setUint32(countAt, count)
    if (event.blocked > 0) own.setUint32(blockedAt, own.getUint32(blockedAt) + event.blocked)
    return true
  }

  /** The offset of the bytes sent if the user at `place` is the event's. Otherwise NO_EVENT. */
  #sentAfterUser(view: DataView, { userStart, userEnd }: PendingEvent, place: number): number {
    const bytes = this.#bytes
    if (bytes[place + 1] !== userEnd - userStart) return NO_EVENT
    let at = place + 2
    for (let from = userStart; from < userEnd; from++) if (bytes[at++] !== view.getUint8(from)) return NO_EVENT
    return at
  }

  /** Adds the byte counts. Returns false and adds none if a sum would exceed the maximum. */
  #addBytes({ bytesSent, bytesReceived }: PendingEvent, sentAt: number): boolean {
    const own = this.#view
    const sent = own.getFloat64(sentAt + 1) + bytesSent
    const received = own.getFloat64(sentAt + 10) + bytesReceived
    if (sent > TRANSFERRED_BYTES_MAX || received > TRANSFERRED_BYTES_MAX) return false
    own.setFloat64(sentAt + 1, sent)
    own.setFloat64(sentAt + 10, received)
    return true
  }

  #grow(): void {
    const bytes = new Uint8Array(this.#bytes.length * 2)
    bytes.set(this.#bytes)
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer)
  }
}

/**
 * Matched queries of servers whose later lines may say that a query was blocked. Each waits for at
 * least QUESTION_HOLD_MS. They are in two batches, of which the older one is written next.
 */
export class HeldQuestions {
  #newer: PendingEvents
  #older: PendingEvents
  #turnedMs = Number.NEGATIVE_INFINITY

  constructor(countMax: number, ids: EventIds) {
    this.#newer = new PendingEvents(countMax, ids)
    this.#older = new PendingEvents(countMax, ids)
  }

  /** Where the next query is added. */
  get newer(): PendingEvents {
    return this.#newer
  }

  get empty(): boolean {
    return this.#newer.empty && this.#older.empty
  }

  get messages(): number {
    return this.#newer.messages + this.#older.messages
  }

  /** Counts a query as blocked. Returns false if it is not here. */
  refuse(view: DataView, event: PendingEvent, source: Source): boolean {
    return this.#newer.refuse(view, event, source) || this.#older.refuse(view, event, source)
  }

  /** Takes turns: the batch to write at `nowMs`, by the monotonic clock, if one is due. May be empty. */
  turn(nowMs: number, of: 'full' | 'due' | 'all'): PendingEvents | undefined {
    const isDue = of === 'full' ? this.#newer.full : of === 'all' || nowMs - this.#turnedMs >= QUESTION_HOLD_MS
    if (!isDue) return undefined
    const older = this.#older
    this.#older = this.#newer
    this.#newer = older
    this.#turnedMs = nowMs
    return older
  }
}

function lowerCase(byte: number): number {
  return isUpper(byte) ? byte | 0x20 : byte
}

function hex(byte: number): number {
  return byte <= 0x39 ? byte - 0x30 : (byte | 0x20) - 0x57
}

/** The first byte of the event. Blocked and other matches are one event if it has all columns. */
function columnsOf({ blocked, isQuestion, userStart, userEnd, bytesSent, bytesReceived }: PendingEvent): number {
  if (userEnd > userStart || bytesSent > 0 || bytesReceived > 0) return COLUMNS_FULL
  return blocked > 0 || isQuestion ? COLUMNS_BLOCKED : COLUMNS
}

function hashOf(view: DataView, event: PendingEvent, tokenMark: number): number {
  const { nameStart, nameEnd, client, method, userStart, userEnd } = event
  let hash = keyed.word(tokenMark, 0, keyedNames.bytes(view, nameStart, nameEnd))
  hash = keyed.byte(method, KIND_POSITION + 1, keyed.byte(columnsOf(event), KIND_POSITION, hash))
  // An address, or a pseudonym: ASCII.
  for (let at = 0; at < client.length; at++) hash = keyed.byte(client.charCodeAt(at), CLIENT_POSITION + at, hash)
  return keyed.bytes(view, userStart, userEnd, USER_POSITION, hash)
}
