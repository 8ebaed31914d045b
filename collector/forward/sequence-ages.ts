/** Resolution of the ages, in milliseconds. */
const MARK_EVERY_MS = 500

/** Tracks by sequence how long events have existed. */
export class SequenceAges {
  /** `end` was the end of the sequences at `ms`; in ascending order of time. */
  #marks: { readonly end: number; readonly ms: number }[] = []

  /**
   * Returns the end as of `thenMs`; 0 if it was not recorded by then.
   *
   * @param end the sequence after the newest event, now.
   */
  before(end: number, thenMs: number, nowMs = performance.now()): number {
    const last = this.#marks.at(-1)
    if (last === undefined || (end > last.end && nowMs - last.ms >= MARK_EVERY_MS)) this.#marks.push({ end, ms: nowMs })
    while ((this.#marks[1]?.ms ?? Number.POSITIVE_INFINITY) <= thenMs) this.#marks.shift()
    const [oldest] = this.#marks
    return oldest !== undefined && oldest.ms <= thenMs ? oldest.end : 0
  }
}
