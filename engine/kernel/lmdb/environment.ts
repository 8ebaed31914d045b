import { strict as assert } from 'node:assert'
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import * as lmdb from 'lmdb'
import { type Database, open, type RootDatabase } from 'lmdb'
import { Fault } from '../process/error-codes.ts'
import { type AccessOptions, DATA_FILE, MUTEX_FILE, prepareFiles } from './file-access.ts'
import {
  AHEAD_BYTES_MIN,
  type EnvironmentSpace,
  FreeSpace,
  SHRINK_AHEAD_BYTES_MIN,
  type SpaceOptions,
  type TreeStats,
} from './free-space.ts'
import { openRecord, sealRecord } from './record.ts'
import { Replication } from './replication.ts'

/**
 * The library's version, which its types omit. Imported as a module: as CommonJS the library would
 * be loaded twice.
 */
export const LMDB_VERSION = (lmdb as unknown as { readonly version: { readonly versionString: string } }).version
  .versionString

/** An LMDB table: keys and values are bytes. */
export type Table = Database<Buffer, Buffer>

export interface EnvironmentOptions extends AccessOptions, SpaceOptions {
  /** The newest schema version that this program supports. */
  readonly schemaVersion: number
  /**
   * 'by the caller': the caller calls migrate() after opening its tables. Otherwise the constructor
   * writes the schema.
   */
  readonly migrate?: 'by the caller'
  /** Whether other nodes may have replicas of it (replication.ts). */
  readonly replicable?: boolean
}

export const TABLES_MAX = 128
/**
 * Maximum concurrent readers, 64 bytes each: up to 128 threads of the service, and commands. LMDB
 * refuses more.
 */
export const READERS_MAX = 512
const SCHEMA_KEY = Buffer.from('schema')
const SCHEMA_RECORD_VERSION = 1

const NOT_MIGRATED =
  'the primary of the cluster is of an older release; change it with the posture-admin of that release'

/**
 * One LMDB environment in its own directory. One thread writes at a time. When a transaction
 * returns, it is on disk (MDB_NOSYNC is never set, and lmdb-js flushes synchronous transactions).
 */
export class Environment {
  readonly path: string
  readonly #root: RootDatabase<Buffer, Buffer>
  readonly #schemaVersion: number
  readonly #tables = new Map<string, Table>()
  readonly #space: FreeSpace
  readonly #mutex: ProcessMutex
  #isClosed = false
  readonly #inode: number
  readonly #replication: Replication | undefined
  #step: (version: number) => void = () => {}
  /** The store has an older schema, and the primary of its cluster has to migrate it. */
  #isMigrationPending = false
  #hasTurnsSnapshot = false
  #turn = 0

  /** @throws Fault NOT_FOUND, STORE_UNWRITABLE, STORE_DAMAGED, STORE_VERSION, STORE_FULL. */
  constructor(path: string, options: EnvironmentOptions) {
    this.path = path
    const readOnly = options.readOnly ?? false
    prepareFiles(path, options)
    // The names that an organization looks up are confidential. A worker cannot set the umask, and
    // never creates files.
    const umask = isMainThread ? process.umask(0o077) : 0
    try {
      this.#mutex = new ProcessMutex(path, readOnly)
      this.#root = this.#mutex.run(() =>
        open<Buffer, Buffer>({
          path,
          noSubdir: false,
          maxDbs: TABLES_MAX,
          maxReaders: READERS_MAX,
          keyEncoding: 'binary',
          encoding: 'binary',
          readOnly,
        }),
      )
    } catch (error) {
      throw new Fault('STORE_UNWRITABLE', `${options.setting} ${path}: ${(error as Error).message}`, { cause: error })
    } finally {
      if (isMainThread) process.umask(umask)
    }
    this.#inode = statSync(join(path, DATA_FILE)).ino
    this.#space = new FreeSpace(path, options, this.#root, this.#tables)
    this.#schemaVersion = options.schemaVersion
    if (options.replicable && !readOnly) {
      this.#replication = this.#mutex.run(
        () => new Replication(this.#root, this.#tables, (version) => this.#migrateTo(version)),
      )
    }
    this.#refuseNewerSchema()
    if (!readOnly && options.migrate === undefined) this.migrate()
  }

  /**
   * Migrates the data to this program's schema: calls `step` for each missing version, ascending
   * from 1, in one transaction. The store of a cluster keeps its schema until migrateCluster().
   *
   * @throws Fault STORE_FULL; STORE_VERSION if the store of a cluster is more than one schema older
   */
  migrate(step: (version: number) => void = () => {}): void {
    this.#step = step
    const stored = this.#storedSchema()
    if (stored >= this.#schemaVersion) return
    if (this.#replication?.state === undefined) {
      return this.writeUnrecorded(() => this.#migrateTo(this.#schemaVersion))
    }
    if (stored < this.#schemaVersion - 1) throw new Fault('STORE_VERSION', `${this.path}: ${tooOld(stored)}`)
    this.#isMigrationPending = true
  }

  /** Whether the primary has to migrate the store of the cluster. */
  get isMigrationPending(): boolean {
    if (this.#isMigrationPending) this.#isMigrationPending = this.#storedSchema() < this.#schemaVersion
    return this.#isMigrationPending
  }

  /**
   * As the primary, migrates the stores of all nodes: each does the same work at the same place
   * among the changes. Nodes of an older release stop there.
   *
   * @throws Fault STORE_FULL, NOT_PRIMARY
   */
  migrateCluster(): void {
    this.#space.assertForWrite()
    const work = (): void => this.replication.migrateAll(this.#schemaVersion)
    this.#commit(() => this.replication.record(work), AHEAD_BYTES_MIN)
  }

  /** Requires a write transaction. @throws Fault STORE_VERSION */
  #migrateTo(version: number): void {
    if (version > this.#schemaVersion) throw new Fault('STORE_VERSION', `${this.path}: ${this.#tooNew(version)}`)
    // Another thread or process may have migrated in the meantime.
    for (let next = this.#storedSchema() + 1; next <= version; next++) this.#step(next)
    this.#root.putSync(SCHEMA_KEY, sealRecord(SCHEMA_RECORD_VERSION, Buffer.from([version])))
  }

  /** Opens a table, and creates it unless the environment is read-only. */
  table(name: string): Table {
    const table = this.tableIfExists(name)
    if (table === undefined) throw new Error(`${this.path}: no table ${name}, and the environment is read-only`)
    return table
  }

  /**
   * Like table(), but returns undefined if the table does not exist and the environment is
   * read-only.
   */
  tableIfExists(name: string): Table | undefined {
    const known = this.#tables.get(name)
    if (known !== undefined) return known
    // openDB creates a missing table in a transaction of its own. It returns undefined for one that
    // it may not create, which its type omits.
    const table = this.#mutex.run<Table | undefined>(() =>
      this.#root.openDB({ name, keyEncoding: 'binary', encoding: 'binary' }),
    )
    if (table === undefined) return undefined
    this.#tables.set(name, table)
    this.#replication?.watch(name, table)
    return table
  }

  /** The open tables by name. */
  get tables(): ReadonlyMap<string, Table> {
    return this.#tables
  }

  /** The bytes of a table in the file: whole pages. */
  tableBytes(name: string): number {
    return this.#space.bytesOf(this.table(name))
  }

  /** Number of records in a table, without reading them. */
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

  /** Whether shrink() has room for `bytes` of new records while it removes others. */
  fitsShrink(bytes: number): boolean {
    return !this.#space.full || this.#space.fitsShrink(bytes)
  }

  /** The version of the stored schema. */
  get schemaVersion(): number {
    return this.#storedSchema()
  }

  /** @throws Error if the environment was opened without `replicable`, or read-only */
  get replication(): Replication {
    assert(this.#replication !== undefined, `${this.path}: not replicable`)
    return this.#replication
  }

  /**
   * Like write(), for what every node does on its own: no change is recorded, and a replica may do
   * it, too.
   *
   * @throws Fault STORE_FULL before anything is written if disk space is short
   */
  writeUnrecorded<T>(work: () => T): T {
    this.#space.assertForWrite()
    return this.#commit(work, AHEAD_BYTES_MIN)
  }

  /** Like shrink(), without recording a change. @throws Fault STORE_FULL */
  shrinkUnrecorded<T>(work: () => T): T {
    this.#space.assertForShrink()
    return this.#commit(work, SHRINK_AHEAD_BYTES_MIN)
  }

  /**
   * Copies one snapshot, without unused pages, into an empty directory. Others can write in the
   * meantime.
   */
  async copyInto(directory: string): Promise<void> {
    await this.#root.backup(directory, true)
  }

  /**
   * Runs `work` as one atomic transaction and returns when it is on disk. If `work` throws, the
   * transaction is aborted.
   *
   * @throws Fault STORE_FULL before anything is written if disk space is short; NOT_PRIMARY on a
   *   replica
   */
  write<T>(work: () => T): T {
    this.#space.assertForWrite()
    return this.#commit(this.#recorded(work), AHEAD_BYTES_MIN)
  }

  /**
   * Like write(), for `work` that only removes. It may use the reserved space, because LMDB needs
   * new pages to free old ones.
   *
   * @throws Fault STORE_FULL before anything is written if even that space is used up; NOT_PRIMARY
   *   on a replica
   */
  shrink<T>(work: () => T): T {
    this.#space.assertForShrink()
    return this.#commit(this.#recorded(work), SHRINK_AHEAD_BYTES_MIN)
  }

  #recorded<T>(work: () => T): () => T {
    const replication = this.#replication
    if (replication === undefined) return work
    return () => {
      if (this.isMigrationPending) throw new Fault('STORE_VERSION', `${this.path}: ${NOT_MIGRATED}`)
      return replication.record(work)
    }
  }

  #commit<T>(work: () => T, aheadBytesMin: number): T {
    try {
      return this.#mutex.run(() =>
        this.#root.transactionSync(() => {
          this.#space.keepAhead(aheadBytesMin)
          return work()
        }),
      )
    } catch (error) {
      if (error instanceof Fault) throw error
      throw this.#space.faultOf(error) ?? error
    }
  }

  /**
   * Runs `work` on one snapshot, unaffected by concurrent writes. Must not be used across an await.
   */
  read<T>(work: () => T): T {
    // All synchronous reads in a turn of the event loop share lmdb-js's read transaction. A reset
    // selects the latest snapshot.
    this.#root.resetReadTxn()
    return work()
  }

  /**
   * Like read(), on the snapshot of the first reader in this turn of the event loop, which is at
   * most one turn old. A new snapshot costs 2 us, too much for each of thousands of requests per
   * second.
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

  /** The number of the snapshot that readInTurn() uses. */
  get turn(): number {
    return this.#turn
  }

  /** false after replaceEnvironment(), by a node that joins its cluster again, or by a restore. */
  get isInPlace(): boolean {
    return statSync(join(this.path, DATA_FILE), { throwIfNoEntry: false })?.ino === this.#inode
  }

  /** After close(), nothing can be read or written. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#root.close()
    await this.#mutex.close()
    this.#space.close()
  }

  /** 0: the environment is new. */
  #storedSchema(): number {
    const stored = this.#root.get(SCHEMA_KEY)
    return stored === undefined ? 0 : (openRecord(stored, SCHEMA_RECORD_VERSION, `${this.path}: schema`)[0] ?? 0)
  }

  #refuseNewerSchema(): void {
    const found = this.#storedSchema()
    if (found <= this.#schemaVersion) return
    throw new Fault('STORE_VERSION', `${this.path}: ${this.#tooNew(found)}`)
  }

  #tooNew(found: number): string {
    return `written by a newer release (schema ${found}), this one reads up to ${this.#schemaVersion}; install the newer release`
  }
}

function tooOld(found: number): string {
  return `the store of the cluster has schema ${found}; upgrade one release at a time`
}

/**
 * A mutex of all threads and processes that open an environment or write to it.
 *
 * A process that opens an environment reads the number of the last transaction from the meta pages
 * and writes it to the lock file, without the write lock (lmdb-js 3.5.6, mdb_env_open2; LMDB
 * corrected it in 2021, ITS#9496). If another process committed in between, the next transaction
 * would begin before that commit, and remove it.
 *
 * The mutex is the write lock of a second environment, which stays empty. The kernel says when its
 * holder was killed (robust mutex, pthread_mutexattr_setrobust(3)).
 */
class ProcessMutex {
  readonly #environment: RootDatabase | undefined
  #isHeld = false

  /** @param readOnly whether the caller only reads: without the mutex where it cannot create it */
  constructor(path: string, readOnly: boolean) {
    const file = join(path, MUTEX_FILE)
    // No program writes on a read-only file system, or has written before the mutex was created.
    if (readOnly && !isWritable(existsSync(file) ? file : path)) return
    this.#environment = open({ path: file, noSubdir: true })
  }

  /** Runs `work`, which may call this again, while no other thread or process runs any. */
  run<T>(work: () => T): T {
    if (this.#environment === undefined || this.#isHeld) return work()
    this.#isHeld = true
    try {
      // A transaction without writes commits nothing.
      return this.#environment.transactionSync(work)
    } finally {
      this.#isHeld = false
    }
  }

  async close(): Promise<void> {
    await this.#environment?.close()
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
    return true
  } catch {
    return false
  }
}
