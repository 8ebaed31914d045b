import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { refuseRootElsewhere } from '../process/become-user.ts'
import { makeDirectory, syncDirectory } from '../process/directory.ts'
import { Fault } from '../process/error-codes.ts'
import { systemErrorText } from '../process/failure.ts'
import { ownUserText, userText } from '../process/ownership.ts'

/** The data file of an environment. */
export const DATA_FILE = 'data.mdb'
/** LMDB's reader table and write lock. Created by the first process that opens the environment. */
const LOCK_FILE = 'lock.mdb'
/** The empty environment of the process mutex, which is not in a directory of its own. */
export const MUTEX_FILE = 'mutex.mdb'
const MUTEX_LOCK_FILE = `${MUTEX_FILE}-lock`
export const ENVIRONMENT_FILES = [DATA_FILE, LOCK_FILE, MUTEX_FILE, MUTEX_LOCK_FILE] as const
/**
 * mdb.c of lmdb-js: MDB_MAGIC, in the machine's byte order, follows the 24-byte header of the meta
 * page.
 */
const META_MAGIC_OFFSET = 24
const META_MAGIC = 0xbeefc0de
const READ_AND_WRITE = constants.R_OK | constants.W_OK

export interface AccessOptions {
  /** The setting that names the directory, for error messages: `--data-dir`. */
  readonly setting: string
  /** Do not create an environment. For tools that change an existing one. */
  readonly mustExist?: boolean
  /** For tools that read the environment of a running program. It must exist. */
  readonly readOnly?: boolean
}

/** Whether the directory contains an environment that this user can see. */
export function environmentExists(path: string): boolean {
  return existsSync(join(path, DATA_FILE))
}

/**
 * Checks and prepares the directory and the files of an environment. LMDB would crash the process
 * with SIGSEGV on a foreign file or one that it cannot open.
 *
 * @throws Fault NOT_FOUND, STORE_UNWRITABLE; STORE_DAMAGED for a file that is not LMDB's
 */
export function prepareFiles(path: string, options: AccessOptions): void {
  if (options.mustExist || options.readOnly) refuseRootElsewhere(options.setting, path)
  if ((options.mustExist || options.readOnly) && !environmentExists(path)) {
    throw new Fault('NOT_FOUND', `${options.setting}: ${whyMissing(path)}`)
  }
  if (!options.readOnly) makeWritableDirectory(path, options.setting)
  refuseForbiddenFiles(path, options)
  refuseForeignFile(join(path, DATA_FILE), options.setting, 'restore a backup, or name another directory')
  refuseForeignFile(join(path, MUTEX_FILE), options.setting, 'stop the programs that use it, and remove it')
}

/** Creates the directory and its missing parents. @throws Fault STORE_UNWRITABLE. */
export function makeWritableDirectory(path: string, setting: string): void {
  refuseRootElsewhere(setting, path, { create: true })
  try {
    makeDirectory(path)
    assertAccess(path, constants.R_OK | constants.W_OK | constants.X_OK)
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
      return 'it cannot be created here'
    case 'ENOSPC':
      return 'no space left'
    default:
      return error.message
  }
}

function whyMissing(path: string): string {
  const missing = `no store in ${path}; name the directory that the program uses`
  try {
    accessSync(dirname(path), constants.X_OK)
    if (existsSync(path)) accessSync(path, constants.R_OK | constants.X_OK)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // ENOENT: a parent directory is missing, so permissions are not the problem.
    if (code === 'ENOENT') return missing
    return `no permission to read ${path}; run this as its owner, or as root`
  }
  return missing
}

/** The first page identifies an LMDB file. */
function refuseForeignFile(file: string, setting: string, remedy: string): void {
  if (!existsSync(file)) return
  const head = Buffer.alloc(META_MAGIC_OFFSET + 4)
  const descriptor = openSync(file, 'r')
  try {
    const bytes = readSync(descriptor, head, 0, head.length, 0)
    // An empty file is an environment without a committed transaction.
    if (bytes === 0 || head.readUInt32LE(META_MAGIC_OFFSET) === META_MAGIC) return
  } finally {
    closeSync(descriptor)
  }
  throw new Fault('STORE_DAMAGED', `${setting} ${file}: not an LMDB file; ${remedy}`)
}

/** @throws Fault STORE_UNWRITABLE that names the owner of the file */
function refuseForbiddenFiles(path: string, options: AccessOptions): void {
  const data = join(path, DATA_FILE)
  const lock = join(path, LOCK_FILE)
  const asOwner = (owner: string) => `run this as ${owner}, or as root`
  refuseForbidden(data, options.readOnly === true ? constants.R_OK : READ_AND_WRITE, asOwner, options)
  if (!existsSync(lock) && existsSync(data)) refuseForbidden(path, READ_AND_WRITE, asOwner, options)
  // Readers also write to the lock files.
  for (const name of [LOCK_FILE, MUTEX_FILE, MUTEX_LOCK_FILE]) {
    const file = join(path, name)
    const asData = (owner: string) =>
      `${asOwner(owner)}, or give it to the store's owner: chown --reference=${data} ${file}`
    refuseForbidden(file, READ_AND_WRITE, asData, options)
  }
}

function refuseForbidden(
  file: string,
  mode: number,
  remedy: (owner: string) => string,
  { setting, readOnly }: AccessOptions,
): void {
  const status = statSync(file, { throwIfNoEntry: false })
  if (status === undefined) return
  try {
    assertAccess(file, mode)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // Nobody can write to a read-only file system, so a reader needs no lock.
    if (readOnly && code === 'EROFS') return
    const owner = userText(status.uid)
    const may = mode === constants.R_OK ? 'read it' : 'read and write it'
    const found = code === 'EACCES' ? `belongs to ${owner}, ${ownUserText()} may not ${may}` : systemErrorText(error)
    throw new Fault('STORE_UNWRITABLE', `${setting}: ${file} ${found}; ${remedy(owner)}`, { cause: error })
  }
}

/**
 * access(2) checks the real user, but files are opened with the rights of the effective one.
 *
 * @throws Error with a code
 */
export function assertAccess(path: string, mode: number): void {
  accessSync(path, mode)
  const [uid, gid] = [process.geteuid?.(), process.getegid?.()]
  if (uid === process.getuid?.()) return
  const status = statSync(path)
  const shift = status.uid === uid ? 6 : status.gid === gid ? 3 : 0
  if (((status.mode >> shift) & mode) !== mode) throw Object.assign(new Error('permission denied'), { code: 'EACCES' })
}

/**
 * Replaces the data file of an environment that no process has open, in one rename. At each instant
 * either file is complete.
 *
 * @param data the new data file, on the same file system
 * @param keptAs a new directory for the replaced data file. undefined: it is removed.
 * @returns whether there was a data file
 */
export function replaceEnvironment(data: string, place: string, keptAs: string | undefined): boolean {
  const current = join(place, DATA_FILE)
  const isReplaced = existsSync(current)
  if (isReplaced && keptAs !== undefined) {
    mkdirSync(keptAs, { mode: 0o700 })
    // A hard link to the old file, so that the rename below can atomically replace it.
    linkSync(current, join(keptAs, DATA_FILE))
    syncDirectory(keptAs)
  }
  renameSync(data, current)
  // The lock file lists readers of the old file. LMDB creates a new one.
  rmSync(join(place, LOCK_FILE), { force: true })
  syncDirectory(place)
  return isReplaced
}
