import { EVIDENCE_CELLS_MAX } from '../limits.ts'
import { SOURCES_PER_DAY_MAX } from '../store/event-source.ts'

/** The last column has the matches of all other instances. */
const COLUMNS = SOURCES_PER_DAY_MAX + 1

/**
 * Matches by cell and instance, the first 8 bytes of an event's id. The first SOURCES_PER_DAY_MAX
 * instances of a scan have a column.
 */
export class SourceCounts {
  readonly #matches = new Float64Array(EVIDENCE_CELLS_MAX * COLUMNS)
  /** Both words of each instance, in order of arrival. */
  readonly #highs = new Uint32Array(SOURCES_PER_DAY_MAX)
  readonly #lows = new Uint32Array(SOURCES_PER_DAY_MAX)
  /** Each instance as 16 hex digits. */
  readonly #texts: string[] = []
  #count = 0
  /** The column of the last event: its neighbors usually have the same. */
  #last = 0

  clear(): void {
    this.#count = 0
    this.#texts.length = 0
    this.#last = 0
  }

  clearCell(cell: number): void {
    this.#matches.fill(0, cell * COLUMNS, (cell + 1) * COLUMNS)
  }

  /** Adds matches of the event whose id is at `at`. */
  add(cell: number, view: DataView, at: number, matches: number): void {
    const column = cell * COLUMNS + this.#columnOf(view.getUint32(at), view.getUint32(at + 4))
    this.#matches[column] = (this.#matches[column] ?? 0) + matches
  }

  /** Instances as 16 hex digits. */
  ofCell(cell: number): (readonly [instance: string, matches: number])[] {
    const found: (readonly [instance: string, matches: number])[] = []
    for (let source = 0; source < this.#count; source++) {
      const matches = this.#matches[cell * COLUMNS + source] ?? 0
      if (matches > 0) found.push([this.#textOf(source), matches])
    }
    return found
  }

  #textOf(source: number): string {
    const known = this.#texts[source]
    if (known !== undefined) return known
    const hex = (half: number): string => half.toString(16).padStart(8, '0')
    const text = hex(this.#highs[source] ?? 0) + hex(this.#lows[source] ?? 0)
    this.#texts[source] = text
    return text
  }

  #columnOf(high: number, low: number): number {
    const highs = this.#highs
    const lows = this.#lows
    const last = this.#last
    if (last < this.#count && highs[last] === high && lows[last] === low) return last
    let column = 0
    while (column < this.#count && (highs[column] !== high || lows[column] !== low)) column++
    if (column === this.#count && column < SOURCES_PER_DAY_MAX) {
      highs[column] = high
      lows[column] = low
      this.#count++
    }
    this.#last = column
    return column
  }
}
