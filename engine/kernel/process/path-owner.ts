import { lstatSync, mkdirSync, readlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Fault } from './error-codes.ts'

export interface Owner {
  readonly uid: number
  readonly gid: number
}

/** Links in one path (path_resolution(7)). */
const LINKS_MAX = 40
const OWN_FILES = new RegExp(`^/proc/${process.pid}/fd$`)
const OTHERS_WRITE = 0o022
/** In such a directory, only the owner of a file may rename it (inode(7)). */
const STICKY = 0o1000

export interface PathOptions {
  /** The path is a directory whose files this program uses: no other user may replace them. */
  readonly isUsed?: boolean
  /** The path is only read. The caller checks what it has opened where isShared is true. */
  readonly isRead?: boolean
  /** Create a directory that is missing in one where others can create files, such as /tmp. */
  readonly create?: boolean
}

export interface PathControl {
  readonly owner: Owner | undefined
  /** Where the links of root lead. */
  readonly place: string
  /** Users other than root can create files in a directory on the path. */
  readonly isShared: boolean
}

/** See controlOf(). */
export function ownerOf(setting: string, path: string, options?: PathOptions): Owner | undefined {
  return controlOf(setting, path, options).owner
}

/**
 * Who controls a path: the first user other than root who owns a component of the path, or a link
 * on it. undefined: root does, or this process is not root. Only links of root are followed.
 *
 * @param setting names the path in errors
 * @throws Fault STORE_UNWRITABLE if users other than root can replace a component of root, or the
 *   files of a directory that is used
 */
export function controlOf(setting: string, path: string, options: PathOptions = {}): PathControl {
  const { create = false, isUsed = false, isRead = false } = options
  const parts = partsOf(resolve(path))
  let here = '/'
  let isShared = false
  const found = (owner?: Owner): PathControl => ({ owner, place: here, isShared })
  if (process.geteuid?.() !== 0) return found()
  for (let links = 0; parts.length > 0; ) {
    // A link there leads to a file that this process has open, such as /dev/stdin.
    if (OWN_FILES.test(here)) return found()
    const isOpen = isRead ? othersWrite(here) : isOpenToOthers(setting, here)
    isShared ||= isOpen
    const next = join(here, parts.shift() as string)
    // Otherwise, another user could create it before this process does.
    if (isOpen && create) makeUnlessExists(next)
    const status = lstatSync(next, { throwIfNoEntry: false })
    if (status === undefined) {
      if (!isOpen || isRead) return found()
      throw new Fault('STORE_UNWRITABLE', `${setting} ${path}: ${next} does not exist; create it first`)
    }
    if (status.uid !== 0) return found(status)
    if (!status.isSymbolicLink()) {
      here = next
      if (!status.isDirectory()) return found()
    } else if (++links <= LINKS_MAX) {
      const target = readlinkSync(next)
      parts.unshift(...partsOf(target))
      if (target.startsWith('/')) here = '/'
    } else {
      throw new Fault('STORE_UNWRITABLE', `${setting} ${path}: more than ${LINKS_MAX} symbolic links`)
    }
  }
  if (isUsed && isOpenToOthers(setting, here)) throw replaceable(setting, here)
  return found()
}

function makeUnlessExists(directory: string): void {
  try {
    mkdirSync(directory, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '')
}

/** Whether other users can create files in this directory of root. */
function isOpenToOthers(setting: string, directory: string): boolean {
  if (!othersWrite(directory)) return false
  if ((lstatSync(directory).mode & STICKY) !== 0) return true
  throw replaceable(setting, directory)
}

function othersWrite(directory: string): boolean {
  return (lstatSync(directory).mode & OTHERS_WRITE) !== 0
}

function replaceable(setting: string, directory: string): Fault {
  const fix = 'run this as the user of the service or collector, or name another path'
  return new Fault('STORE_UNWRITABLE', `${setting}: other users can replace what root uses in ${directory}; ${fix}`)
}
