import type { Slices } from '../kernel/lmdb/queue-chunk.ts'
import { UNMATCHED_EVENTS_MAX } from '../limits.ts'

/** More memory than this is freed after a scan. */
const BYTES_KEPT_MAX = 1024 * 1024
const PLACES_MIN = 1024

/** Copies of the events that an aggregator found no rule for: the newest UNMATCHED_EVENTS_MAX. */
export class UnmatchedCopies {
  #bytes = new Uint8Array(0)
  #starts = new Uint32Array(PLACES_MIN)
  #ends = new Uint32Array(PLACES_MIN)
  #end = 0
  #count = 0
  /** Older ones that left for newer ones. */
  dropped = 0

  clear(): void {
    if (this.#bytes.length > BYTES_KEPT_MAX) this.#bytes = new Uint8Array(0)
    this.#end = 0
    this.#count = 0
    this.dropped = 0
  }

  /** Adds the event in bytes [start, end). */
  add(view: DataView, start: number, end: number): void {
    if (this.#count === 2 * UNMATCHED_EVENTS_MAX) this.#dropOldest(UNMATCHED_EVENTS_MAX)
    this.#grow(end - start)
    this.#bytes.set(new Uint8Array(view.buffer, view.byteOffset + start, end - start), this.#end)
    this.#starts[this.#count] = this.#end
    this.#end += end - start
    this.#ends[this.#count] = this.#end
    this.#count++
  }

  /** Returns the events in memory of their own, and forgets them. */
  take(): { readonly events: Slices; readonly dropped: number } {
    if (this.#count > UNMATCHED_EVENTS_MAX) this.#dropOldest(this.#count - UNMATCHED_EVENTS_MAX)
    const count = this.#count
    const events: Slices = {
      bytes: Buffer.from(this.#bytes.slice(0, this.#end)),
      starts: this.#starts.slice(0, count),
      ends: this.#ends.slice(0, count),
      count,
    }
    const { dropped } = this
    this.clear()
    return { events, dropped }
  }

  #dropOldest(count: number): void {
    const from = this.#ends[count - 1] ?? 0
    this.#bytes.copyWithin(0, from, this.#end)
    for (let at = count; at < this.#count; at++) {
      this.#starts[at - count] = (this.#starts[at] ?? 0) - from
      this.#ends[at - count] = (this.#ends[at] ?? 0) - from
    }
    this.#end -= from
    this.#count -= count
    this.dropped += count
  }

  #grow(more: number): void {
    if (this.#end + more > this.#bytes.length) {
      const bytes = new Uint8Array(Math.max(64 * 1024, (this.#end + more) * 2))
      bytes.set(this.#bytes.subarray(0, this.#end))
      this.#bytes = bytes
    }
    if (this.#count < this.#starts.length) return
    const [starts, ends] = [new Uint32Array(this.#count * 2), new Uint32Array(this.#count * 2)]
    starts.set(this.#starts)
    ends.set(this.#ends)
    this.#starts = starts
    this.#ends = ends
  }
}
