import { randomBytes } from 'node:crypto'
import { closeSync, linkSync, lstatSync, openSync, renameSync, unlinkSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { setTimeout as later } from 'node:timers/promises'
import { giveSocket, type Owner } from './ownership.ts'

/** What the names of locks begin with, in the directories that they are of. */
export const LOCK_PREFIX = 'in-use.'

/** So long two that start in the same instant may need to see each other, in milliseconds. */
const SETTLE_MS = 50

interface Held {
  readonly server: Server
  /** Descriptor of the directory. */
  readonly directory: number
  readonly path: string
  readonly inode: number | undefined
}

/**
 * Says that this process alone does something in a directory. A Unix socket in it is the lock, because the kernel ends it with its process, however that
 * ends; it is seen from other containers on the same volume; and nobody can take it who may not write there.
 */
export class DirectoryLock {
  readonly #held: Held | undefined

  private constructor(held?: Held) {
    this.#held = held
  }

  /**
   * @param owner of the socket, for who is root: nobody else but root could ask whether it is held.
   * @returns undefined where another process has the lock of this name (of letters, digits and hyphens, or none).
   */
  static async take(directory: string, name = '', owner?: Owner): Promise<DirectoryLock | undefined> {
    const descriptor = openSync(directory, 'r')
    const path = pathOf(descriptor, name)
    // Node removes the name that it listens on; so that one is nobody else's.
    const own = pathOf(descriptor, randomBytes(6).toString('hex'))
    let server: Server | undefined
    const lost = (): undefined => {
      server?.close()
      closeSync(descriptor)
    }
    try {
      server = await listen(own)
      if (owner !== undefined) giveSocket(owner, own)
      const inode = inodeOf(own)
      if (!takeName(own, path)) {
        const stale = inodeOf(path)
        if ((await answers(path)) || inodeOf(path) !== stale) return lost()
        // Whose it was ended without removing it.
        renameSync(own, path)
      }
      // Another one may have found it stale in the same instant.
      await later(SETTLE_MS)
      if (inodeOf(path) !== inode) return lost()
      // It keeps no program alive.
      server.unref()
      return new DirectoryLock({ server, directory: descriptor, path, inode })
    } catch (error) {
      lost()
      // A file system without sockets, as those of other systems are, has no such lock.
      if (NO_SOCKETS.has((error as NodeJS.ErrnoException).code ?? '')) return new DirectoryLock()
      throw error
    }
  }

  /** Whether a process has the lock. */
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
      // Who gave up root may not: it stays behind, and nobody answers there.
    }
    await new Promise((resolve) => server.close(resolve))
    closeSync(directory)
  }
}

/** By the directory's descriptor, since the path of a socket has 107 bytes at most (unix(7)). */
function pathOf(descriptor: number, name: string): string {
  return `/proc/self/fd/${descriptor}/${LOCK_PREFIX}${name === '' ? '' : `${name}.`}sock`
}

/** Gives the socket the name that all know; false where it is given. */
function takeName(own: string, path: string): boolean {
  try {
    linkSync(own, path)
    unlinkSync(own)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
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
