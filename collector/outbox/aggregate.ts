import { strict as assert } from 'node:assert'
import { EVENT_COUNT_MAX } from '../../engine/kernel/event/event.ts'
import { KeyedHash } from '../../registry/keyed-hash.ts'
import { KEY_WORDS_MAX, readKey, rowKey, rowTimeMs } from '../decode/name-rows.ts'
import { AGGREGATE_EVENTS_MAX, AGGREGATE_KEY_BYTES, BUCKET_MAX } from '../limits.ts'
import type { ChangedEvent } from './outbox.ts'
import type { NewEvent } from './waiting-event.ts'

/**
 * Matches of one client, name and method within a window -> one event with a count and the first
 * and last time. Rows are read as bytes, and a match that is counted in an existing event allocates
 * nothing: a busy resolver repeats the same names a hundred thousand times a second.
 *
 * The window of an event begins with its first match, so events close in the order in which they
 * were opened:
 *
 *     first ......... open ......... inFlight ......... next
 *       closed, to be    open, in the    open, not yet in
 *       written once     outbox          the outbox
 *
 * Events are in a ring of columns and their keys in a ring of words. A hash table maps keys to
 * events. When either ring is full, the oldest events close early (`closedEarly`). While the rings
 * are full of events that could not be written, each match becomes an event of its own.
 */
const NONE = -1
/** Marks an event whose bucket was full. The hash table does not find the event. */
const NOT_LISTED = -2

const scratch = new Uint32Array(KEY_WORDS_MAX)
const keyed = new KeyedHash(KEY_WORDS_MAX * 4)

export class Aggregate {
  /** Matches taken. Each is counted in exactly one event. */
  matches = 0
  events = 0
  /** Events that closed early to free space. */
  closedEarly = 0
  readonly #windowMs: number
  readonly #shiftMs: number
  readonly #eventsMax: number
  /** Numbers of events. The index of an event in the columns is its number modulo #eventsMax. */
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
  /** When the event was opened, by the monotonic clock: packet times may stop or go back. */
  readonly #openedMs: Float64Array
  readonly #count: Float64Array
  readonly #blocked: Float64Array
  readonly #sequence: Float64Array
  readonly #changed: Uint8Array
  readonly #buckets: Int32Array
  readonly #nextInBucket: Int32Array
  /** Length of the bucket that was last searched to its end. */
  #bucketLength = 0
  /** Events of matches for which the rings were full. */
  #unaggregated: NewEvent[] = []

  /**
   * @param windowMs 0: each match is an event of its own.
   * @param shiftMs added to the times of all events.
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
    this.#blocked = new Float64Array(events)
    this.#sequence = new Float64Array(events)
    this.#changed = new Uint8Array(events)
    this.#buckets = new Int32Array(events * 2).fill(NONE)
    this.#nextInBucket = new Int32Array(events)
  }

  /** Whether events are open or waiting to be written. */
  get busy(): boolean {
    return this.#open < this.#next || this.unwritten > 0
  }

  /** Events opened since the last write. */
  get unwritten(): number {
    return this.#next - this.#inFlight + this.#unaggregated.length
  }

  /** Counts the match in the row at `at` of `view`. */
  take(view: DataView, at: number): void {
    this.matches++
    const timeMs = rowTimeMs(view, at)
    const words = rowKey(view, at, scratch)
    const hash = hashOf(words)
    if (this.#windowMs > 0) {
      this.closeUntil(timeMs)
      const known = this.#find(hash, words)
      if (known !== NONE && (this.#count[known] ?? 0) < EVENT_COUNT_MAX) {
        this.#count[known] = (this.#count[known] ?? 0) + 1
        // A blocked event stays blocked: of the queries that follow, only some have an answer.
        if ((this.#blocked[known] ?? 0) > 0) this.#blocked[known] = this.#count[known] ?? 0
        this.#changed[known] = 1
        if (timeMs < (this.#firstMs[known] ?? 0)) this.#firstMs[known] = timeMs
        if (timeMs > (this.#lastMs[known] ?? 0)) this.#lastMs[known] = timeMs
        return
      }
    }
    this.events++
    const keyAt = this.#allocateKey(words)
    if (keyAt === NONE) {
      this.#unaggregated.push(this.#event(scratch, 0, timeMs, timeMs, 1, 0))
      return
    }
    this.#add(keyAt, words, hash, timeMs)
    if (this.#windowMs === 0) this.#close()
  }

  /**
   * The row is the answer to the queries of an event, which the server blocked. All of them, and
   * those that follow: of the types that a browser asks for, only addresses have an answer that
   * shows it. Returns false if no event has changed.
   */
  refuse(view: DataView, at: number): boolean {
    const words = rowKey(view, at, scratch)
    const known = this.#find(hashOf(words), words)
    if (known === NONE || this.#blocked[known] === this.#count[known]) return false
    this.#blocked[known] = this.#count[known] ?? 0
    this.#changed[known] = 1
    return true
  }

  /**
   * Closes the events whose window has ended at `nowMs`, in milliseconds since 1970 by packet time.
   */
  closeUntil(nowMs: number): void {
    while (this.#open < this.#next && nowMs - (this.#firstMs[this.#open % this.#eventsMax] ?? 0) >= this.#windowMs) {
      this.#close()
    }
  }

  /** Closes the events opened at least a window ago, by the monotonic clock. */
  closeOpenedBefore(nowMs: number): void {
    while (this.#open < this.#next && nowMs - (this.#openedMs[this.#open % this.#eventsMax] ?? 0) >= this.#windowMs) {
      this.#close()
    }
  }

  /**
   * Closes the events up to `sequence`, which have left the outbox. Further matches are counted in
   * new events.
   */
  closeThrough(sequence: number): void {
    while (this.#open < this.#inFlight && (this.#sequence[this.#open % this.#eventsMax] ?? 0) <= sequence) this.#close()
  }

  closeAll(): void {
    while (this.#open < this.#next) this.#close()
  }

  /**
   * Returns the events to write: those not yet in the outbox, and those whose figures there are
   * outdated. Open events, which will change again, are in `changed` only with `openToo`.
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
    added.push(...this.#unaggregated)
    return { added, changed }
  }

  /**
   * Records that the result of pending(openToo) was written, the added events from `firstSequence`
   * on.
   */
  written(firstSequence: number, openToo: boolean): void {
    if (openToo) {
      for (let number = this.#first; number < this.#next; number++) this.#changed[number % this.#eventsMax] = 0
    }
    for (let number = this.#inFlight; number < this.#next; number++) {
      this.#sequence[number % this.#eventsMax] = firstSequence + number - this.#inFlight
    }
    this.#inFlight = this.#next
    this.#first = this.#open
    this.#unaggregated = []
  }

  /**
   * The sequence of the oldest event that is open and in the outbox, or Infinity. Earlier events no
   * longer change.
   */
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
    this.#blocked[slot] = 0
    this.#openedMs[slot] = performance.now()
    this.#changed[slot] = 0
    const bucket = hash & (this.#buckets.length - 1)
    const full = this.#bucketLength >= BUCKET_MAX
    this.#nextInBucket[slot] = full ? NOT_LISTED : (this.#buckets[bucket] ?? 0)
    if (!full) this.#buckets[bucket] = slot
  }

  /** Closes the oldest open event and removes it from the hash table. */
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

  /**
   * Finds space for `words` words in the ring of keys. Returns its index, or NONE if either ring is
   * full.
   */
  #allocateKey(words: number): number {
    if (this.#first === this.#next) return 0
    const firstKey = this.#keyAt[this.#first % this.#eventsMax] ?? 0
    const end = this.#keyEnd
    if (this.#next - this.#first < this.#eventsMax) {
      if (end > firstKey && end + words <= this.#keys.length) return end
      if (end > firstKey && words < firstKey) return 0
      if (end <= firstKey && end + words < firstKey) return end
    }
    // Closed events leave the rings when they are written, which frees space for the next ones.
    while (this.#open < this.#next && this.#open - this.#first < this.#eventsMax / 4) {
      this.#close()
      this.closedEarly++
    }
    return NONE
  }

  #eventAt(slot: number): NewEvent {
    const firstMs = this.#firstMs[slot] ?? 0
    const [lastMs, count, blocked] = [this.#lastMs[slot] ?? 0, this.#count[slot] ?? 0, this.#blocked[slot] ?? 0]
    return this.#event(this.#keys, this.#keyAt[slot] ?? 0, firstMs, lastMs, count, blocked)
  }

  #event(keys: Uint32Array, keyAt: number, firstMs: number, lastMs: number, count: number, blocked: number): NewEvent {
    const { method, client, name } = readKey(keys, keyAt)
    return {
      name,
      client,
      method,
      firstSeenMs: Math.floor(firstMs + this.#shiftMs),
      lastSeenMs: Math.floor(lastMs + this.#shiftMs),
      count,
      ...(blocked > 0 ? { blocked } : {}),
    }
  }
}

/** The hash of the key of this many words in `scratch`. */
function hashOf(words: number): number {
  let hash = 0
  for (let word = 0; word < words; word++) hash = keyed.word(scratch[word] ?? 0, word * 4, hash)
  return hash
}
