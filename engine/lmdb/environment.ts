import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readSync,
  type StatsFs,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs'
import { constants as osConstants } from 'node:os'
import { dirname, join } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import * as lmdb from 'lmdb'
import { type Database, open, type RootDatabase } from 'lmdb'
import { Fault } from '../process/error-codes.ts'
import { makeDirectory } from '../process/make-directory.ts'
import { makeFileOf, otherOwner, ownUserText, userText } from '../process/ownership.ts'
import { openRecord, sealRecord } from './record.ts'

/** What the library says of itself; its types leave that out. Only as a module: as CommonJS it would be there a second time. */
export const LMDB_VERSION = (lmdb as unknown as { readonly version: { readonly versionString: string } }).version
  .versionString

/** An LMDB table: keys and values are bytes. */
export type Table = Database<Buffer, Buffer>

export interface EnvironmentOptions {
  /** The setting that names the directory, for the error line: `--data-dir`. */
  readonly setting: string
  /** Highest schema version that this program understands. */
  readonly schemaVersion: number
  /** Writing stops, as back-pressure, while the file system has less free space than this. */
  readonly freeBytesMin: number
  /**
   * What work that only takes away needs of these, unless twice as many are unused within the file: it writes the pages that it changes anew before it gives the
   * old ones back. More than the largest such transaction writes.
   */
  readonly shrinkBytesMin?: number
  /** Refuse to make a new environment: for tools that change one that must be there. */
  readonly mustExist?: boolean
  /** 'by the owner': who opens it calls migrate() when its tables are there. Otherwise the new version is written at once. */
  readonly migrate?: 'by the owner'
  /** For tools that look into the environment of a running program. It must exist. */
  readonly readOnly?: boolean
  /** 'by the opener': who makes it as root gives it to another user itself. Otherwise root makes it for whose directory it is made in. */
  readonly give?: 'by the opener'
}

/** What an environment takes and may take, in bytes. */
export interface EnvironmentSpace {
  readonly fileBytes: number
  /** Of the file: what nothing stands in, and what is written before the file grows. */
  readonly unusedBytes: number
  readonly diskFreeBytes: number
  /** Writing stops below so many, of unused and free ones together. */
  readonly freeBytesMin: number
}

const TABLES_MAX = 64
/** Threads and programs that read at once, 64 bytes each: of the service 128 threads at most, and whatever commands run beside it. More are refused by LMDB. */
const READERS_MAX = 512
/** The file of an environment, in its directory. */
export const DATA_FILE = 'data.mdb'
/** Beside it: who reads and who writes. Made by who opens the environment first. */
export const LOCK_FILE = 'lock.mdb'
/** mdb.c of lmdb-js: the meta page's header has 24 bytes, then stands MDB_MAGIC in the machine's byte order. */
const META_MAGIC_OFFSET = 24
const META_MAGIC = 0xbeefc0de
const SCHEMA_KEY = Buffer.from('schema')
/** A free-space check costs a system call; writers ask far more often than the answer changes. */
const FREE_SPACE_RECHECK_MS = 1000
/** Bytes by which the file is made longer than what stands in it, and what a transaction finds of them at least: one that only takes away may use up what others leave. */
const AHEAD_BYTES = 4 * 1024 * 1024
const AHEAD_BYTES_MIN = AHEAD_BYTES / 2
const SHRINK_AHEAD_BYTES_MIN = 512 * 1024
const ZEROS = new Uint8Array(64 * 1024)

/**
 * One LMDB environment in a directory of its own. Writes are transactions of one thread at a time; a transaction that
 * has returned is flushed to disk (LMDB: MDB_NOSYNC is never set, and lmdb-js flushes synchronous transactions).
 */
export class Environment {
  readonly path: string
  readonly #root: RootDatabase<Buffer, Buffer>
  readonly #setting: string
  readonly #schemaVersion: number
  readonly #freeBytesMin: number
  readonly #shrinkBytesMin: number
  #hasTurnsSnapshot = false
  #turn = 0
  readonly #tables = new Map<string, Table>()
  /** LMDB's file, to make it longer: a path may come to lead elsewhere, and a right to open be given up. undefined where it is read only. */
  #file: number | undefined
  #freeCheckedAtMs = 0
  #freeBytes = Number.POSITIVE_INFINITY
  #hasAhead = true

  constructor(path: string, options: EnvironmentOptions) {
    this.path = path
    this.#setting = options.setting
    this.#freeBytesMin = options.freeBytesMin
    this.#shrinkBytesMin = options.shrinkBytesMin ?? 0
    const readOnly = options.readOnly ?? false
    if ((options.mustExist || readOnly) && !environmentExists(path)) {
      throw new Fault('NOT_FOUND', `${options.setting}: ${notThere(path)}`)
    }
    if (!readOnly) makeWritableDirectory(path, options.setting, options)
    refuseForbiddenFiles(path, options)
    refuseForeignFile(join(path, DATA_FILE), options.setting)
    makeFilesOfOwner(path, options)
    // Whom is told what names an organization asks for. A worker cannot say so, and never makes the files.
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
    this.#file = readOnly ? undefined : openSync(join(path, DATA_FILE), 'r+')
    this.#schemaVersion = options.schemaVersion
    this.#refuseNewerSchema()
    if (!readOnly && options.migrate === undefined) this.migrate()
  }

  /**
   * Brings what is stored up to this release's schema: `step` writes what version n has that the one before had not, for each n that is missing.
   * One transaction, so that it is done or not.
   *
   * @throws Fault STORE_FULL.
   */
  migrate(step: (version: number) => void = () => {}): void {
    if (this.#storedSchema() >= this.#schemaVersion) return
    this.write(() => {
      // Another thread or program may have been faster.
      for (let version = this.#storedSchema() + 1; version <= this.#schemaVersion; version++) step(version)
      this.#root.putSync(SCHEMA_KEY, sealRecord(1, Buffer.from([this.#schemaVersion])))
    })
  }

  table(name: string): Table {
    const table = this.tableIfThere(name)
    if (table === undefined) throw new Error(`${this.path}: no table ${name}, and it is open to be read only`)
    return table
  }

  /** The same for tools that only read: undefined where it was not made yet. */
  tableIfThere(name: string): Table | undefined {
    const known = this.#tables.get(name)
    if (known !== undefined) return known
    // Its type does not say so: what may not be made is undefined.
    const table: Table | undefined = this.#root.openDB({ name, keyEncoding: 'binary', encoding: 'binary' })
    if (table !== undefined) this.#tables.set(name, table)
    return table
  }

  /** The tables that were opened, by name. */
  get tables(): ReadonlyMap<string, Table> {
    return this.#tables
  }

  /** What a table takes of the file, in bytes: whole pages. */
  tableBytes(name: string): number {
    return pagesOf(this.table(name).getStats() as TreeStats) * (this.#root.getStats() as EnvironmentStats).pageSize
  }

  /** Records of a table, without counting them. */
  tableRecords(name: string): number {
    return (this.table(name).getStats() as TreeStats).entryCount
  }

  /** What the environment takes and may take, in bytes. @throws Fault STORE_UNWRITABLE where the directory was removed. */
  space(): EnvironmentSpace {
    const { bavail, bsize } = this.#fileSystem()
    return {
      fileBytes: this.#fileBytes(),
      unusedBytes: this.#unusedBytes(),
      diskFreeBytes: bavail * bsize,
      freeBytesMin: this.#freeBytesMin,
    }
  }

  /** The version of the schema that is stored. */
  get schemaVersion(): number {
    return this.#storedSchema()
  }

  /** Copies one snapshot, without the pages that nothing stands in, into an empty directory, while others write. */
  async copyInto(directory: string): Promise<void> {
    await this.#root.backup(directory, true)
  }

  /**
   * Runs `work` as one atomic transaction and returns when it is on disk. What `work` throws aborts it whole.
   *
   * @throws Fault STORE_FULL before anything is written, where the file system is short of space.
   */
  write<T>(work: () => T): T {
    this.#assertSpace()
    return this.#commit(work, AHEAD_BYTES_MIN)
  }

  /**
   * The same for work that only takes away: it may use what is held free for it, since LMDB needs new pages also to free old ones.
   *
   * @throws Fault STORE_FULL where not even that is left; nothing was done then.
   */
  shrink<T>(work: () => T): T {
    const { bavail, bsize } = this.#fileSystem()
    if (bavail * bsize < this.#shrinkBytesMin && this.#unusedBytes() < 2 * this.#shrinkBytesMin) throw this.#noSpace()
    return this.#commit(work, SHRINK_AHEAD_BYTES_MIN)
  }

  #commit<T>(work: () => T, aheadBytesMin: number): T {
    try {
      return this.#root.transactionSync(() => {
        this.#keepAhead(aheadBytesMin)
        return work()
      })
    } catch (error) {
      if (error instanceof Fault) throw error
      this.#freeCheckedAtMs = 0
      if (!isNoSpace(error) && !(existsSync(this.path) && this.full)) throw error
      throw this.#noSpace(error)
    }
  }

  /**
   * Makes the file longer before LMDB has to, with room that the file system has given: where a page of LMDB's finds none, its binding writes the reason into
   * 100 bytes, which are too few for it, and so damages the process's memory. Inside a transaction, so that nobody else writes there.
   *
   * @throws Fault STORE_FULL where the file is not `bytesMin` longer than what stands in it.
   */
  #keepAhead(bytesMin: number): void {
    if (this.#file === undefined) return
    const size = fstatSync(this.#file).size
    const end = this.#endOfPages()
    if (size - end < AHEAD_BYTES_MIN && extend(this.#file, size, end + AHEAD_BYTES) - end < bytesMin) {
      // For as long as nobody looks anew, whatever the file system says: a quota is not in what it tells.
      this.#hasAhead = false
      this.#freeCheckedAtMs = Date.now()
      throw this.#noSpace()
    }
  }

  /** Where the last page ends that anything stood in. */
  #endOfPages(): number {
    const { lastPageNumber, pageSize } = this.#root.getStats() as EnvironmentStats
    return (lastPageNumber + 1) * pageSize
  }

  #noSpace(cause?: unknown): Fault {
    return new Fault('STORE_FULL', `${this.#setting} ${this.path}: no space left; free some space`, { cause })
  }

  /** Runs `work` over one snapshot: all it reads is of the same instant, whatever is written meanwhile. Not for awaits. */
  read<T>(work: () => T): T {
    // All synchronous reads of one turn share lmdb-js's read transaction; starting it anew makes it the latest one.
    this.#root.resetReadTxn()
    return work()
  }

  /**
   * The same over a snapshot that all readers of one turn of the event loop share: it is of the turn's first reader, so no older than a turn is long.
   * Each new snapshot costs 2 us, which a thread that answers thousands of requests a second need not pay for each.
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

  /** Which snapshot readInTurn shows: another number is another one. */
  get turn(): number {
    return this.#turn
  }

  /** Whether writing would be refused for lack of space. */
  get full(): boolean {
    this.#measure()
    return this.#freeBytes < this.#freeBytesMin || !this.#hasAhead
  }

  async close(): Promise<void> {
    await this.#root.close()
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
  }

  #assertSpace(): void {
    if (!this.full) return
    if (!this.#hasAhead) throw this.#noSpace()
    throw new Fault(
      'STORE_FULL',
      `${this.#setting} ${this.path}: ${megabytes(this.#freeBytes)} MB free, expected at least ${megabytes(this.#freeBytesMin)} MB; free some space`,
    )
  }

  #measure(): void {
    const nowMs = Date.now()
    if (Math.abs(nowMs - this.#freeCheckedAtMs) < FREE_SPACE_RECHECK_MS) return
    const { bavail, bsize } = this.#fileSystem()
    this.#freeBytes = bavail * bsize + this.#unusedBytes()
    this.#hasAhead = this.#fileBytes() - this.#endOfPages() + bavail * bsize >= AHEAD_BYTES_MIN
    this.#freeCheckedAtMs = nowMs
  }

  #fileBytes(): number {
    return this.#file === undefined ? statSync(join(this.path, DATA_FILE)).size : fstatSync(this.#file).size
  }

  /** @throws Fault STORE_UNWRITABLE where the directory was removed. */
  #fileSystem(): StatsFs {
    try {
      return statfsSync(this.path)
    } catch (error) {
      throw new Fault('STORE_UNWRITABLE', `${this.#setting} ${this.path}: the directory is gone`, { cause: error })
    }
  }

  /** What nothing stands in of LMDB's file, which never shrinks: an environment that was full and was emptied has its space there. */
  #unusedBytes(): number {
    const { root, free, pageSize } = this.#root.getStats() as EnvironmentStats
    const trees = [root, free, ...Array.from(this.#tables.values(), (table) => table.getStats() as TreeStats)]
    const usedBytes = trees.reduce((sum, tree) => sum + pagesOf(tree), META_PAGES) * pageSize
    return Math.max(0, Math.max(this.#fileBytes(), this.#endOfPages()) - usedBytes)
  }

  /** 0: nothing was stored yet. */
  #storedSchema(): number {
    const stored = this.#root.get(SCHEMA_KEY)
    return stored === undefined ? 0 : (openRecord(stored, 1, `${this.path}: schema`)[0] ?? 0)
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

/** MDB_stat of one tree, as lmdb-js names its fields; of an environment those of its own trees besides. */
interface TreeStats {
  readonly entryCount: number
  readonly treeBranchPageCount: number
  readonly treeLeafPageCount: number
  readonly overflowPages: number
}
interface EnvironmentStats {
  readonly root: TreeStats
  readonly free: TreeStats
  readonly lastPageNumber: number
  readonly pageSize: number
}

const META_PAGES = 2

function pagesOf({ treeBranchPageCount, treeLeafPageCount, overflowPages }: TreeStats): number {
  return treeBranchPageCount + treeLeafPageCount + overflowPages
}

/** Writes zeros behind a file's end, up to a length, as far as there is space. Answers how long it is then. */
function extend(file: number, size: number, length: number): number {
  let at = size
  try {
    while (at < length) at += writeSync(file, ZEROS, 0, Math.min(ZEROS.length, length - at), at)
  } catch (error) {
    if (!isNoSpace(error)) throw error
  }
  return at
}

/** Whether there is an environment in the directory, as far as this user can see. */
export function environmentExists(path: string): boolean {
  return existsSync(join(path, DATA_FILE))
}

function notThere(path: string): string {
  try {
    accessSync(dirname(path), constants.X_OK)
    if (existsSync(path)) accessSync(path, constants.R_OK | constants.X_OK)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // Neither a directory nor a right is missing but what they would be for.
    if (code === 'ENOENT') return noStoreIn(path)
    return `no permission to look into ${path}; become the user whose it is, or root`
  }
  return noStoreIn(path)
}

function noStoreIn(path: string): string {
  return `there is no store in ${path}; name the directory that the program was started with`
}

/** LMDB reports the number of the system's error, Node its name. */
function isNoSpace(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown }
  if (code === 'EDQUOT' || code === osConstants.errno.EDQUOT) return true
  return code === osConstants.errno.ENOSPC || /no space left/i.test(String(message))
}

/** LMDB ends the process with SIGSEGV on a file that is none of its own; its first page says what it is. */
function refuseForeignFile(file: string, setting: string): void {
  if (!existsSync(file)) return
  const head = Buffer.alloc(META_MAGIC_OFFSET + 4)
  const descriptor = openSync(file, 'r')
  try {
    const bytes = readSync(descriptor, head, 0, head.length, 0)
    // An empty file is an environment whose first transaction was never written.
    if (bytes === 0 || head.readUInt32LE(META_MAGIC_OFFSET) === META_MAGIC) return
  } finally {
    closeSync(descriptor)
  }
  throw new Fault('STORE_DAMAGED', `${setting} ${file}: not an LMDB file; restore a backup, or name another directory`)
}

/**
 * LMDB ends the process with SIGSEGV where it may not open one of its files, too.
 *
 * @throws Fault STORE_UNWRITABLE that says whose the file is.
 */
function refuseForbiddenFiles(path: string, options: EnvironmentOptions): void {
  const data = join(path, DATA_FILE)
  const lock = join(path, LOCK_FILE)
  const asOwner = (owner: string) => `run this as ${owner}, or as root`
  refuseForbidden(data, options.readOnly === true ? constants.R_OK : READ_AND_WRITE, asOwner, options)
  // Who only reads writes there that it reads.
  const asData = (owner: string) =>
    `${asOwner(owner)}, or give it to whose the store is: chown --reference=${data} ${lock}`
  if (existsSync(lock)) refuseForbidden(lock, READ_AND_WRITE, asData, options)
  else if (existsSync(data)) refuseForbidden(path, READ_AND_WRITE, asOwner, options)
}

const READ_AND_WRITE = constants.R_OK | constants.W_OK

function refuseForbidden(
  file: string,
  mode: number,
  remedy: (owner: string) => string,
  { setting, readOnly }: EnvironmentOptions,
): void {
  const status = statSync(file, { throwIfNoEntry: false })
  if (status === undefined) return
  try {
    accessSync(file, mode)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // Where nobody can write, nobody needs to know who reads.
    if (readOnly && code === 'EROFS') return
    const owner = userText(status.uid)
    const may = mode === constants.R_OK ? 'read it' : 'read and write it'
    const found = code === 'EACCES' ? `belongs to ${owner}, ${ownUserText()} may not ${may}` : (error as Error).message
    throw new Fault('STORE_UNWRITABLE', `${setting}: ${file} ${found}; ${remedy(owner)}`, { cause: error })
  }
}

/** Root may be the first who opens the environment of another user, whose program has to open it afterwards. */
function makeFilesOfOwner(path: string, { give }: EnvironmentOptions): void {
  const isThere = environmentExists(path)
  if (!isThere && give === 'by the opener') return
  const owner = otherOwner(isThere ? join(path, DATA_FILE) : path)
  if (owner === undefined) return
  for (const name of [DATA_FILE, LOCK_FILE]) makeFileOf(owner, join(path, name))
}

function megabytes(bytes: number): number {
  return Math.floor(bytes / 1e6)
}

/** Makes the directory and those above it, where they are missing. @throws Fault STORE_UNWRITABLE. */
export function makeWritableDirectory(
  path: string,
  setting: string,
  { give }: Pick<EnvironmentOptions, 'give'> = {},
): void {
  try {
    makeDirectory(path, give === 'by the opener' ? undefined : otherOwner(path))
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    throw new Fault(
      'STORE_UNWRITABLE',
      `${setting} ${path}: ${reasonOf(error as NodeJS.ErrnoException)}; name a directory that this user may write`,
      { cause: error },
    )
  }
}

function reasonOf(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'EACCES':
    case 'EPERM':
      return 'no permission to write'
    case 'EROFS':
      return 'the file system is read-only'
    case 'ENOTDIR':
      return 'not a directory'
    case 'ENOENT':
      return 'it cannot be made here'
    case 'ENOSPC':
      return 'no space left'
    default:
      return error.message
  }
}
