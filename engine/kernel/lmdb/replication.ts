import type { Database, RootDatabase } from 'lmdb'
import { Fault } from '../process/error-codes.ts'
import { openRecord, RECORD_HEADER_BYTES, sealRecord } from './record.ts'

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
class ChangeRecorder {
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
interface ChangeTarget {
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

/** In the root table, next to the schema. It is not part of a change. */
const STATE_KEY = Buffer.from('replication')
const STATE_VERSION = 1
const CHANGE_VERSION = 1
/** The changes that are not published yet, by number. */
const CHANGES_TABLE = 'changes'
const NUMBER_BYTES = 6
/**
 * Bytes of changes that the brokers do not have. Beyond it, transactions are refused: senders wait,
 * and the store does not grow while brokers are slow.
 */
const UNPUBLISHED_BYTES_MAX = 32 * 1024 * 1024
const TOO_SLOW = 'the brokers take the changes of this node too slowly; try again'

type Table = Database<Buffer, Buffer>

/**
 * Who may write. `primary`: this node; each transaction is recorded as a change. `paused`: nobody,
 * because the primary cannot publish at the moment. `replica`: another node.
 */
export type ReplicationMode = 'primary' | 'paused' | 'replica'

/** How far a replicated store is. */
export interface ReplicationState {
  readonly mode: ReplicationMode
  /** Id of this store, which no other store has. */
  readonly node: string
  /** Name of the node that may write. */
  readonly primary: string
  /** Increases with each primary. */
  readonly generation: number
  /** The last change in the store. */
  readonly change: number
  /** Bytes of changes that are not published. */
  readonly unpublishedBytes: number
  /** The last message of the stream of changes that is in the store. */
  readonly sequence: number
  /** When the stream was created: another stream has other messages. */
  readonly created: string
}

/** A transaction of the primary. */
export interface Change {
  readonly number: number
  readonly writes: Buffer
}

/**
 * Records the transactions of an environment, so that replicas can repeat them. The record is part
 * of the transaction itself, whichever thread or process writes it.
 */
export class Replication {
  /** The last change that this instance recorded. 0: none. */
  lastRecorded = 0
  readonly #root: RootDatabase<Buffer, Buffer>
  readonly #tables: ReadonlyMap<string, Table>
  readonly #changes: Table
  readonly #migrate: (version: number) => void
  readonly #recorder = new ChangeRecorder()

  /**
   * @param tables the open tables of the environment, also those that are opened later
   * @param migrate migrates the store to a schema, in the transaction of the caller
   */
  constructor(
    root: RootDatabase<Buffer, Buffer>,
    tables: ReadonlyMap<string, Table>,
    migrate: (version: number) => void,
  ) {
    this.#root = root
    this.#tables = tables
    this.#migrate = migrate
    this.#changes = root.openDB({ name: CHANGES_TABLE, keyEncoding: 'binary', encoding: 'binary' })
  }

  /** undefined: the store is not replicated. */
  get state(): ReplicationState | undefined {
    const stored = this.#root.get(STATE_KEY)
    if (stored === undefined) return undefined
    return JSON.parse(openRecord(stored, STATE_VERSION, 'replication').toString('utf8')) as ReplicationState
  }

  /**
   * Whether the brokers do not answer, or are slower than this node writes. The reader of the log
   * waits then, because scans and commands fail at the limit. What it has read comes on top.
   */
  get areBrokersSlow(): boolean {
    const { state } = this
    return state?.mode === 'paused' || (state?.unpublishedBytes ?? 0) > UNPUBLISHED_BYTES_MAX / 4
  }

  /** Requires a transaction that is not recorded. */
  putState(state: ReplicationState): void {
    this.#root.putSync(STATE_KEY, sealRecord(STATE_VERSION, Buffer.from(JSON.stringify(state))))
  }

  /** Makes the store a store of its own again. Requires a transaction that is not recorded. */
  forget(): void {
    this.#root.removeSync(STATE_KEY)
    this.removeTo(Number.MAX_SAFE_INTEGER, undefined)
  }

  /** Has the writes to a table recorded. */
  watch(name: string, table: Table): void {
    const [put, remove] = [table.putSync.bind(table), table.removeSync.bind(table)]
    const recorder = this.#recorder
    table.putSync = (key: Buffer, value: Buffer): void => {
      if (recorder.isRecording) recorder.put(name, key, value)
      put(key, value)
    }
    table.removeSync = (key: Buffer): boolean => {
      if (recorder.isRecording) recorder.remove(name, key)
      return remove(key)
    }
  }

  /**
   * Runs `work`, in the transaction of the caller, and adds its change.
   *
   * @throws Fault NOT_PRIMARY
   */
  record<T>(work: () => T): T {
    const { state } = this
    if (state === undefined || this.#recorder.isRecording) return work()
    if (state.mode !== 'primary') throw notPrimary(state)
    if (state.unpublishedBytes > UNPUBLISHED_BYTES_MAX) throw new Fault('NOT_PRIMARY', TOO_SLOW)
    this.#recorder.start()
    try {
      const result = work()
      const writes = this.#recorder.take()
      if (writes.length === 0) return result
      const change = state.change + 1
      this.#changes.putSync(numberKey(change), sealRecord(CHANGE_VERSION, writes))
      this.putState({ ...state, change, unpublishedBytes: state.unpublishedBytes + writes.length })
      this.lastRecorded = change
      return result
    } finally {
      this.#recorder.discard()
    }
  }

  /** Migrates this store and, by the change of the caller's transaction, all replicas. */
  migrateAll(version: number): void {
    this.#recorder.migrate(version, () => this.#migrate(version))
  }

  /** Repeats the change of another store. Requires a transaction that is not recorded. */
  repeat(writes: Buffer): void {
    repeatChange(writes, {
      put: (name, key, value) => this.#table(name).putSync(key, value),
      remove: (name, key) => this.#table(name).removeSync(key),
      migrate: this.#migrate,
    })
  }

  #table(name: string): Table {
    const table = this.#tables.get(name)
    if (table !== undefined) return table
    throw new Fault('STORE_VERSION', `the primary writes a table that this release lacks: ${name}; upgrade this node`)
  }

  /** The unpublished changes after `after`, ascending, up to `bytesMax` bytes but at least one. */
  unpublished(after: number, bytesMax: number): Change[] {
    const changes: Change[] = []
    let bytes = 0
    for (const { key, value } of this.#changes.getRange({ start: numberKey(after + 1) })) {
      bytes += value.length
      if (changes.length > 0 && bytes > bytesMax) break
      const number = key.readUIntBE(0, NUMBER_BYTES)
      // A copy: the value is only valid while the snapshot is.
      const writes = Buffer.from(openRecord(value, CHANGE_VERSION, `change ${number}`))
      changes.push({ number, writes })
    }
    return changes
  }

  /** The first change that is not published. undefined: all are. */
  get firstUnpublished(): number | undefined {
    const [key] = this.#changes.getKeys({ limit: 1 })
    return key?.readUIntBE(0, NUMBER_BYTES)
  }

  /**
   * Removes the changes up to `number`, and returns the state without them. Requires a transaction
   * that is not recorded.
   */
  removeTo<State extends ReplicationState | undefined>(number: number, state: State): State {
    let bytes = 0
    for (const { key, value } of [...this.#changes.getRange({ end: numberKey(number + 1) })]) {
      bytes += value.length - RECORD_HEADER_BYTES
      this.#changes.removeSync(key)
    }
    if (state === undefined) return state
    return { ...state, unpublishedBytes: Math.max(0, state.unpublishedBytes - bytes) }
  }
}

function notPrimary({ mode, primary }: ReplicationState): Fault {
  if (mode === 'paused') return new Fault('NOT_PRIMARY', 'the brokers are not reachable; try again when they are')
  const where = primary === '' ? 'no node is the primary at the moment' : `${primary} is the primary: change it there`
  return new Fault('NOT_PRIMARY', `this node is a replica; ${where}`)
}

/** Big-endian, so that the keys are in the order of the numbers. */
function numberKey(number: number): Buffer {
  const key = Buffer.allocUnsafe(NUMBER_BYTES)
  key.writeUIntBE(Math.min(number, 2 ** (8 * NUMBER_BYTES) - 1), 0, NUMBER_BYTES)
  return key
}
