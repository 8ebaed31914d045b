import { strict as assert } from 'node:assert'
import { EVENT_COUNT_MAX } from '../../engine/event/event.ts'
import { KEY_WORDS_MAX, readKey, rowKey, rowTimeMs } from '../decode/name-rows.ts'
import { AGGREGATE_BUCKET_MAX, AGGREGATE_EVENTS_MAX, AGGREGATE_KEY_BYTES } from '../limits.ts'
import type { ChangedEvent } from './outbox.ts'
import type { NewEvent } from './waiting-event.ts'

/**
 * Matches of one client, name and method within a window -> one event with a count, its first and last time. Rows go in as bytes, and nothing
 * is allocated for one that is counted in an event: a busy resolver asks the same names a hundred thousand times a second.
 *
 * The window of an event begins with its first match, so events close in the order in which they were opened:
 *
 *     first ......... open ......... handed out ......... next
 *       closed, to be    open, in the    open, not yet in
 *       written once     outbox          the outbox
 *
 * They stand in a ring of columns, the rows' keys in a ring of words, and a hash table leads from key to event. At the bound of either ring
 * the oldest event closes before its time (`closedEarly`); while they are full of events that could not be written each match is an event of
 * its own.
 */
const NONE = -1
/** Of an event whose bucket was full: it is not found any more. */
const NOT_LISTED = -2

const scratch = new Uint32Array(KEY_WORDS_MAX)

export class Aggregate {
  /** Matches that were taken; each is counted in exactly one event. */
  matches = 0
  events = 0
  /** Events that closed before their time to make room. */
  closedEarly = 0
  readonly #seed = Math.floor(Math.random() * 2 ** 32)
  readonly #windowMs: number
  readonly #shiftMs: number
  readonly #eventsMax: number
  /** Numbers of events; an event's place in the columns is its number modulo #eventsMax. */
  #first = 0
  #open = 0
  #inFlight = 0
  #next = 0
  readonly #keys: Uint32Array
  #keyEnd = 0
  readonly #keyAt: Int32Array
  readonly #keyWords: Int32Array
  readonly #hash: Int32Array
  readonly #firstMs: Float64Array
  readonly #lastMs: Float64Array
  /** When the event was opened, by the monotonic clock: packets' times may stand still or go back. */
  readonly #openedMs: Float64Array
  readonly #count: Float64Array
  readonly #sequence: Float64Array
  readonly #changed: Uint8Array
  readonly #buckets: Int32Array
  readonly #nextInBucket: Int32Array
  /** Of the bucket that was last looked into to its end. */
  #bucketLength = 0
  /** Matches that found no room. */
  #alone: NewEvent[] = []

  /**
   * @param windowMs 0: each match is an event of its own.
   * @param shiftMs is added to the times of all events.
   */
  constructor(
    windowMs: number,
    shiftMs = 0,
    sizes: { readonly events: number; readonly keyBytes: number } = {
      events: AGGREGATE_EVENTS_MAX,
      keyBytes: AGGREGATE_KEY_BYTES,
    },
  ) {
    const { events, keyBytes } = sizes
    assert(Number.isInteger(Math.log2(events)), 'events: expected a power of two')
    this.#windowMs = windowMs
    this.#shiftMs = shiftMs
    this.#eventsMax = events
    this.#keys = new Uint32Array(keyBytes / 4)
    this.#keyAt = new Int32Array(events)
    this.#keyWords = new Int32Array(events)
    this.#hash = new Int32Array(events)
    this.#firstMs = new Float64Array(events)
    this.#lastMs = new Float64Array(events)
    this.#openedMs = new Float64Array(events)
    this.#count = new Float64Array(events)
    this.#sequence = new Float64Array(events)
    this.#changed = new Uint8Array(events)
    this.#buckets = new Int32Array(events * 2).fill(NONE)
    this.#nextInBucket = new Int32Array(events)
  }

  /** Whether events are open, or wait to be written. */
  get busy(): boolean {
    return this.#open < this.#next || this.unwritten > 0
  }

  /** Events that were opened or changed since they were last written. */
  get unwritten(): number {
    return this.#next - this.#inFlight + this.#alone.length
  }

  /** Counts the match in the row at `at` of the memory of `view`. */
  take(view: DataView, at: number): void {
    this.matches++
    const timeMs = rowTimeMs(view, at)
    const words = rowKey(view, at, scratch)
    let hash = this.#seed ^ words
    for (let word = 0; word < words; word++) {
      hash = Math.imul(hash ^ (scratch[word] ?? 0), 0x9e37_79b1)
      hash ^= hash >>> 15
    }
    if (this.#windowMs > 0) {
      this.closeUntil(timeMs)
      const known = this.#find(hash, words)
      if (known !== NONE && (this.#count[known] ?? 0) < EVENT_COUNT_MAX) {
        this.#count[known] = (this.#count[known] ?? 0) + 1
        this.#changed[known] = 1
        if (timeMs < (this.#firstMs[known] ?? 0)) this.#firstMs[known] = timeMs
        if (timeMs > (this.#lastMs[known] ?? 0)) this.#lastMs[known] = timeMs
        return
      }
    }
    this.events++
    const keyAt = this.#roomForKey(words)
    if (keyAt === NONE) {
      this.#alone.push(this.#event(scratch, 0, timeMs, timeMs, 1))
      return
    }
    this.#add(keyAt, words, hash, timeMs)
    if (this.#windowMs === 0) this.#close()
  }

  /** Closes the events whose window has ended by then, in milliseconds since 1970 as the rows have it. */
  closeUntil(nowMs: number): void {
    while (this.#open < this.#next && nowMs - (this.#firstMs[this.#open % this.#eventsMax] ?? 0) >= this.#windowMs) {
      this.#close()
    }
  }

  /** Closes those that were opened a window ago, by the monotonic clock. */
  closeOpenedBefore(nowMs: number): void {
    while (this.#open < this.#next && nowMs - (this.#openedMs[this.#open % this.#eventsMax] ?? 0) >= this.#windowMs) {
      this.#close()
    }
  }

  /** Closes those that left the outbox, this sequence being the last of them: what matches now is counted in new ones. */
  closeThrough(sequence: number): void {
    while (this.#open < this.#inFlight && (this.#sequence[this.#open % this.#eventsMax] ?? 0) <= sequence) this.#close()
  }

  closeAll(): void {
    while (this.#open < this.#next) this.#close()
  }

  /**
   * What has to be written: events that the outbox does not have, and those whose figures have changed there; of those that are open only
   * with `openToo`, since they will change again.
   */
  pending(openToo: boolean): { readonly added: NewEvent[]; readonly changed: ChangedEvent[] } {
    const changed: ChangedEvent[] = []
    const changedUntil = openToo ? this.#inFlight : Math.min(this.#open, this.#inFlight)
    for (let number = this.#first; number < changedUntil; number++) {
      const slot = number % this.#eventsMax
      if (this.#changed[slot] === 1) {
        changed.push({ sequence: this.#sequence[slot] ?? 0, event: this.#eventAt(slot) })
      }
    }
    const added: NewEvent[] = []
    for (let number = this.#inFlight; number < this.#next; number++) added.push(this.#eventAt(number % this.#eventsMax))
    added.push(...this.#alone)
    return { added, changed }
  }

  /** All that pending(openToo) said was written, the added ones from this sequence on. */
  written(firstSequence: number, openToo: boolean): void {
    if (openToo) {
      for (let number = this.#first; number < this.#next; number++) this.#changed[number % this.#eventsMax] = 0
    }
    for (let number = this.#inFlight; number < this.#next; number++) {
      this.#sequence[number % this.#eventsMax] = firstSequence + number - this.#inFlight
    }
    this.#inFlight = this.#next
    this.#first = this.#open
    this.#alone = []
  }

  /** The sequence of the oldest event that is open and in the outbox; Infinity when there is none. Events before it do not change any more. */
  get openSequence(): number {
    return this.#open < this.#inFlight ? (this.#sequence[this.#open % this.#eventsMax] ?? 0) : Number.POSITIVE_INFINITY
  }

  #find(hash: number, words: number): number {
    const keys = this.#keys
    let slot = this.#buckets[hash & (this.#buckets.length - 1)] ?? 0
    this.#bucketLength = 0
    candidates: for (; slot !== NONE; slot = this.#nextInBucket[slot] ?? 0) {
      this.#bucketLength++
      if (this.#hash[slot] !== hash || this.#keyWords[slot] !== words) continue
      const keyAt = this.#keyAt[slot] ?? 0
      for (let word = 0; word < words; word++) {
        if (keys[keyAt + word] !== scratch[word]) continue candidates
      }
      return slot
    }
    return NONE
  }

  #add(keyAt: number, words: number, hash: number, timeMs: number): void {
    const slot = this.#next++ % this.#eventsMax
    for (let word = 0; word < words; word++) this.#keys[keyAt + word] = scratch[word] ?? 0
    this.#keyEnd = keyAt + words
    this.#keyAt[slot] = keyAt
    this.#keyWords[slot] = words
    this.#hash[slot] = hash
    this.#firstMs[slot] = timeMs
    this.#lastMs[slot] = timeMs
    this.#count[slot] = 1
    this.#openedMs[slot] = performance.now()
    this.#changed[slot] = 0
    const bucket = hash & (this.#buckets.length - 1)
    const full = this.#bucketLength >= AGGREGATE_BUCKET_MAX
    this.#nextInBucket[slot] = full ? NOT_LISTED : (this.#buckets[bucket] ?? 0)
    if (!full) this.#buckets[bucket] = slot
  }

  /** The oldest open event closes: it is no longer found. */
  #close(): void {
    const slot = this.#open++ % this.#eventsMax
    if (this.#nextInBucket[slot] === NOT_LISTED) return
    const bucket = (this.#hash[slot] ?? 0) & (this.#buckets.length - 1)
    let at = this.#buckets[bucket] ?? 0
    if (at === slot) {
      this.#buckets[bucket] = this.#nextInBucket[slot] ?? 0
      return
    }
    for (; this.#nextInBucket[at] !== slot; at = this.#nextInBucket[at] ?? 0);
    this.#nextInBucket[at] = this.#nextInBucket[slot] ?? 0
  }

  /** Where in the ring of keys there is room for so many words; NONE when either ring is full. */
  #roomForKey(words: number): number {
    if (this.#first === this.#next) return 0
    const firstKey = this.#keyAt[this.#first % this.#eventsMax] ?? 0
    const end = this.#keyEnd
    if (this.#next - this.#first < this.#eventsMax) {
      if (end > firstKey && end + words <= this.#keys.length) return end
      if (end > firstKey && words < firstKey) return 0
      if (end <= firstKey && end + words < firstKey) return end
    }
    // What is closed goes when it was written, so the next ones find room.
    while (this.#open < this.#next && this.#open - this.#first < this.#eventsMax / 4) {
      this.#close()
      this.closedEarly++
    }
    return NONE
  }

  #eventAt(slot: number): NewEvent {
    const firstMs = this.#firstMs[slot] ?? 0
    return this.#event(this.#keys, this.#keyAt[slot] ?? 0, firstMs, this.#lastMs[slot] ?? 0, this.#count[slot] ?? 0)
  }

  #event(keys: Uint32Array, keyAt: number, firstMs: number, lastMs: number, count: number): NewEvent {
    const { method, client, name } = readKey(keys, keyAt)
    return {
      name,
      client,
      method,
      firstSeenMs: Math.floor(firstMs + this.#shiftMs),
      lastSeenMs: Math.floor(lastMs + this.#shiftMs),
      count,
    }
  }
}
