import { closeSync, existsSync, fstatSync, openSync, type StatsFs, statfsSync, statSync, writeSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { Fault } from '../process/error-codes.ts'
import { DATA_FILE } from './file-access.ts'

export interface SpaceOptions {
  /** The setting that names the directory, for error messages: `--data-dir`. */
  readonly setting: string
  /** Writes are refused, as backpressure, while the file system has fewer free bytes than this. */
  readonly freeBytesMin: number
  /**
   * The part of `freeBytesMin` that a removing transaction needs, unless twice as many bytes in the
   * file are unused: LMDB writes changed pages to new places before it frees the old ones. Larger
   * than the largest such transaction.
   */
  readonly shrinkBytesMin?: number
  /** The file never grows. */
  readonly readOnly?: boolean
}

/** The disk space of an environment, in bytes. */
export interface EnvironmentSpace {
  readonly fileBytes: number
  /** Bytes of the file without data, which are used before the file grows. */
  readonly unusedBytes: number
  readonly diskFreeBytes: number
  /** Writes are refused below this sum of unused and free bytes. */
  readonly freeBytesMin: number
}

/** MDB_stat of one tree, by the names of lmdb-js. */
export interface TreeStats {
  readonly entryCount: number
  readonly treeBranchPageCount: number
  readonly treeLeafPageCount: number
  readonly overflowPages: number
}
/** Added by lmdb-js for the environment: its own two trees and its size. */
interface RootStats {
  readonly root: TreeStats
  readonly free: TreeStats
  readonly lastPageNumber: number
  readonly pageSize: number
}
/** An LMDB tree. The library does not type the result of getStats(). */
interface Tree {
  getStats(): unknown
}

const META_PAGES = 2
/** A measurement costs system calls, and writers ask far more often than the result changes. */
const FREE_SPACE_RECHECK_MS = 1000
/**
 * The file is kept AHEAD_BYTES longer than its data. A transaction needs at least AHEAD_BYTES_MIN
 * of them. One that only removes may use the rest.
 */
const AHEAD_BYTES = 4 * 1024 * 1024
export const AHEAD_BYTES_MIN = AHEAD_BYTES / 2
export const SHRINK_AHEAD_BYTES_MIN = 512 * 1024
const ZEROS = new Uint8Array(64 * 1024)

/**
 * Checks the space of an environment: on the file system, within its file, and at the end of its
 * file.
 */
export class FreeSpace {
  readonly #path: string
  readonly #setting: string
  readonly #freeBytesMin: number
  readonly #shrinkBytesMin: number
  readonly #root: Tree
  readonly #tables: ReadonlyMap<string, Tree>
  /**
   * Kept open: later the path may refer to another file, or permissions may be missing. undefined:
   * read-only.
   */
  #file: number | undefined
  #checkedAtMs = 0
  #freeBytes = Number.POSITIVE_INFINITY
  #hasAhead = true

  /**
   * @param root the open environment
   * @param tables its open tables, which may grow
   */
  constructor(path: string, options: SpaceOptions, root: Tree, tables: ReadonlyMap<string, Tree>) {
    this.#path = path
    this.#setting = options.setting
    this.#freeBytesMin = options.freeBytesMin
    this.#shrinkBytesMin = options.shrinkBytesMin ?? 0
    this.#root = root
    this.#tables = tables
    this.#file = options.readOnly ? undefined : openSync(join(path, DATA_FILE), 'r+')
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
  }

  /** @throws Fault STORE_UNWRITABLE if the directory was removed. */
  report(): EnvironmentSpace {
    return {
      fileBytes: this.#fileBytes(),
      unusedBytes: this.#unusedBytes(),
      diskFreeBytes: this.#diskFreeBytes(),
      freeBytesMin: this.#freeBytesMin,
    }
  }

  /** The bytes of a table in the file: whole pages. */
  bytesOf(table: Tree): number {
    return pagesOf(table.getStats() as TreeStats) * this.#stats().pageSize
  }

  /** Whether a write would be refused. */
  get full(): boolean {
    this.#measure()
    return this.#freeBytes < this.#freeBytesMin || !this.#hasAhead
  }

  /** @throws Fault STORE_FULL. */
  assertForWrite(): void {
    if (!this.full) return
    if (!this.#hasAhead) throw this.#noSpace()
    const found = `${megabytes(this.#freeBytes)} MB free, expected at least ${megabytes(this.#freeBytesMin)} MB`
    throw new Fault('STORE_FULL', `${this.#setting} ${this.#path}: ${found}; free some space`)
  }

  /** @throws Fault STORE_FULL. */
  assertForShrink(): void {
    if (!this.fitsShrink(0)) throw this.#noSpace()
  }

  /** Whether a removing transaction may also write `bytes`, while other writes are refused. */
  fitsShrink(bytes: number): boolean {
    const needed = this.#shrinkBytesMin + bytes
    return this.#diskFreeBytes() >= needed || this.#unusedBytes() >= 2 * needed
  }

  /**
   * Extends the file before LMDB needs to, by writing, so that the file system has allocated the
   * space. If LMDB cannot write a page, its binding formats the error into a buffer of 100 bytes,
   * which is too short and corrupts memory. Call in a transaction, while nothing else can write to
   * the file.
   *
   * @throws Fault STORE_FULL if the file is not `bytesMin` longer than its data
   */
  keepAhead(bytesMin: number): void {
    if (this.#file === undefined) return
    const size = fstatSync(this.#file).size
    const end = this.#endOfPages()
    if (size - end < AHEAD_BYTES_MIN && extend(this.#file, size, end + AHEAD_BYTES) - end < bytesMin) {
      // Valid until the next measurement, even if the file system reports free space, which ignores
      // quotas.
      this.#hasAhead = false
      this.#checkedAtMs = Date.now()
      throw this.#noSpace()
    }
  }

  /**
   * Returns a Fault STORE_FULL if the error means that a transaction ran out of space, else
   * undefined.
   */
  faultOf(error: unknown): Fault | undefined {
    this.#checkedAtMs = 0
    return isNoSpace(error) || (existsSync(this.#path) && this.full) ? this.#noSpace(error) : undefined
  }

  #noSpace(cause?: unknown): Fault {
    return new Fault('STORE_FULL', `${this.#setting} ${this.#path}: no space left; free some space`, { cause })
  }

  #measure(): void {
    const nowMs = Date.now()
    if (Math.abs(nowMs - this.#checkedAtMs) < FREE_SPACE_RECHECK_MS) return
    const diskFreeBytes = this.#diskFreeBytes()
    this.#freeBytes = diskFreeBytes + this.#unusedBytes()
    this.#hasAhead = this.#fileBytes() - this.#endOfPages() + diskFreeBytes >= AHEAD_BYTES_MIN
    this.#checkedAtMs = nowMs
  }

  #stats(): RootStats {
    return this.#root.getStats() as RootStats
  }

  #fileBytes(): number {
    return this.#file === undefined ? statSync(join(this.#path, DATA_FILE)).size : fstatSync(this.#file).size
  }

  /** @throws Fault STORE_UNWRITABLE if the directory was removed. */
  #diskFreeBytes(): number {
    let disk: StatsFs
    try {
      disk = statfsSync(this.#path)
    } catch (error) {
      throw new Fault('STORE_UNWRITABLE', `${this.#setting} ${this.#path}: the directory was removed`, { cause: error })
    }
    return disk.bavail * disk.bsize
  }

  /** The end of the last page ever used. */
  #endOfPages(): number {
    const { lastPageNumber, pageSize } = this.#stats()
    return (lastPageNumber + 1) * pageSize
  }

  /** LMDB's file never shrinks: data that was removed leaves unused pages. */
  #unusedBytes(): number {
    const { root, free, pageSize } = this.#stats()
    const trees = [root, free, ...Array.from(this.#tables.values(), (table) => table.getStats() as TreeStats)]
    const usedBytes = trees.reduce((sum, tree) => sum + pagesOf(tree), META_PAGES) * pageSize
    return Math.max(0, Math.max(this.#fileBytes(), this.#endOfPages()) - usedBytes)
  }
}

function pagesOf({ treeBranchPageCount, treeLeafPageCount, overflowPages }: TreeStats): number {
  return treeBranchPageCount + treeLeafPageCount + overflowPages
}

/**
 * Writes zeros from the file's end to `length`, or until the disk is full. Returns the new length.
 */
function extend(file: number, size: number, length: number): number {
  let at = size
  try {
    while (at < length) at += writeSync(file, ZEROS, 0, Math.min(ZEROS.length, length - at), at)
  } catch (error) {
    if (!isNoSpace(error)) throw error
  }
  return at
}

/** LMDB reports the error number, Node its name. */
function isNoSpace(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown }
  if (code === 'EDQUOT' || code === constants.errno.EDQUOT) return true
  return code === constants.errno.ENOSPC || /no space left/i.test(String(message))
}

function megabytes(bytes: number): number {
  return Math.floor(bytes / 1e6)
}
