import { Packr } from 'msgpackr'
import type { Table } from '../lmdb/environment.ts'
import { openRecord, sealRecord } from '../lmdb/record.ts'
import { endOfPrefix } from './keys.ts'

const RECORD_VERSION = 1

const packr = new Packr({ useRecords: false, moreTypes: false, variableMapSize: true })

/** The records of one kind in one table, each msgpack in a sealed record (record.ts). */
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

  /** Inside a transaction of the caller. */
  put(key: Uint8Array, value: T): void {
    this.#table.putSync(Buffer.from(key), sealRecord(RECORD_VERSION, packr.pack(value)))
  }

  /** Inside a transaction of the caller. */
  remove(key: Uint8Array): void {
    this.#table.removeSync(Buffer.from(key))
  }

  /** All whose key begins with `prefix` (and from `start` on, where given), in order of their keys. */
  *range(prefix: Uint8Array, start: Uint8Array = prefix): Generator<{ key: Buffer; value: T }> {
    for (const { key, value } of this.#table.getRange({ start: Buffer.from(start), end: endOfPrefix(prefix) })) {
      yield { key, value: this.#open(value) }
    }
  }

  /** Keys that begin with `prefix`, without opening what stands there. */
  keys(prefix: Uint8Array): Iterable<Buffer> {
    return this.#table.getKeys({ start: Buffer.from(prefix), end: endOfPrefix(prefix) })
  }

  /** The last whose key begins with `prefix`, for which `wanted` answers true. */
  last(prefix: Uint8Array, wanted: (value: T) => boolean = () => true): T | undefined {
    const range = { start: endOfPrefix(prefix), end: Buffer.from(prefix), reverse: true, exclusiveStart: true }
    for (const { value } of this.#table.getRange(range)) {
      const opened = this.#open(value)
      if (wanted(opened)) return opened
    }
    return undefined
  }

  #open(bytes: Uint8Array): T {
    return openPacked(bytes, this.#what)
  }
}

/** The value in a family's record. @throws Fault STORE_DAMAGED, STORE_VERSION. */
export function openPacked<T>(bytes: Uint8Array, what: string): T {
  return packr.unpack(openRecord(bytes, RECORD_VERSION, what)) as T
}
