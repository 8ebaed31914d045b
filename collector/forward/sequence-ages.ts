/** A mark in so many milliseconds: so finely it is known since when events are there. */
const MARK_EVERY_MS = 500

/** Since when events are there, by their sequences. */
export class SequenceAges {
  /** `end` was the end then; by ascending time. */
  #marks: { readonly end: number; readonly ms: number }[] = []

  /**
   * The end, as it was at `thenMs`; 0 where nobody looked by then.
   *
   * @param end the sequence behind the newest event, now.
   */
  before(end: number, thenMs: number, nowMs = performance.now()): number {
    const last = this.#marks.at(-1)
    if (last === undefined || (end > last.end && nowMs - last.ms >= MARK_EVERY_MS)) this.#marks.push({ end, ms: nowMs })
    while ((this.#marks[1]?.ms ?? Number.POSITIVE_INFINITY) <= thenMs) this.#marks.shift()
    const [oldest] = this.#marks
    return oldest !== undefined && oldest.ms <= thenMs ? oldest.end : 0
  }
}
