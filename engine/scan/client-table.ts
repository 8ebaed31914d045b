import { KeyedHash, PROBES_MAX } from '../../registry/keyed-hash.ts'
import { CLIENT_ROWS_MAX } from '../limits.ts'
import { accessIn, type ClientNumbers, methodsIn } from '../store/client-records.ts'
import { hashClient } from './distinct-clients.ts'

/*
 * The clients of an aggregator, one row for each cell (platform and day), client and user. A row is
 * looked up by its bytes.
 *
 *   slots    open-addressed hash table: row + 1, or 0
 *   keys     of each row: hash, cell, offset in `text`, bytes of the client, bytes of the user,
 *            slot, bits of methods and access (client-records.ts)
 *   numbers  of each row: matches, first and last time, bytes sent, bytes received, blocked and touched
 *            matches; NaN: not known
 *   text     client and user name of each row
 */
const SLOTS = CLIENT_ROWS_MAX * 2
const KEY_COLUMNS = 7
const CELL = 1
const TEXT_START = 2
const CLIENT_BYTES = 3
const USER_BYTES = 4
const SLOT = 5
const BITS = 6
const NUMBER_COLUMNS = 7
const FIRST = 1
const LAST = 2
const SENT = 3
const RECEIVED = 4
const BLOCKED = 5
const TOUCHED = 6
/** 64 bytes per row on average. */
const TEXT_BYTES_MAX = CLIENT_ROWS_MAX * 64
const TEXT_BYTES_EACH_MAX = 2 * 255
/** The bytes of a key: the cell, the client, and the user from a fixed position on. */
const CLIENT_POSITION = 4
const USER_POSITION = CLIENT_POSITION + 255
const keyed = new KeyedHash(USER_POSITION + 255)

export const NO_ROW = -1

export class ClientTable {
  readonly #slots = new Int32Array(SLOTS)
  readonly #keys = new Int32Array(CLIENT_ROWS_MAX * KEY_COLUMNS)
  readonly #numbers = new Float64Array(CLIENT_ROWS_MAX * NUMBER_COLUMNS)
  #text = new Uint8Array(64 * 1024)
  #textEnd = 0
  #isProbeLimitReached = false
  /** Of the last search: the hash, and the slot of the row or where it belongs. */
  #hash = 0
  #slot = 0
  /** Number of rows. They are numbered from 0 in order of arrival. */
  count = 0

  clear(): void {
    this.#isProbeLimitReached = false
    for (let row = 0; row < this.count; row++) this.#slots[this.#keys[row * KEY_COLUMNS + SLOT] ?? 0] = 0
    this.count = 0
    this.#textEnd = 0
  }

  /** Whether rowOf might need more space than there is, or a search has passed PROBES_MAX slots. */
  get full(): boolean {
    return (
      this.count === CLIENT_ROWS_MAX ||
      this.#isProbeLimitReached ||
      this.#textEnd + TEXT_BYTES_EACH_MAX > TEXT_BYTES_MAX
    )
  }

  /**
   * Returns the row of a client of a cell: its text in [start, end), and the user's name in
   * [userStart, userEnd). A new row gets the number that `count` was. The table must not be full.
   */
  rowOf(cell: number, view: DataView, start: number, end: number, userStart: number, userEnd: number): number {
    const found = this.find(cell, view, start, end, userStart, userEnd)
    if (found !== NO_ROW) return found
    if (this.#textEnd + TEXT_BYTES_EACH_MAX > this.#text.length) this.#grow()
    const row = this.count++
    this.#slots[this.#slot] = row + 1
    const key = row * KEY_COLUMNS
    this.#keys[key] = this.#hash
    this.#keys[key + CELL] = cell
    this.#keys[key + TEXT_START] = this.#textEnd
    this.#keys[key + CLIENT_BYTES] = end - start
    this.#keys[key + USER_BYTES] = userEnd - userStart
    this.#keys[key + SLOT] = this.#slot
    this.#keys[key + BITS] = 0
    const at = row * NUMBER_COLUMNS
    this.#numbers.fill(0, at, at + NUMBER_COLUMNS)
    this.#numbers[at + FIRST] = Number.MAX_SAFE_INTEGER
    for (let from = start; from < end; from++) this.#text[this.#textEnd++] = view.getUint8(from)
    for (let from = userStart; from < userEnd; from++) this.#text[this.#textEnd++] = view.getUint8(from)
    return row
  }

  /** The row of a client of a cell, or NO_ROW. */
  find(cell: number, view: DataView, start: number, end: number, userStart: number, userEnd: number): number {
    const ofClient = keyed.bytes(view, start, end, CLIENT_POSITION, keyed.word(cell, 0, 0))
    const hash = keyed.bytes(view, userStart, userEnd, USER_POSITION, ofClient)
    const first = hash & (SLOTS - 1)
    let slot = first
    let row = (this.#slots[slot] ?? 0) - 1
    while (row !== NO_ROW && !this.#isRow(row, cell, hash, view, start, end, userStart, userEnd)) {
      slot = (slot + 1) & (SLOTS - 1)
      row = (this.#slots[slot] ?? 0) - 1
    }
    if (((slot - first) & (SLOTS - 1)) > PROBES_MAX) this.#isProbeLimitReached = true
    this.#hash = hash
    this.#slot = slot
    return row
  }

  /** Adds matches to a row. */
  add(row: number, bits: number, matches: number, firstSeenMs: number, lastSeenMs: number): void {
    const numbers = this.#numbers
    const at = row * NUMBER_COLUMNS
    const key = row * KEY_COLUMNS + BITS
    this.#keys[key] = (this.#keys[key] ?? 0) | bits
    numbers[at] = (numbers[at] ?? 0) + matches
    if (firstSeenMs < (numbers[at + FIRST] ?? 0)) numbers[at + FIRST] = firstSeenMs
    if (lastSeenMs > (numbers[at + LAST] ?? 0)) numbers[at + LAST] = lastSeenMs
  }

  /** Of the matches of a row, those that are not use. */
  addOther(row: number, blocked: number, touched: number): void {
    const at = row * NUMBER_COLUMNS
    this.#numbers[at + BLOCKED] = (this.#numbers[at + BLOCKED] ?? 0) + blocked
    this.#numbers[at + TOUCHED] = (this.#numbers[at + TOUCHED] ?? 0) + touched
  }

  addBytes(row: number, sent: number, received: number): void {
    const at = row * NUMBER_COLUMNS
    this.#numbers[at + SENT] = (this.#numbers[at + SENT] ?? 0) + sent
    this.#numbers[at + RECEIVED] = (this.#numbers[at + RECEIVED] ?? 0) + received
  }

  cellOf(row: number): number {
    return this.#keys[row * KEY_COLUMNS + CELL] ?? 0
  }

  /** Bit i is ACCESS_KINDS[i]. */
  accessOf(row: number): number {
    return accessIn(this.#keys[row * KEY_COLUMNS + BITS] ?? 0)
  }

  matchesOf(row: number): number {
    return this.#numbers[row * NUMBER_COLUMNS] ?? 0
  }

  sentBy(row: number): number {
    return this.#numbers[row * NUMBER_COLUMNS + SENT] ?? 0
  }

  receivedBy(row: number): number {
    return this.#numbers[row * NUMBER_COLUMNS + RECEIVED] ?? 0
  }

  numbersOf(row: number): ClientNumbers {
    const at = row * NUMBER_COLUMNS
    const bits = this.#keys[row * KEY_COLUMNS + BITS] ?? 0
    return {
      methods: methodsIn(bits),
      access: accessIn(bits),
      matches: this.#numbers[at] ?? 0,
      firstSeenMs: this.#numbers[at + FIRST] ?? 0,
      lastSeenMs: this.#numbers[at + LAST] ?? 0,
      bytesSent: this.#numbers[at + SENT] ?? 0,
      bytesReceived: this.#numbers[at + RECEIVED] ?? 0,
      blocked: this.#numbers[at + BLOCKED] ?? 0,
      touched: this.#numbers[at + TOUCHED] ?? 0,
    }
  }

  clientOf(row: number): string {
    return this.#textIn(this.textStart(row), this.clientEnd(row))
  }

  /** '' if no log names a user. */
  userOf(row: number): string {
    return this.#textIn(this.clientEnd(row), this.userEnd(row))
  }

  #textIn(start: number, end: number): string {
    return Buffer.from(this.#text.buffer, this.#text.byteOffset + start, end - start).toString('utf8')
  }

  /** The hash of the client's address (hashClient). */
  hashOf(row: number): number {
    const { buffer, byteOffset, length } = this.#text
    return hashClient(new DataView(buffer, byteOffset, length), this.textStart(row), this.clientEnd(row))
  }

  /** The memory with the text of all rows. */
  get text(): Uint8Array {
    return this.#text
  }

  textStart(row: number): number {
    return this.#keys[row * KEY_COLUMNS + TEXT_START] ?? 0
  }

  clientEnd(row: number): number {
    return this.textStart(row) + (this.#keys[row * KEY_COLUMNS + CLIENT_BYTES] ?? 0)
  }

  userEnd(row: number): number {
    return this.clientEnd(row) + (this.#keys[row * KEY_COLUMNS + USER_BYTES] ?? 0)
  }

  #isRow(
    row: number,
    cell: number,
    hash: number,
    view: DataView,
    start: number,
    end: number,
    userStart: number,
    userEnd: number,
  ): boolean {
    const keys = this.#keys
    const at = row * KEY_COLUMNS
    if (keys[at] !== hash || keys[at + CELL] !== cell) return false
    if (keys[at + CLIENT_BYTES] !== end - start || keys[at + USER_BYTES] !== userEnd - userStart) return false
    const text = this.#text
    let own = keys[at + TEXT_START] ?? 0
    for (let from = start; from < end; from++) if (text[own++] !== view.getUint8(from)) return false
    for (let from = userStart; from < userEnd; from++) if (text[own++] !== view.getUint8(from)) return false
    return true
  }

  #grow(): void {
    const longer = new Uint8Array(Math.min(TEXT_BYTES_MAX, this.#text.length * 2))
    longer.set(this.#text)
    this.#text = longer
  }
}
