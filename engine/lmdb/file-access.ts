import { accessSync, closeSync, constants, existsSync, openSync, readSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Fault } from '../process/error-codes.ts'
import { makeDirectory } from '../process/make-directory.ts'
import { makeFileOf, otherOwner, ownUserText, userText } from '../process/ownership.ts'

/** The file of an environment, in its directory. */
export const DATA_FILE = 'data.mdb'
/** LMDB's table of readers and its write lock. Whoever opens the environment first creates it. */
export const LOCK_FILE = 'lock.mdb'
/** mdb.c of lmdb-js: the header of the meta page has 24 bytes, then follows MDB_MAGIC in the machine's byte order. */
const META_MAGIC_OFFSET = 24
const META_MAGIC = 0xbeefc0de
const READ_AND_WRITE = constants.R_OK | constants.W_OK

export interface AccessOptions {
  /** The setting that names the directory, for error messages: `--data-dir`. */
  readonly setting: string
  /** Refuse to create an environment: for tools that change an existing one. */
  readonly mustExist?: boolean
  /** For tools that read the environment of a running program. It must exist. */
  readonly readOnly?: boolean
  /**
   * Who gives files that root creates to another user. 'by the opener': the caller does. Otherwise they get the owner
   * of the directory that they are created in.
   */
  readonly give?: 'by the opener'
}

/** Whether there is an environment in the directory, as far as this user can see. */
export function environmentExists(path: string): boolean {
  return existsSync(join(path, DATA_FILE))
}

/**
 * Prepares the directory and the files of an environment, so that LMDB can open them: it ends the process with SIGSEGV
 * where a file is not its own, or may not be opened.
 *
 * @throws Fault NOT_FOUND, STORE_UNWRITABLE, STORE_DAMAGED for a file that is not LMDB's.
 */
export function prepareFiles(path: string, options: AccessOptions): void {
  if ((options.mustExist || options.readOnly) && !environmentExists(path)) {
    throw new Fault('NOT_FOUND', `${options.setting}: ${whyMissing(path)}`)
  }
  if (!options.readOnly) makeWritableDirectory(path, options.setting, options)
  refuseForbiddenFiles(path, options)
  refuseForeignFile(join(path, DATA_FILE), options.setting)
  makeFilesOfOwner(path, options)
}

/** Creates the directory and missing ones above it. @throws Fault STORE_UNWRITABLE. */
export function makeWritableDirectory(path: string, setting: string, { give }: Pick<AccessOptions, 'give'> = {}): void {
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

function whyMissing(path: string): string {
  const missing = `there is no store in ${path}; name the directory that the program was started with`
  try {
    accessSync(dirname(path), constants.X_OK)
    if (existsSync(path)) accessSync(path, constants.R_OK | constants.X_OK)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // ENOENT: a directory above it is missing, and no permission.
    if (code === 'ENOENT') return missing
    return `no permission to look into ${path}; become the user whose it is, or root`
  }
  return missing
}

/** The first page of a file tells whether it is LMDB's. */
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

/** @throws Fault STORE_UNWRITABLE that names the owner of the file. */
function refuseForbiddenFiles(path: string, options: AccessOptions): void {
  const data = join(path, DATA_FILE)
  const lock = join(path, LOCK_FILE)
  const asOwner = (owner: string) => `run this as ${owner}, or as root`
  refuseForbidden(data, options.readOnly === true ? constants.R_OK : READ_AND_WRITE, asOwner, options)
  // Readers write to the lock file, too.
  const asData = (owner: string) =>
    `${asOwner(owner)}, or give it to whose the store is: chown --reference=${data} ${lock}`
  if (existsSync(lock)) refuseForbidden(lock, READ_AND_WRITE, asData, options)
  else if (existsSync(data)) refuseForbidden(path, READ_AND_WRITE, asOwner, options)
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
    accessSync(file, mode)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // On a read-only file system nobody writes, so a reader needs no lock.
    if (readOnly && code === 'EROFS') return
    const owner = userText(status.uid)
    const may = mode === constants.R_OK ? 'read it' : 'read and write it'
    const found = code === 'EACCES' ? `belongs to ${owner}, ${ownUserText()} may not ${may}` : (error as Error).message
    throw new Fault('STORE_UNWRITABLE', `${setting}: ${file} ${found}; ${remedy(owner)}`, { cause: error })
  }
}

/** Root may open the environment of another user first, and that user's program has to open it later. */
function makeFilesOfOwner(path: string, { give }: AccessOptions): void {
  const exists = environmentExists(path)
  if (!exists && give === 'by the opener') return
  const owner = otherOwner(exists ? join(path, DATA_FILE) : path)
  if (owner === undefined) return
  for (const name of [DATA_FILE, LOCK_FILE]) makeFileOf(owner, join(path, name))
}
