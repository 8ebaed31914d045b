import { closeSync, lstatSync, openSync, unlinkSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { setTimeout as later } from 'node:timers/promises'
import { Fault } from '../../engine/process/error-codes.ts'
import { OUTBOX_IN_MEMORY } from './outbox-limits.ts'

/** The file in the outbox's directory on which the collector listens that runs on it. */
export const LOCK_FILE = 'in-use.sock'

/** So long two that start in the same instant may need to see each other, in milliseconds. */
const SETTLE_MS = 50

/**
 * Keeps a second collector off the outbox: they would send each other's open events, and each would miss what the other took away. A Unix socket,
 * because the kernel ends it with its process, however that ends, and it is seen from other containers on the same volume.
 */
export class OutboxLock {
  readonly #server: Server | undefined
  readonly #directory: number | undefined

  private constructor(server?: Server, directory?: number) {
    this.#server = server
    this.#directory = directory
  }

  /** @throws Fault STORE_IN_USE */
  static async take(outbox: string): Promise<OutboxLock> {
    if (outbox === OUTBOX_IN_MEMORY) return new OutboxLock()
    const directory = openSync(outbox, 'r')
    // The path of a socket has 107 bytes at most (unix(7)).
    const path = `/proc/self/fd/${directory}/${LOCK_FILE}`
    const inUse = (): Fault =>
      new Fault(
        'STORE_IN_USE',
        `--outbox ${outbox}: another collector runs on it; stop that one, or name another directory`,
      )
    try {
      let server = await listen(path)
      if (server === 'taken') {
        if (await answers(path)) throw inUse()
        // Whose it was ended without removing it.
        removeIfThere(path)
        server = await listen(path)
      }
      if (server === 'taken') throw inUse()
      const file = inodeOf(path)
      await later(SETTLE_MS)
      if (inodeOf(path) !== file) {
        server.close()
        throw inUse()
      }
      // It keeps no program alive.
      server.unref()
      return new OutboxLock(server, directory)
    } catch (error) {
      closeSync(directory)
      // A file system without sockets, as those of other systems are, has no such lock.
      if (!(error instanceof Fault) && NO_SOCKETS.has((error as NodeJS.ErrnoException).code ?? ''))
        return new OutboxLock()
      throw error
    }
  }

  async release(): Promise<void> {
    const server = this.#server
    if (server === undefined) return
    // Node removes the file, too.
    await new Promise((resolve) => server.close(resolve))
    if (this.#directory !== undefined) closeSync(this.#directory)
  }
}

const NO_SOCKETS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSPC', 'EROFS', 'EINVAL'])

function listen(path: string): Promise<Server | 'taken'> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve('taken') : reject(error),
    )
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

function removeIfThere(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

function inodeOf(path: string): number | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.ino
}
