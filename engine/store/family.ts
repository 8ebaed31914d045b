import { Packr } from 'msgpackr'
import type { Table } from '../lmdb/environment.ts'
import { openRecord, sealRecord } from '../lmdb/record.ts'
import { endOfPrefix } from './keys.ts'

const RECORD_VERSION = 1

const packr = new Packr({ useRecords: false, moreTypes: false, variableMapSize: true })

/** The records of one type in one table, each in msgpack in a sealed record (record.ts). */
export class Family<T> {
  readonly #table: Table
  readonly #what: string

  constructor(table: Table, what: string) {
    this.#table = table
    this.#what = what
  }

  get(key: Uint8Array): T | undefined {
    const bytes = this.#table.get(Buffer.from(key))
    return bytes === undefined ? undefined : this.#open(bytes)
  }

  /** Whether there is a record, without opening it. */
  has(key: Uint8Array): boolean {
    return this.#table.doesExist(Buffer.from(key))
  }

  /** Requires a write transaction. */
  put(key: Uint8Array, value: T): void {
    this.#table.putSync(Buffer.from(key), sealRecord(RECORD_VERSION, packr.pack(value)))
  }

  /** Requires a write transaction. */
  remove(key: Uint8Array): void {
    this.#table.removeSync(Buffer.from(key))
  }

  /** Records whose key begins with `prefix`, from the key `start` on, in key order. */
  *range(prefix: Uint8Array, start: Uint8Array = prefix): Generator<{ key: Buffer; value: T }> {
    for (const { key, value } of this.#table.getRange({ start: Buffer.from(start), end: endOfPrefix(prefix) })) {
      yield { key, value: this.#open(value) }
    }
  }

  /** Keys that begin with `prefix`. Does not read the records. */
  keys(prefix: Uint8Array): Iterable<Buffer> {
    return this.#table.getKeys({ start: Buffer.from(prefix), end: endOfPrefix(prefix) })
  }

  /** The first key that begins with `prefix`, from `start` on. */
  firstKey(prefix: Uint8Array, start: Uint8Array = prefix): Buffer | undefined {
    const [key] = this.#table.getKeys({ start: Buffer.from(start), end: endOfPrefix(prefix), limit: 1 })
    return key
  }

  lastKey(prefix: Uint8Array): Buffer | undefined {
    const range = { start: endOfPrefix(prefix), end: Buffer.from(prefix), reverse: true, exclusiveStart: true }
    const [key] = this.#table.getKeys({ ...range, limit: 1 })
    return key
  }

  /** The last record whose key begins with `prefix` and for which `wanted` returns true. */
  last(prefix: Uint8Array, wanted: (value: T) => boolean = () => true): T | undefined {
    const range = { start: endOfPrefix(prefix), end: Buffer.from(prefix), reverse: true, exclusiveStart: true }
    for (const { value } of this.#table.getRange(range)) {
      const opened = this.#open(value)
      if (wanted(opened)) return opened
    }
    return undefined
  }

  /** The last records whose key begins with `prefix`, in descending key order. */
  newest(prefix: Uint8Array, countMax: number): T[] {
    const range = { start: endOfPrefix(prefix), end: Buffer.from(prefix), reverse: true, exclusiveStart: true }
    return Array.from(this.#table.getRange({ ...range, limit: countMax }), ({ value }) => this.#open(value))
  }

  #open(bytes: Uint8Array): T {
    return openPacked(bytes, this.#what)
  }
}

/** Returns the value in a record of a family. @throws Fault STORE_DAMAGED, STORE_VERSION. */
export function openPacked<T>(bytes: Uint8Array, what: string): T {
  return packr.unpack(openRecord(bytes, RECORD_VERSION, what)) as T
}
