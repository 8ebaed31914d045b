import { isCanonicalName, NAME_CHARS_MAX } from '../../registry/domain-name.ts'
import type { NameMatcher } from '../../registry/match.ts'
import type { CoverageReport } from '../event/coverage-report.ts'
import {
  BATCH_VERSION,
  EVENT_COUNT_MAX,
  type Event,
  endOfPlainEvent,
  eventIdParts,
  METHODS,
  msgpackError,
  packEvent,
  TIME_MS_MAX,
  unpackBatch,
  unpackEvent,
} from '../event/event.ts'
import {
  BIN_8,
  EVENT_ARRAY,
  EVENT_ARRAY_BLOCKED,
  ID_BYTES,
  ID_OFFSET,
  lowerNumber,
  numberEnd,
  stringBytes,
  stringStart,
  wholeNumber,
} from '../event/packed-event.ts'
import type { Slices } from '../lmdb/queue-chunk.ts'
import type { IdRun } from '../store/seen-events.ts'
import { isIpText } from './formats/ip-address.ts'
import { coverageFromPacked, coverageFromValue } from './read-coverage.ts'

export interface Rejection {
  /** Place in the batch, from 0. */
  readonly index: number
  readonly error: string
}

/** The events of a batch that can be taken, each in the form in which it is stored (engine/event/event.ts), and why the others cannot. */
export interface ReadBatch {
  readonly events: Slices
  /** The ids of these events, in their order. */
  readonly runs: readonly IdRun[]
  readonly rejected: readonly Rejection[]
  /** Events last seen after their receipt by the sender's clock: stored as of their receipt. */
  readonly ahead: number
  /** The batch's coverage report, or why it is rejected; undefined where the batch has none. */
  readonly coverage: CoverageReport | string | undefined
}

/** Array, id and its header, one byte of header and one of text for each string, and one byte for each number. */
const EVENT_BYTES_MIN = 1 + 2 + ID_BYTES + 2 + 2 + 4
/** Sequences fit 53 bits, so the upper half of their eight bytes has 21. */
const SEQUENCE_HIGH_MAX = 0x1f_ffff
const BATCH_ARRAY = 0x92
const BATCH_ARRAY_COVERAGE = 0x93
const ARRAY_16 = 0xdc

/** Reads batches where they lie: a good event in the usual form costs no object and no string (a tenth of unpacking it, bench ingest). */
export class BatchReader {
  readonly #matcher: NameMatcher
  /** Of the event that #endOfCommonEvent read: its times, and the offsets of the first and of the span. */
  #firstSeenMs = 0
  #lastSeenMs = 0
  #firstAt = 0
  #spanAt = 0

  constructor(matcher: NameMatcher) {
    this.#matcher = matcher
  }

  /** A batch in msgpack; or one line that says why it is none. The events it answers lie in `bytes`, which then must not change. */
  read(bytes: Uint8Array, eventsMax: number, nowMs: number): ReadBatch | string {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const listed = commonHeader(view)
    return (
      (listed && listed.count <= eventsMax && this.#readFastPath(bytes, view, listed, nowMs)) ||
      this.#readSlowPath(bytes, eventsMax, nowMs)
    )
  }

  /** The same of events that were unpacked, or a line for each that could not be, and the value of a coverage report. */
  pack(events: readonly (Event | string)[], coverage: unknown, nowMs: number): ReadBatch {
    return this.#pack(events, coverageFromValue(coverage), nowMs)
  }

  #pack(events: readonly (Event | string)[], coverage: ReadBatch['coverage'], nowMs: number): ReadBatch {
    const gathered = new Gathered(new Uint8Array(0), events.length)
    for (const event of events) this.#take(gathered, event, nowMs)
    return gathered.whole(coverage)
  }

  #readSlowPath(bytes: Uint8Array, eventsMax: number, nowMs: number): ReadBatch | string {
    const batch = unpackBatch(bytes, eventsMax)
    if (typeof batch === 'string') return batch
    return this.#pack(batch.events, batch.coverage && coverageFromPacked(batch.coverage), nowMs)
  }

  /** undefined where something stands there of which only the whole batch can tell what it means. */
  #readFastPath(bytes: Uint8Array, view: DataView, listed: ListedEvents, nowMs: number): ReadBatch | undefined {
    const { count } = listed
    const gathered = new Gathered(bytes, count)
    const end = view.byteLength
    let at = listed.at
    for (let index = 0; index < count; index++) {
      const next = this.#endOfCommonEvent(view, at, end)
      if (next > 0) {
        const id = at + ID_OFFSET
        const [high, low, sequence] = [view.getUint32(id), view.getUint32(id + 4), sequenceAt(view, id + 8)]
        if (this.#lastSeenMs <= nowMs) gathered.addInPlace(at, next, high, low, sequence)
        else gathered.addCopy(this.#copyAsOf(nowMs, bytes, at, next), high, low, sequence)
        at = next
        continue
      }
      const slowPathEnd = endOfPlainEvent(view, at, end)
      if (slowPathEnd < 0) return undefined
      this.#take(gathered, unpackEvent(bytes.subarray(at, slowPathEnd)), nowMs)
      at = slowPathEnd
    }
    if (!listed.hasCoverage) return at === end ? gathered.whole(undefined) : undefined
    const coverage = bytes.subarray(at)
    return msgpackError(coverage, 1) === undefined ? gathered.whole(coverageFromPacked(coverage)) : undefined
  }

  /** The offset behind the event at `at`, if it is good, in the usual form, with a canonical name of a known platform; else -1. */
  #endOfCommonEvent(view: DataView, start: number, end: number): number {
    if (start + EVENT_BYTES_MIN > end) return -1
    const columns = view.getUint8(start)
    if (columns !== EVENT_ARRAY && columns !== EVENT_ARRAY_BLOCKED) return -1
    if (view.getUint8(start + 1) !== BIN_8 || view.getUint8(start + 2) !== ID_BYTES) return -1
    if (view.getUint32(start + 11) > SEQUENCE_HIGH_MAX || sequenceAt(view, start + 11) === 0) return -1

    const nameHeader = start + ID_OFFSET + ID_BYTES
    const nameAt = stringStart(view, nameHeader)
    if (nameAt < 0) return -1
    const nameEnd = nameAt + stringBytes(view, nameHeader)
    // A name of a platform is ASCII, so its bytes are as many as its characters.
    if (nameEnd === nameAt || nameEnd - nameAt > NAME_CHARS_MAX || nameEnd >= end) return -1

    const clientAt = stringStart(view, nameEnd)
    if (clientAt < 0 || clientAt >= end) return -1
    const clientEnd = clientAt + stringBytes(view, nameEnd)
    if (clientEnd >= end || view.getUint8(clientEnd) >= METHODS.length) return -1

    const firstAt = clientEnd + 1
    const spanAt = numberEnd(view, firstAt, end)
    if (spanAt < 0) return -1
    const countAt = numberEnd(view, spanAt, end)
    if (countAt < 0) return -1
    const countEnd = numberEnd(view, countAt, end)
    if (countEnd < 0) return -1
    const firstSeenMs = wholeNumber(view, firstAt)
    const spanMs = wholeNumber(view, spanAt)
    const count = wholeNumber(view, countAt)
    if (firstSeenMs < 0 || spanMs < 0 || firstSeenMs + spanMs > TIME_MS_MAX) return -1
    if (count < 1 || count > EVENT_COUNT_MAX) return -1

    let next = countEnd
    if (columns === EVENT_ARRAY_BLOCKED) {
      next = numberEnd(view, countEnd, end)
      if (next < 0) return -1
      const blocked = wholeNumber(view, countEnd)
      // None is not written down.
      if (blocked < 1 || blocked > count) return -1
    }
    if (!isIpText(view, clientAt, clientEnd)) return -1
    if (this.#matcher.matchBytes(view, nameAt, nameEnd) === undefined) return -1
    this.#firstSeenMs = firstSeenMs
    this.#lastSeenMs = firstSeenMs + spanMs
    this.#firstAt = firstAt
    this.#spanAt = spanAt
    return isCanonicalName(view, nameAt, nameEnd) ? next : -1
  }

  /** The event in [start, end), which #endOfCommonEvent read last, with the times of asOfNow. */
  #copyAsOf(nowMs: number, bytes: Uint8Array, start: number, end: number): Buffer {
    const copy = Buffer.from(bytes.subarray(start, end))
    const view = new DataView(copy.buffer, copy.byteOffset, copy.byteLength)
    const firstSeenMs = Math.min(this.#firstSeenMs, nowMs)
    lowerNumber(view, this.#firstAt - start, firstSeenMs)
    lowerNumber(view, this.#spanAt - start, nowMs - firstSeenMs)
    return copy
  }

  #take(gathered: Gathered, event: Event | string, nowMs: number): void {
    if (typeof event === 'string') gathered.reject(event)
    else if (this.#matcher.match(event.name) === undefined)
      gathered.reject(`name: ${event.name} belongs to no platform of the service's registry`)
    else gathered.addPacked(event, nowMs)
  }
}

interface ListedEvents {
  /** Where the events of a batch begin, and how many there are. */
  readonly at: number
  readonly count: number
  /** Whether a coverage report follows them. */
  readonly hasCoverage: boolean
}

/** What the header of a batch says of its events, if it is written as packBatch does. */
function commonHeader(view: DataView): ListedEvents | undefined {
  if (view.byteLength < 3 || view.getUint8(1) !== BATCH_VERSION) return undefined
  const hasCoverage = view.getUint8(0) === BATCH_ARRAY_COVERAGE
  if (!hasCoverage && view.getUint8(0) !== BATCH_ARRAY) return undefined
  const format = view.getUint8(2)
  if (format >> 4 === 0x9) return { at: 3, count: format & 0xf, hasCoverage }
  if (format !== ARRAY_16 || view.byteLength < 5) return undefined
  return { at: 5, count: view.getUint16(3), hasCoverage }
}

function sequenceAt(view: DataView, at: number): number {
  return view.getUint32(at) * 2 ** 32 + view.getUint32(at + 4)
}

/** What was read of a batch so far. */
class Gathered {
  readonly #bytes: Uint8Array
  readonly #starts: Uint32Array
  readonly #ends: Uint32Array
  #count = 0
  /** Events that are packed anew stand behind the batch's own bytes. */
  readonly #packed: Buffer[] = []
  #end: number
  readonly #rejected: Rejection[] = []
  #ahead = 0
  readonly #runs: IdRun[] = []
  #instanceHigh = 0
  #instanceLow = 0
  #firstSequence = 0
  /** Of the run that is still growing; 0: there is none. */
  #runLength = 0

  constructor(bytes: Uint8Array, eventsMax: number) {
    this.#bytes = bytes
    this.#end = bytes.length
    this.#starts = new Uint32Array(eventsMax)
    this.#ends = new Uint32Array(eventsMax)
  }

  addInPlace(start: number, end: number, instanceHigh: number, instanceLow: number, sequence: number): void {
    this.#starts[this.#count] = start
    this.#ends[this.#count] = end
    this.#count++
    if (
      this.#runLength > 0 &&
      sequence === this.#firstSequence + this.#runLength &&
      instanceLow === this.#instanceLow &&
      instanceHigh === this.#instanceHigh
    ) {
      this.#runLength++
      return
    }
    this.#endRun()
    this.#instanceHigh = instanceHigh
    this.#instanceLow = instanceLow
    this.#firstSequence = sequence
    this.#runLength = 1
  }

  addPacked(event: Event, nowMs: number): void {
    const { instance, sequence } = eventIdParts(event.id)
    const [high, low] = [Number.parseInt(instance.slice(0, 8), 16), Number.parseInt(instance.slice(8), 16)]
    if (event.lastSeenMs > nowMs) this.addCopy(packEvent(asOfNow(event, nowMs)), high, low, sequence)
    else this.#addPacked(packEvent(event), high, low, sequence)
  }

  /** Adds an event that was ahead of the clock. */
  addCopy(packed: Buffer, instanceHigh: number, instanceLow: number, sequence: number): void {
    this.#ahead++
    this.#addPacked(packed, instanceHigh, instanceLow, sequence)
  }

  #addPacked(packed: Buffer, instanceHigh: number, instanceLow: number, sequence: number): void {
    this.#packed.push(packed)
    this.addInPlace(this.#end, this.#end + packed.length, instanceHigh, instanceLow, sequence)
    this.#end += packed.length
  }

  reject(error: string): void {
    this.#rejected.push({ index: this.#count + this.#rejected.length, error })
  }

  whole(coverage: ReadBatch['coverage']): ReadBatch {
    this.#endRun()
    const bytes = this.#packed.length === 0 ? this.#bytes : Buffer.concat([this.#bytes, ...this.#packed])
    return {
      events: { bytes, starts: this.#starts, ends: this.#ends, count: this.#count },
      runs: this.#runs,
      rejected: this.#rejected,
      ahead: this.#ahead,
      coverage,
    }
  }

  #endRun(): void {
    if (this.#runLength === 0) return
    const instance = hex32(this.#instanceHigh) + hex32(this.#instanceLow)
    this.#runs.push({ instance, first: this.#firstSequence, count: this.#runLength })
  }
}

/**
 * A sender whose clock is fast has seen something all the same. But no scan can publish a time after
 * its own, and evidence of a later day would outlast the window.
 */
function asOfNow(event: Event, nowMs: number): Event {
  return { ...event, firstSeenMs: Math.min(event.firstSeenMs, nowMs), lastSeenMs: nowMs }
}

function hex32(word: number): string {
  return word.toString(16).padStart(8, '0')
}
