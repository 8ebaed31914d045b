import { randomBytes } from 'node:crypto'
import { closeSync, fstatSync, linkSync, lstatSync, openSync, renameSync, unlinkSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { setTimeout as later } from 'node:timers/promises'
import { chownSocket, type Owner } from './ownership.ts'

/** Prefix of the names of lock files. */
export const LOCK_PREFIX = 'in-use.'

/**
 * Milliseconds in which a process that has found a stale lock replaces it. A longer pause between
 * the two steps could give the lock to two processes.
 */
const SETTLE_MS = 50

/** Opens any kind of file without permission to read it (open(2)); Node has no constant. */
const O_PATH = 0o10000000

interface Held {
  readonly server: Server
  /** Descriptor of the directory. */
  readonly directory: number
  readonly path: string
  readonly inode: number | undefined
}

/**
 * A named lock on a directory, held by one process. The lock is a Unix socket in the directory: the
 * kernel closes it when the process ends, however it ends; other containers on the same volume see
 * it; and only users with write access to the directory can take it.
 */
export class DirectoryLock {
  readonly #held: Held | undefined

  private constructor(held?: Held) {
    this.#held = held
  }

  /**
   * @param name letters, digits and hyphens, or empty
   * @param owner of the socket if this process is root, so that this user can check the lock, too
   * @returns undefined if another process has the lock
   */
  static async take(directory: string, name = '', owner?: Owner): Promise<DirectoryLock | undefined> {
    const descriptor = openSync(directory, 'r')
    const path = pathOf(descriptor, name)
    // Node removes the socket name that it listens on, so that name must be unique.
    const own = pathOf(descriptor, randomBytes(6).toString('hex'))
    let server: Server | undefined
    const abandon = (): undefined => {
      server?.close()
      closeSync(descriptor)
    }
    try {
      server = await listen(own)
      if (owner !== undefined) chownSocket(owner, own)
      const inode = inodeOf(own)
      // A new name needs no wait. Only a process that found a stale lock could replace it, and the
      // stale lock must have been replaced, held and released since. That takes over SETTLE_MS.
      if (!claimName(own, path)) {
        if (!(await replaceStale(own, path))) return abandon()
        // Other processes may have found the same stale lock. The last to replace it has the lock.
        await later(SETTLE_MS)
        if (inodeOf(path) !== inode) return abandon()
      }
      // The lock must not keep the process running.
      server.unref()
      return new DirectoryLock({ server, directory: descriptor, path, inode })
    } catch (error) {
      abandon()
      // Some file systems, such as those of other operating systems, support no sockets and
      // therefore no lock.
      if (NO_SOCKETS.has((error as NodeJS.ErrnoException).code ?? '')) return new DirectoryLock()
      throw error
    }
  }

  /** Whether a process holds the lock. */
  static async isTaken(directory: string, name = ''): Promise<boolean> {
    const descriptor = openSync(directory, 'r')
    try {
      return await answers(pathOf(descriptor, name))
    } finally {
      closeSync(descriptor)
    }
  }

  async release(): Promise<void> {
    if (this.#held === undefined) return
    const { server, directory, path, inode } = this.#held
    try {
      if (inodeOf(path) === inode) unlinkSync(path)
    } catch {
      // After dropping root, the process may lack the permission. A remaining socket is harmless:
      // nothing accepts connections on it.
    }
    await new Promise((resolve) => server.close(resolve))
    closeSync(directory)
  }
}

/** Via the directory's descriptor, since the path of a socket has at most 107 bytes (unix(7)). */
function pathOf(descriptor: number, name: string): string {
  return `/proc/self/fd/${descriptor}/${LOCK_PREFIX}${name === '' ? '' : `${name}.`}sock`
}

/** Links the socket to the lock's name. Returns false if the name is taken. */
function claimName(own: string, path: string): boolean {
  try {
    linkSync(own, path)
    unlinkSync(own)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/**
 * Renames the socket to the lock's name if the previous holder ended without removing its own.
 * Returns false if the lock has a holder or was released at this moment.
 */
async function replaceStale(own: string, path: string): Promise<boolean> {
  let found: number
  try {
    found = openSync(path, O_PATH)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
  try {
    // While it is open, no new socket can have its inode number.
    const { ino } = fstatSync(found)
    if ((await answers(`/proc/self/fd/${found}`)) || inodeOf(path) !== ino) return false
    renameSync(own, path)
    return true
  } finally {
    closeSync(found)
  }
}

const NO_SOCKETS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSPC', 'EROFS', 'EINVAL'])

function listen(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', reject)
    server.listen(path, () => resolve(server))
  })
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    const end = (answered: boolean) => () => {
      socket.destroy()
      resolve(answered)
    }
    socket.once('connect', end(true)).once('error', end(false))
  })
}

function inodeOf(path: string): number | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.ino
}
