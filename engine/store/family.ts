import { Packr } from 'msgpackr'
import type { Table } from '../kernel/lmdb/environment.ts'
import { openRecord, sealRecord } from '../kernel/lmdb/record.ts'
import { endOfPrefix, uuidBytes } from './keys.ts'

/** The version of every record of a family. */
export const RECORD_VERSION = 1

const packr = new Packr({ useRecords: false, moreTypes: false, variableMapSize: true })

export interface KeyedPayload {
  readonly key: Buffer
  readonly payload: Buffer
}

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

  /**
   * The payload of a record, valid until the next read from the store. undefined: there is none.
   *
   * @throws Fault STORE_DAMAGED, STORE_VERSION
   */
  view(key: Buffer): Buffer | undefined {
    const bytes = this.#table.getBinaryFast(key)
    return bytes === undefined ? undefined : openRecord(bytes, RECORD_VERSION, this.#what)
  }

  /** Whether there is a record, without opening it. */
  has(key: Uint8Array): boolean {
    return this.#table.doesExist(Buffer.from(key))
  }

  put(key: Uint8Array, value: T): void {
    this.#table.putSync(Buffer.isBuffer(key) ? key : Buffer.from(key), sealRecord(RECORD_VERSION, packr.pack(value)))
  }

  /** Stores a sealed record of RECORD_VERSION. */
  putSealed(key: Buffer, record: Buffer): void {
    this.#table.putSync(key, record)
  }

  remove(key: Uint8Array): void {
    this.#table.removeSync(Buffer.from(key))
  }

  /** Records whose key begins with `prefix`, from the key `start` on, in key order. */
  *range(prefix: Uint8Array, start: Uint8Array = prefix): Generator<{ key: Buffer; value: T }> {
    for (const { key, value } of this.#table.getRange({ start: Buffer.from(start), end: endOfPrefix(prefix) })) {
      yield { key, value: this.#open(value) }
    }
  }

  /** The payloads of the same records. */
  *payloads(prefix: Uint8Array, start: Uint8Array = prefix): Generator<KeyedPayload> {
    for (const { key, value } of this.#table.getRange({ start: Buffer.from(start), end: endOfPrefix(prefix) })) {
      yield { key, payload: openRecord(value, RECORD_VERSION, this.#what) }
    }
  }

  /** Keys that begin with `prefix`. Does not read the records. */
  keys(prefix: Uint8Array): Iterable<Buffer> {
    return this.#table.getKeys({ start: Buffer.from(prefix), end: endOfPrefix(prefix) })
  }

  /** Number of keys that begin with `prefix`. */
  count(prefix: Uint8Array): number {
    return this.#table.getKeysCount({ start: Buffer.from(prefix), end: endOfPrefix(prefix) })
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

/** Records that contain what their keys are made of: mostly an organization or user, and a name. */
export class Collection<Named, T extends Named> {
  protected readonly records: Family<T>
  readonly #keyOf: (named: Named) => Buffer

  constructor(table: Table, what: string, keyOf: (named: Named) => Buffer) {
    this.records = new Family(table, what)
    this.#keyOf = keyOf
  }

  get(named: Named): T | undefined {
    return this.records.get(this.#keyOf(named))
  }

  all(): T[] {
    return this.startingWith(Buffer.alloc(0))
  }

  /** The records whose keys begin with these bytes, in the order of keys. */
  protected startingWith(prefix: Buffer): T[] {
    return Array.from(this.records.range(prefix), ({ value }) => value)
  }

  isEmpty(): boolean {
    return this.records.firstKey(Buffer.alloc(0)) === undefined
  }

  put(value: T): void {
    this.records.put(this.#keyOf(value), value)
  }

  remove(named: Named): void {
    this.records.remove(this.#keyOf(named))
  }
}

/** Records whose keys begin with an organization. */
export class OrganizationCollection<Named, T extends Named> extends Collection<Named, T> {
  /** In the order of keys. */
  ofOrganization(organizationId: string): T[] {
    return this.startingWith(uuidBytes(organizationId))
  }
}

/** Returns the value in the payload of a record of a family. */
export function unpacked<T>(payload: Uint8Array): T {
  return packr.unpack(payload) as T
}

/** Returns the value in a record of a family. @throws Fault STORE_DAMAGED, STORE_VERSION. */
export function openPacked<T>(bytes: Uint8Array, what: string): T {
  return unpacked(openRecord(bytes, RECORD_VERSION, what))
}
