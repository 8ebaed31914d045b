import { Fault } from '../process/error-codes.ts'

/*
 * The writes of one transaction as bytes, so that another store can repeat them. One entry for each
 * write, in order:
 *
 *   width  content
 *   1      1: put, 2: remove, 3: migrate to a schema, whose version is the value, in one byte
 *   1      bytes of the table's name
 *   2      bytes of the key, little-endian
 *   4      bytes of the value, little-endian; 0 for remove
 *   n      name, key and value
 */
const PUT = 1
const REMOVE = 2
const MIGRATE = 3
const ENTRY_HEADER_BYTES = 8
const INITIAL_BYTES = 16 * 1024
/** A larger buffer is not kept for the next transaction. */
const KEPT_BYTES_MAX = 4 * 1024 * 1024

const NOTHING = Buffer.alloc(0)

/** Collects the writes of a transaction. One instance per thread, reused. */
export class ChangeRecorder {
  #bytes = Buffer.allocUnsafe(INITIAL_BYTES)
  #length = 0
  #recording = false

  get isRecording(): boolean {
    return this.#recording
  }

  start(): void {
    this.#length = 0
    this.#recording = true
  }

  /** Ends the recording. Returns the writes; empty if there were none. */
  take(): Buffer {
    const change = Buffer.from(this.#bytes.subarray(0, this.#length))
    this.discard()
    return change
  }

  discard(): void {
    this.#recording = false
    if (this.#bytes.length > KEPT_BYTES_MAX) this.#bytes = Buffer.allocUnsafe(INITIAL_BYTES)
  }

  put(table: string, key: Uint8Array, value: Uint8Array): void {
    this.#append(PUT, table, key, value)
  }

  remove(table: string, key: Uint8Array): void {
    this.#append(REMOVE, table, key, NOTHING)
  }

  /** Records one entry for what `work` writes, because each store does the same work. */
  migrate(version: number, work: () => void): void {
    this.#append(MIGRATE, '', NOTHING, Buffer.from([version]))
    this.#recording = false
    work()
    this.#recording = true
  }

  #append(kind: number, table: string, key: Uint8Array, value: Uint8Array): void {
    const end = this.#length + ENTRY_HEADER_BYTES + table.length + key.length + value.length
    if (end > this.#bytes.length) this.#grow(end)
    const bytes = this.#bytes
    let at = this.#length
    bytes[at] = kind
    bytes[at + 1] = table.length
    bytes.writeUInt16LE(key.length, at + 2)
    bytes.writeUInt32LE(value.length, at + 4)
    at += ENTRY_HEADER_BYTES
    bytes.write(table, at, 'latin1')
    at += table.length
    bytes.set(key, at)
    bytes.set(value, at + key.length)
    this.#length = end
  }

  #grow(needed: number): void {
    const bytes = Buffer.allocUnsafe(Math.max(needed, 2 * this.#bytes.length))
    bytes.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = bytes
  }
}

/** Receives the writes of a change. */
export interface ChangeTarget {
  put(table: string, key: Buffer, value: Buffer): void
  remove(table: string, key: Buffer): void
  /** @throws Fault STORE_VERSION */
  migrate(version: number): void
}

/**
 * Repeats the writes of a change in order.
 *
 * @throws RangeError if the bytes are truncated; Fault STORE_VERSION if a newer release wrote them
 */
export function repeatChange(change: Buffer, target: ChangeTarget): void {
  for (let at = 0; at < change.length; ) {
    const kind = change.readUInt8(at)
    const name = at + ENTRY_HEADER_BYTES
    const key = name + change.readUInt8(at + 1)
    const value = key + change.readUInt16LE(at + 2)
    const end = value + change.readUInt32LE(at + 4)
    if (kind > MIGRATE)
      throw new Fault('STORE_VERSION', `the primary writes entries of kind ${kind}; upgrade this node`)
    if (end > change.length || kind < PUT) throw new RangeError(`no change at byte ${at}`)
    const table = change.toString('latin1', name, key)
    if (kind === PUT) target.put(table, change.subarray(key, value), change.subarray(value, end))
    else if (kind === REMOVE) target.remove(table, change.subarray(key, value))
    else target.migrate(change.readUInt8(value))
    at = end
  }
}
