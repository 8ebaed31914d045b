import { Action, actionOf } from './action.ts'
import { indexOfByte, isTextIgnoreCase, type KeyTable, NO_KEY, NOT_FOUND, QUOTE, SPACE } from './bytes.ts'
import { endBeforePort, isInbound } from './ip-address.ts'
import type { LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { takeUser, UserForm } from './user-name.ts'

/** More columns than any format has. Later columns are not read. */
export const COLUMNS_MAX = 256
export const NO_QUOTE = -1

/**
 * The places of a message's fields, by number: columns, or the values of a table of keys. An absent
 * field is empty, and so is a field with a negative number. One instance per format, filled again
 * for each message.
 */
export class Fields {
  readonly starts: Int32Array
  readonly ends: Int32Array
  /** The number of columns. */
  count = 0
  /** The record ended inside a quoted field, so it was truncated. */
  unclosed = false

  constructor(count = COLUMNS_MAX) {
    this.starts = new Int32Array(count)
    this.ends = new Int32Array(count)
  }

  start(id: number): number {
    return id < 0 ? 0 : (this.starts[id] ?? 0)
  }

  end(id: number): number {
    return id < 0 ? 0 : (this.ends[id] ?? 0)
  }

  has(id: number): boolean {
    return this.end(id) > this.start(id)
  }

  clear(): void {
    this.starts.fill(0)
    this.ends.fill(0)
  }

  note(id: number, start: number, end: number): void {
    this.starts[id] = start
    this.ends[id] = end
  }

  /** Whether the field is `text` (lower case) in any case. */
  is(view: DataView, id: number, text: string): boolean {
    return isTextIgnoreCase(view, this.start(id), this.end(id), text)
  }

  /** What `table` has for the field, or NO_KEY. */
  find(view: DataView, id: number, table: KeyTable): number {
    return table.find(view, this.start(id), this.end(id))
  }

  takeTime(line: LogLine, id: number): TimeFound {
    return line.takeTime(this.start(id), this.end(id))
  }

  /** A date, a time of day and an optional zone. */
  takeDateAndTime(line: LogLine, date: number, time: number, zone = NO_KEY): TimeFound {
    if (!this.has(date) || !this.has(time)) return TimeFound.none
    return line.takeDateAndTime(
      this.start(date),
      this.end(date),
      this.start(time),
      this.end(time),
      this.start(zone),
      this.end(zone),
    )
  }

  takeClient(line: LogLine, id: number): boolean {
    return line.takeClient(this.start(id), this.end(id))
  }

  /** As takeClient, for an address that a port may follow. */
  takeClientBeforePort(line: LogLine, id: number): boolean {
    return line.takeClient(this.start(id), this.endBeforePort(line.view, id))
  }

  endBeforePort(view: DataView, id: number): number {
    return endBeforePort(view, this.start(id), this.end(id))
  }

  /** Whether an external client sent the request to one of the organization's own servers. */
  isInbound(view: DataView, client: number, server: number): boolean {
    return isInbound(view, this.start(client), this.end(client), this.start(server), this.end(server))
  }

  takeAction(line: LogLine, id: number): void {
    line.action = actionOf(line.view, this.start(id), this.end(id))
  }

  takeHost(line: LogLine, id: number): Verdict {
    return line.takeHost(this.start(id), this.end(id))
  }

  takeHostOf(line: LogLine, id: number): Verdict {
    return line.takeHostOf(this.start(id), this.end(id))
  }

  takeName(line: LogLine, id: number): Verdict {
    return line.takeName(this.start(id), this.end(id))
  }

  takeUser(line: LogLine, id: number, form: UserForm = UserForm.text): boolean {
    return takeUser(line, this.start(id), this.end(id), form)
  }

  takeSent(line: LogLine, id: number): boolean {
    return line.takeSent(this.start(id), this.end(id))
  }

  takeReceived(line: LogLine, id: number): boolean {
    return line.takeReceived(this.start(id), this.end(id))
  }

  /*
   * Of several fields of one role, in the order of preference: the first that has a value.
   */

  takeTimes(line: LogLine, ids: readonly number[]): TimeFound {
    for (let index = 0; index < ids.length; index++) {
      const found = this.takeTime(line, ids[index] ?? NO_KEY)
      if (found !== TimeFound.none) return found
    }
    return TimeFound.none
  }

  takeClients(line: LogLine, ids: readonly number[]): boolean {
    for (let index = 0; index < ids.length; index++) {
      if (this.takeClientBeforePort(line, ids[index] ?? NO_KEY)) return true
    }
    return false
  }

  takeActions(line: LogLine, ids: readonly number[]): void {
    for (let index = 0; index < ids.length && line.action === Action.unknown; index++) {
      this.takeAction(line, ids[index] ?? NO_KEY)
    }
  }

  takeUserAndBytes(
    line: LogLine,
    user: readonly number[],
    sent: readonly number[],
    received: readonly number[],
    form: UserForm = UserForm.text,
    truncatedEnd = NO_KEY,
  ): void {
    for (let index = 0; index < user.length; index++) {
      const id = user[index] ?? NO_KEY
      // A name in unclosed quotes may be incomplete.
      if (this.has(id) && this.end(id) !== truncatedEnd && this.takeUser(line, id, form)) break
    }
    for (let index = 0; index < sent.length; index++) if (this.takeSent(line, sent[index] ?? NO_KEY)) break
    for (let index = 0; index < received.length; index++) if (this.takeReceived(line, received[index] ?? NO_KEY)) break
  }

  /**
   * Splits [start, end) at `delimiter` into at most `countMax` columns (RFC 4180 and its variants).
   * Returns their number. The places of a quoted column exclude its quotes; doubled quotes inside
   * stay doubled. `isCollapsed`: several delimiters count as one. `quote`: NO_QUOTE if quotes are
   * part of the values.
   */
  split(
    view: DataView,
    start: number,
    end: number,
    delimiter: number,
    countMax = COLUMNS_MAX,
    isCollapsed = false,
    quote = QUOTE,
  ): number {
    const { starts, ends, count: before } = this
    let count = 0
    let at = start
    this.unclosed = false
    while (count < countMax) {
      // Blanks between a delimiter and an opening quote belong to neither (as in Umbrella's
      // exports).
      let open = at
      let byte = open < end ? view.getUint8(open) : delimiter
      while (byte === SPACE && delimiter !== SPACE && open < end) byte = ++open < end ? view.getUint8(open) : delimiter
      if (byte === quote) {
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
        const stop = indexOfByte(view, at, end, delimiter)
        at = stop === NOT_FOUND ? end : stop
        ends[count++] = at
      }
      if (at >= end) break
      at++
      while (isCollapsed && at < end && view.getUint8(at) === delimiter) at++
    }
    // Columns of the record before.
    for (let index = count; index < before; index++) ends[index] = starts[index] ?? 0
    this.count = count
    return count
  }
}

/**
 * The offset of the quote that closes a field whose text begins at `at`. A doubled quote is text.
 */
export function closingQuote(view: DataView, at: number, end: number): number {
  for (;;) {
    at = indexOfByte(view, at, end, QUOTE)
    if (at === NOT_FOUND || at + 1 === end || view.getUint8(at + 1) !== QUOTE) return at
    at += 2
  }
}
