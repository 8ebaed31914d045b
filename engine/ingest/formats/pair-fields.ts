import { EQUALS, NOT_FOUND } from './bytes.ts'
import { hasScheme } from './host.ts'
import type { KeyTable } from './key-table.ts'
import { PairScanner } from './key-value.ts'
import { type LogLine, Verdict } from './log-line.ts'

/**
 * The values of the keys that a vendor's format needs, as places in the message. One instance a format, used again for every line. Of a key
 * that stands twice the first value that is not empty counts.
 */
export class PairFields {
  /** How many pairs the message has, known and unknown. */
  count = 0
  readonly #table: KeyTable
  readonly #scanner: PairScanner
  readonly #starts: Int32Array
  readonly #ends: Int32Array
  #cutEnd = NOT_FOUND

  /** The ids of `table` are below `idsEnd`. */
  constructor(table: KeyTable, idsEnd: number, assign = EQUALS) {
    this.#table = table
    this.#scanner = new PairScanner(assign)
    this.#starts = new Int32Array(idsEnd)
    this.#ends = new Int32Array(idsEnd)
  }

  /** @param separator as separatorOf tells it, where that was asked before */
  read(view: DataView, start: number, end: number, separator?: number): void {
    const scanner = this.#scanner
    const table = this.#table
    const starts = this.#starts
    const ends = this.#ends
    starts.fill(0)
    ends.fill(0)
    scanner.reset(view, start, end, separator)
    let count = 0
    while (scanner.next()) {
      count++
      if (scanner.valueEnd <= scanner.valueStart) continue
      const { keyStart, keyEnd } = scanner
      const id = table.find(view, keyStart, keyEnd)
      if (id < 0 || ends[id] !== 0) continue
      starts[id] = scanner.valueStart
      ends[id] = scanner.valueEnd
    }
    this.count = count
    this.#cutEnd = scanner.unclosed ? end : NOT_FOUND
  }

  has(id: number): boolean {
    return this.#ends[id] !== 0
  }

  start(id: number): number {
    return this.#starts[id] ?? 0
  }

  end(id: number): number {
    return this.#ends[id] ?? 0
  }

  /** The host of the first of these keys that names one; then of these that have a URL with its scheme, since a path alone names none. */
  takeHost(line: LogLine, names: readonly number[], urls: readonly number[]): Verdict {
    let isReverse = false
    for (let index = 0; index < names.length; index++) {
      const id = names[index] ?? 0
      if (!this.has(id)) continue
      const verdict = line.takeHost(this.start(id), this.end(id))
      if (verdict === Verdict.event) return this.#whole(line)
      isReverse ||= verdict === Verdict.skip
    }
    for (let index = 0; index < urls.length; index++) {
      const id = urls[index] ?? 0
      if (!this.has(id) || !hasScheme(line.view, this.start(id), this.end(id))) continue
      if (line.takeHost(this.start(id), this.end(id)) === Verdict.event) return this.#whole(line)
    }
    return isReverse ? Verdict.skip : Verdict.noDomain
  }

  /** Whether the last value's quotes are closed by nothing, so that the message was cut. */
  get isCut(): boolean {
    return this.#cutEnd !== NOT_FOUND
  }

  /** Whether the host that was taken stands in quotes that nothing closes, and so may go on: `openai.co` for `openai.com`. */
  hostIsCut(line: LogLine): boolean {
    return this.isCut && line.hostIsOpen(this.#cutEnd)
  }

  #whole(line: LogLine): Verdict {
    return this.hostIsCut(line) ? line.reject('host: expected all of it, the message was cut') : Verdict.event
  }
}
