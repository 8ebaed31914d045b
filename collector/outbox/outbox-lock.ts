import { randomBytes } from 'node:crypto'
import { closeSync, linkSync, lstatSync, openSync, renameSync, unlinkSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { setTimeout as later } from 'node:timers/promises'
import { Fault } from '../../engine/process/error-codes.ts'
import { OUTBOX_IN_MEMORY } from './outbox-limits.ts'

/** The file in the outbox's directory on which the collector listens that runs on it. */
export const LOCK_PREFIX = 'in-use.'
const LOCK_FILE = `${LOCK_PREFIX}sock`

interface Held {
  readonly server: Server
  /** Descriptor of the directory. */
  readonly directory: number
  readonly path: string
  readonly inode: number | undefined
}

/** So long two that start in the same instant may need to see each other, in milliseconds. */
const SETTLE_MS = 50

/**
 * Keeps a second collector off the outbox: they would send each other's open events, and each would miss what the other took away. A Unix socket,
 * because the kernel ends it with its process, however that ends, and it is seen from other containers on the same volume.
 */
export class OutboxLock {
  readonly #held: Held | undefined

  private constructor(held?: Held) {
    this.#held = held
  }

  /** @throws Fault STORE_IN_USE */
  static async take(outbox: string): Promise<OutboxLock> {
    if (outbox === OUTBOX_IN_MEMORY) return new OutboxLock()
    const directory = openSync(outbox, 'r')
    // The path of a socket has 107 bytes at most (unix(7)).
    const folder = `/proc/self/fd/${directory}`
    const path = `${folder}/${LOCK_FILE}`
    // Node removes the name that it listens on; so that one is nobody else's.
    const own = `${folder}/${LOCK_PREFIX}${randomBytes(6).toString('hex')}.sock`
    let server: Server | undefined
    try {
      server = await listen(own)
      const inode = inodeOf(own)
      if (!takeName(own, path)) {
        const stale = inodeOf(path)
        if ((await answers(path)) || inodeOf(path) !== stale) throw inUse(outbox)
        // Whose it was ended without removing it.
        renameSync(own, path)
      }
      // Another one may have found it stale in the same instant.
      await later(SETTLE_MS)
      if (inodeOf(path) !== inode) throw inUse(outbox)
      // It keeps no program alive.
      server.unref()
      return new OutboxLock({ server, directory, path, inode })
    } catch (error) {
      server?.close()
      closeSync(directory)
      // A file system without sockets, as those of other systems are, has no such lock.
      if (!(error instanceof Fault) && NO_SOCKETS.has((error as NodeJS.ErrnoException).code ?? ''))
        return new OutboxLock()
      throw error
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

function inUse(outbox: string): Fault {
  return new Fault(
    'STORE_IN_USE',
    `--outbox ${outbox}: another collector runs on it; stop that one, or name another directory`,
  )
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
