import { EQUALS, NOT_FOUND } from './bytes.ts'
import { hasScheme } from './host.ts'
import type { KeyTable } from './key-table.ts'
import { PairScanner } from './key-value.ts'
import { type LogLine, Verdict } from './log-line.ts'
import { takeUser } from './user-name.ts'

/**
 * The values of the keys that a vendor's format needs, as offsets. One instance per format, reused
 * for every line. Of repeated keys, the first non-empty value counts.
 */
export class PairFields {
  /** The number of pairs, known and unknown. */
  count = 0
  readonly #table: KeyTable
  readonly #scanner: PairScanner
  readonly #starts: Int32Array
  readonly #ends: Int32Array
  #truncatedEnd = NOT_FOUND

  /** The ids of `table` are below `idsEnd`. */
  constructor(table: KeyTable, idsEnd: number, assign = EQUALS) {
    this.#table = table
    this.#scanner = new PairScanner(assign)
    this.#starts = new Int32Array(idsEnd)
    this.#ends = new Int32Array(idsEnd)
  }

  /** @param separator the result of separatorOf, if it is already known */
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
    this.#truncatedEnd = scanner.unclosed ? end : NOT_FOUND
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

  /**
   * The host of the first of these names that has one, then of these URLs. A URL needs a scheme,
   * because a path alone names no host.
   */
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

  /** The client's user and byte counts. Of each, the first of these fields that has a value. */
  takeUserAndBytes(
    line: LogLine,
    users: readonly number[],
    sent: readonly number[],
    received: readonly number[],
  ): void {
    for (let index = 0; index < users.length; index++) {
      const id = users[index] ?? 0
      // A name in unclosed quotes may be incomplete.
      if (!this.has(id) || this.end(id) === this.#truncatedEnd) continue
      if (takeUser(line, this.start(id), this.end(id))) break
    }
    for (let index = 0; index < sent.length; index++) {
      const id = sent[index] ?? 0
      if (this.has(id) && line.takeSent(this.start(id), this.end(id))) break
    }
    for (let index = 0; index < received.length; index++) {
      const id = received[index] ?? 0
      if (this.has(id) && line.takeReceived(this.start(id), this.end(id))) break
    }
  }

  /** Whether the last value's quotes are never closed, so that the message was truncated. */
  get isTruncated(): boolean {
    return this.#truncatedEnd !== NOT_FOUND
  }

  /**
   * Whether the host is in unclosed quotes and so may be incomplete: `openai.co` of `openai.com`.
   */
  hostIsTruncated(line: LogLine): boolean {
    return this.isTruncated && line.hostIsOpen(this.#truncatedEnd)
  }

  #whole(line: LogLine): Verdict {
    return this.hostIsTruncated(line)
      ? line.reject('host: expected a complete host, but the message was truncated')
      : Verdict.event
  }
}
