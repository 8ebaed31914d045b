import { NOT_FOUND, QUOTE, SPACE } from './bytes.ts'

/** More columns than any format has. Later columns are not read. */
export const COLUMNS_MAX = 256

/**
 * The fields of one CSV record (RFC 4180 and its variants), as offsets in the message. One instance
 * per format, reused for every line. The offsets of a quoted field exclude its quotes; doubled
 * quotes inside stay doubled.
 */
export class CsvFields {
  count = 0
  /** The record ended inside a quoted field, so it was truncated. */
  unclosed = false
  readonly starts = new Int32Array(COLUMNS_MAX)
  readonly ends = new Int32Array(COLUMNS_MAX)

  /**
   * Splits [start, end) at `delimiter` into at most `countMax` fields. Returns the number of
   * fields.
   */
  split(view: DataView, start: number, end: number, delimiter: number, countMax = COLUMNS_MAX): number {
    const { starts, ends } = this
    let count = 0
    let at = start
    this.unclosed = false
    while (count < countMax) {
      // Blanks between a delimiter and an opening quote belong to neither (as in Umbrella's
      // exports).
      let open = at
      let byte = open < end ? view.getUint8(open) : delimiter
      while (byte === SPACE && delimiter !== SPACE && open < end) byte = ++open < end ? view.getUint8(open) : delimiter
      if (byte === QUOTE) {
        const close = closingQuote(view, open + 1, end)
        starts[count] = open + 1
        if (close === NOT_FOUND) {
          this.unclosed = true
          ends[count++] = end
          break
        }
        ends[count++] = close
        at = close + 1
        while (at < end && view.getUint8(at) !== delimiter) at++
      } else {
        starts[count] = at
        while (at < end && view.getUint8(at) !== delimiter) at++
        ends[count++] = at
      }
      if (at >= end) break
      at++
    }
    this.count = count
    return count
  }

  start(index: number): number {
    return this.starts[index] ?? 0
  }

  end(index: number): number {
    return this.ends[index] ?? 0
  }
}

/**
 * The offset of the quote that closes a field whose text begins at `at`. A doubled quote is text.
 */
export function closingQuote(view: DataView, at: number, end: number): number {
  while (at < end) {
    if (view.getUint8(at) === QUOTE) {
      if (at + 1 === end || view.getUint8(at + 1) !== QUOTE) return at
      at++
    }
    at++
  }
  return NOT_FOUND
}
