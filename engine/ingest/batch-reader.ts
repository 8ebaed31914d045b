import { isCanonicalName, NAME_CHARS_MAX } from '../../registry/domain-name.ts'
import { isIpText } from '../formats/ip-address.ts'
import type { CoverageReport } from '../kernel/event/coverage-report.ts'
import {
  BATCH_VERSION,
  EVENT_COUNT_MAX,
  type Event,
  eventIdParts,
  METHODS,
  packEvent,
  TIME_MS_MAX,
  TRANSFERRED_BYTES_MAX,
  USER_BYTES_MAX,
  unpackBatch,
  unpackEvent,
} from '../kernel/event/event.ts'
import { endOfValue } from '../kernel/event/msgpack.ts'
import { lowerNumber, PackedEvent } from '../kernel/event/packed-event.ts'
import type { Slices } from '../kernel/lmdb/queue-chunk.ts'
import type { IdRun } from '../store/seen-events.ts'
import { coverageFromPacked, coverageFromValue } from './read-coverage.ts'

export interface Rejection {
  /** Index in the batch, from 0. */
  readonly index: number
  readonly error: string
}

/**
 * The valid events of a batch in their stored form (engine/kernel/event/event.ts), and the errors of the
 * others.
 */
export interface ReadBatch {
  readonly events: Slices
  /** The ids of these events, in the same order. */
  readonly runs: readonly IdRun[]
  readonly rejected: readonly Rejection[]
  /**
   * Events that were last seen after their receipt, by the sender's clock: stored as of receipt.
   */
  readonly ahead: number
  /**
   * The batch's coverage report, or the error of a rejected one. undefined: the batch has no
   * report.
   */
  readonly coverage: CoverageReport | string | undefined
}

/** Sequences have at most 53 bits, so the upper 32-bit word has at most 21. */
const SEQUENCE_HIGH_MAX = 0x1f_ffff
const BATCH_ARRAY = 0x92
const BATCH_ARRAY_COVERAGE = 0x93
const ARRAY_16 = 0xdc

/**
 * Reads batches in place. A valid event in the common form costs no object and no string (a tenth
 * of the time of unpacking it, bench ingest).
 *
 * Names are not matched here: the scan matches them with the organization's registry at that time.
 */
export class BatchReader {
  readonly #event = new PackedEvent()

  /**
   * Reads a batch in msgpack. A string is the error of a malformed batch. The returned events point
   * into `bytes`, which must not change.
   */
  read(bytes: Uint8Array, eventsMax: number, nowMs: number): ReadBatch | string {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const listed = commonHeader(view)
    return (
      (listed && listed.count <= eventsMax && this.#readFastPath(bytes, view, listed, nowMs)) ||
      this.#readSlowPath(bytes, eventsMax, nowMs)
    )
  }

  /**
   * Packs events that were already unpacked. A string is the error of an event. `coverage` is an
   * unchecked report.
   */
  pack(events: readonly (Event | string)[], coverage: unknown, nowMs: number): ReadBatch {
    return this.#pack(events, coverageFromValue(coverage), nowMs)
  }

  #pack(events: readonly (Event | string)[], coverage: ReadBatch['coverage'], nowMs: number): ReadBatch {
    const builder = new BatchBuilder(new Uint8Array(0), events.length)
    for (const event of events) this.#take(builder, event, nowMs)
    return builder.build(coverage)
  }

  #readSlowPath(bytes: Uint8Array, eventsMax: number, nowMs: number): ReadBatch | string {
    const batch = unpackBatch(bytes, eventsMax)
    if (typeof batch === 'string') return batch
    return this.#pack(batch.events, batch.coverage && coverageFromPacked(batch.coverage), nowMs)
  }

  /**
   * Returns undefined if an element cannot be delimited in place. The slow path then reads the
   * whole batch.
   */
  #readFastPath(bytes: Uint8Array, view: DataView, listed: ListedEvents, nowMs: number): ReadBatch | undefined {
    const { count } = listed
    const builder = new BatchBuilder(bytes, count)
    const end = view.byteLength
    let at = listed.at
    for (let index = 0; index < count; index++) {
      const next = this.#endOfCommonEvent(view, at, end)
      if (next > 0) {
        const { idAt: id, firstSeenMs, spanMs } = this.#event
        const [high, low, sequence] = [view.getUint32(id), view.getUint32(id + 4), sequenceAt(view, id + 8)]
        if (firstSeenMs + spanMs <= nowMs) builder.addInPlace(at, next, high, low, sequence)
        else builder.addCopy(this.#copyAsOf(nowMs, bytes, at, next), high, low, sequence)
        at = next
        continue
      }
      const slowPathEnd = endOfValue(view, at, end)
      if (slowPathEnd < 0) return undefined
      this.#take(builder, unpackEvent(bytes.subarray(at, slowPathEnd)), nowMs)
      at = slowPathEnd
    }
    if (!listed.hasCoverage) return at === end ? builder.build(undefined) : undefined
    return endOfValue(view, at, end) === end ? builder.build(coverageFromPacked(bytes.subarray(at))) : undefined
  }

  /**
   * Returns the offset after the event at `start` if the event is valid, in the common form, with a
   * canonical name. Otherwise -1.
   */
  #endOfCommonEvent(view: DataView, start: number, end: number): number {
    const event = this.#event
    const next = event.read(view, start, end)
    if (next < 0) return -1
    const sequenceStart = event.idAt + 8
    if (view.getUint32(sequenceStart) > SEQUENCE_HIGH_MAX || sequenceAt(view, sequenceStart) === 0) return -1
    const { nameAt, nameEnd, firstSeenMs, spanMs, count, blocked } = event
    // The name of a platform is ASCII: its length in bytes is its length in characters.
    if (nameEnd === nameAt || nameEnd - nameAt > NAME_CHARS_MAX || event.method >= METHODS.length) return -1
    if (firstSeenMs < 0 || spanMs < 0 || firstSeenMs + spanMs > TIME_MS_MAX) return -1
    if (count < 1 || count > EVENT_COUNT_MAX || blocked < 0 || blocked > count) return -1
    if (event.userAt > 0 && !hasValidOptional(view, event)) return -1
    if (!isIpText(view, event.clientAt, event.clientEnd)) return -1
    return isCanonicalName(view, nameAt, nameEnd) ? next : -1
  }

  /** The event in [start, end), which #endOfCommonEvent read last, with the times of asOfNow. */
  #copyAsOf(nowMs: number, bytes: Uint8Array, start: number, end: number): Buffer {
    const copy = Buffer.from(bytes.subarray(start, end))
    const view = new DataView(copy.buffer, copy.byteOffset, copy.byteLength)
    const firstSeenMs = Math.min(this.#event.firstSeenMs, nowMs)
    lowerNumber(view, this.#event.firstAt - start, firstSeenMs)
    lowerNumber(view, this.#event.spanAt - start, nowMs - firstSeenMs)
    return copy
  }

  #take(builder: BatchBuilder, event: Event | string, nowMs: number): void {
    if (typeof event === 'string') builder.reject(event)
    else builder.addPacked(event, nowMs)
  }
}

/**
 * Whether the user and byte counts of an event of eleven columns are valid, one of them has a value,
 * and the user name is printable ASCII, as nearly all are.
 */
function hasValidOptional(view: DataView, { userAt, userEnd, bytesSent, bytesReceived }: PackedEvent): boolean {
  if (bytesSent < 0 || bytesSent > TRANSFERRED_BYTES_MAX) return false
  if (bytesReceived < 0 || bytesReceived > TRANSFERRED_BYTES_MAX) return false
  if (userEnd - userAt > USER_BYTES_MAX) return false
  if (userAt === userEnd && bytesSent === 0 && bytesReceived === 0) return false
  for (let at = userAt; at < userEnd; at++) {
    const byte = view.getUint8(at)
    if (byte < 0x20 || byte > 0x7e) return false
  }
  return true
}

interface ListedEvents {
  /** Offset of the first event. */
  readonly at: number
  readonly count: number
  /** Whether a coverage report follows the events. */
  readonly hasCoverage: boolean
}

/** Reads the header of a batch that packBatch wrote. undefined: the header has another form. */
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

/** Collects the events, rejections and ids of one batch. */
class BatchBuilder {
  readonly #bytes: Uint8Array
  readonly #starts: Uint32Array
  readonly #ends: Uint32Array
  #count = 0
  /** Re-packed events are appended to the batch's own bytes. */
  readonly #packed: Buffer[] = []
  #end: number
  readonly #rejected: Rejection[] = []
  #ahead = 0
  readonly #runs: IdRun[] = []
  #instanceHigh = 0
  #instanceLow = 0
  #firstSequence = 0
  /** Length of the current run of ids. 0: no run. */
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

  build(coverage: ReadBatch['coverage']): ReadBatch {
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
 * A sender whose clock is fast has seen something all the same. But no scan can publish a time
 * after its own, and evidence of a later day would outlast the window.
 */
function asOfNow(event: Event, nowMs: number): Event {
  return { ...event, firstSeenMs: Math.min(event.firstSeenMs, nowMs), lastSeenMs: nowMs }
}

function hex32(word: number): string {
  return word.toString(16).padStart(8, '0')
}
