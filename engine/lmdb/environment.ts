import { isMainThread } from 'node:worker_threads'
import * as lmdb from 'lmdb'
import { type Database, open, type RootDatabase } from 'lmdb'
import { Fault } from '../process/error-codes.ts'
import { type AccessOptions, prepareFiles } from './file-access.ts'
import {
  AHEAD_BYTES_MIN,
  type EnvironmentSpace,
  FreeSpace,
  SHRINK_AHEAD_BYTES_MIN,
  type SpaceOptions,
  type TreeStats,
} from './free-space.ts'
import { openRecord, sealRecord } from './record.ts'

/** The library's own version, which its types omit. Imported as a module: as CommonJS it would be loaded twice. */
export const LMDB_VERSION = (lmdb as unknown as { readonly version: { readonly versionString: string } }).version
  .versionString

/** An LMDB table: keys and values are bytes. */
export type Table = Database<Buffer, Buffer>

export interface EnvironmentOptions extends AccessOptions, SpaceOptions {
  /** The highest schema version that this program knows. */
  readonly schemaVersion: number
  /** 'by the owner': the caller calls migrate() once its tables are open. Otherwise the schema is written at once. */
  readonly migrate?: 'by the owner'
}

const TABLES_MAX = 64
/**
 * Threads and programs that read at the same time, 64 bytes each: at most 128 threads of the service, and any commands
 * besides. LMDB refuses more.
 */
const READERS_MAX = 512
const SCHEMA_KEY = Buffer.from('schema')
const SCHEMA_RECORD_VERSION = 1

/**
 * One LMDB environment in its own directory. One thread writes at a time. A transaction that has returned is flushed
 * to disk (MDB_NOSYNC is never set, and lmdb-js flushes synchronous transactions).
 */
export class Environment {
  readonly path: string
  readonly #root: RootDatabase<Buffer, Buffer>
  readonly #schemaVersion: number
  readonly #tables = new Map<string, Table>()
  readonly #space: FreeSpace
  #hasTurnsSnapshot = false
  #turn = 0

  /** @throws Fault NOT_FOUND, STORE_UNWRITABLE, STORE_DAMAGED, STORE_VERSION, STORE_FULL. */
  constructor(path: string, options: EnvironmentOptions) {
    this.path = path
    const readOnly = options.readOnly ?? false
    prepareFiles(path, options)
    // The names that an organization looks up are confidential. A worker cannot set the umask, and never creates files.
    const umask = isMainThread ? process.umask(0o077) : 0
    try {
      this.#root = open<Buffer, Buffer>({
        path,
        noSubdir: false,
        maxDbs: TABLES_MAX,
        maxReaders: READERS_MAX,
        keyEncoding: 'binary',
        encoding: 'binary',
        readOnly,
      })
    } catch (error) {
      throw new Fault('STORE_UNWRITABLE', `${options.setting} ${path}: ${(error as Error).message}`, { cause: error })
    } finally {
      if (isMainThread) process.umask(umask)
    }
    this.#space = new FreeSpace(path, options, this.#root, this.#tables)
    this.#schemaVersion = options.schemaVersion
    this.#refuseNewerSchema()
    if (!readOnly && options.migrate === undefined) this.migrate()
  }

  /**
   * Brings the data to this program's schema: calls `step` for each missing version, ascending from 1, in one
   * transaction.
   *
   * @throws Fault STORE_FULL.
   */
  migrate(step: (version: number) => void = () => {}): void {
    if (this.#storedSchema() >= this.#schemaVersion) return
    this.write(() => {
      // Read again: another thread or program may have migrated meanwhile.
      for (let version = this.#storedSchema() + 1; version <= this.#schemaVersion; version++) step(version)
      this.#root.putSync(SCHEMA_KEY, sealRecord(SCHEMA_RECORD_VERSION, Buffer.from([this.#schemaVersion])))
    })
  }

  /** Opens a table, and creates it unless the environment is read-only. */
  table(name: string): Table {
    const table = this.tableIfThere(name)
    if (table === undefined) throw new Error(`${this.path}: no table ${name}, and it is open to be read only`)
    return table
  }

  /** As table(), but undefined if the table does not exist and the environment is read-only. */
  tableIfThere(name: string): Table | undefined {
    const known = this.#tables.get(name)
    if (known !== undefined) return known
    // openDB returns undefined for a table that it may not create, which its type does not say.
    const table: Table | undefined = this.#root.openDB({ name, keyEncoding: 'binary', encoding: 'binary' })
    if (table !== undefined) this.#tables.set(name, table)
    return table
  }

  /** The tables that were opened, by name. */
  get tables(): ReadonlyMap<string, Table> {
    return this.#tables
  }

  /** The part of the file that a table takes, in bytes: whole pages. */
  tableBytes(name: string): number {
    return this.#space.bytesOf(this.table(name))
  }

  /** The number of records of a table, without reading them. */
  tableRecords(name: string): number {
    return (this.table(name).getStats() as TreeStats).entryCount
  }

  /** @throws Fault STORE_UNWRITABLE if the directory was removed. */
  space(): EnvironmentSpace {
    return this.#space.report()
  }

  /** Whether a write would be refused for lack of space. */
  get full(): boolean {
    return this.#space.full
  }

  /** The version of the stored schema. */
  get schemaVersion(): number {
    return this.#storedSchema()
  }

  /** Copies one snapshot, without unused pages, into an empty directory, while others write. */
  async copyInto(directory: string): Promise<void> {
    await this.#root.backup(directory, true)
  }

  /**
   * Runs `work` as one atomic transaction and returns when it is on disk. If `work` throws, the transaction is aborted.
   *
   * @throws Fault STORE_FULL before anything is written, if the file system is short of space.
   */
  write<T>(work: () => T): T {
    this.#space.assertForWrite()
    return this.#commit(work, AHEAD_BYTES_MIN)
  }

  /**
   * As write(), for `work` that only removes. It may use the space that is kept free for it, because LMDB needs new
   * pages to free old ones.
   *
   * @throws Fault STORE_FULL before anything is written, if even that space is gone.
   */
  shrink<T>(work: () => T): T {
    this.#space.assertForShrink()
    return this.#commit(work, SHRINK_AHEAD_BYTES_MIN)
  }

  #commit<T>(work: () => T, aheadBytesMin: number): T {
    try {
      return this.#root.transactionSync(() => {
        this.#space.keepAhead(aheadBytesMin)
        return work()
      })
    } catch (error) {
      if (error instanceof Fault) throw error
      throw this.#space.faultOf(error) ?? error
    }
  }

  /** Runs `work` over one snapshot, whatever is written meanwhile. Not across an await. */
  read<T>(work: () => T): T {
    // All synchronous reads of a turn share lmdb-js's read transaction. A reset makes it the latest snapshot.
    this.#root.resetReadTxn()
    return work()
  }

  /**
   * As read(), over the snapshot of the first reader in this turn of the event loop, so at most a turn old. A new
   * snapshot costs 2 us, which a thread with thousands of requests a second need not spend on each.
   */
  readInTurn<T>(work: () => T): T {
    if (!this.#hasTurnsSnapshot) {
      this.#hasTurnsSnapshot = true
      this.#turn++
      this.#root.resetReadTxn()
      setImmediate(() => {
        this.#hasTurnsSnapshot = false
      })
    }
    return work()
  }

  /** The number of the snapshot that readInTurn() reads. */
  get turn(): number {
    return this.#turn
  }

  async close(): Promise<void> {
    await this.#root.close()
    this.#space.close()
  }

  /** 0: nothing was stored yet. */
  #storedSchema(): number {
    const stored = this.#root.get(SCHEMA_KEY)
    return stored === undefined ? 0 : (openRecord(stored, SCHEMA_RECORD_VERSION, `${this.path}: schema`)[0] ?? 0)
  }

  #refuseNewerSchema(): void {
    const found = this.#storedSchema()
    if (found <= this.#schemaVersion) return
    throw new Fault(
      'STORE_VERSION',
      `${this.path}: written by a newer release (schema ${found}), this one reads up to ${this.#schemaVersion}; install the newer release`,
    )
  }
}
