import { randomBytes } from 'node:crypto'
import { closeSync, linkSync, openSync, readdirSync, unlinkSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'

/** Prefix of the names of lock files. */
export const LOCK_PREFIX = 'in-use.'
/** The rest of the name of a numbered socket. Number.MAX_SAFE_INTEGER has more digits. */
const NUMBER = /^([1-9]\d{0,14})\.sock$/

/** Runs work that ends before it returns. */
export type Run = <T>(step: () => T) => T

interface Held {
  readonly server: Server
  /** Descriptor of the directory. */
  readonly directory: number
}

/**
 * A named lock on a directory, held by one process. The lock is a Unix socket in the directory: the
 * kernel closes it when the process ends, however it ends; other containers on the same volume see
 * it; and only users with write access to the directory can take it.
 *
 * The sockets of a lock are numbered, and the one with the highest number is the lock. A socket
 * without a listener never gets one again, so a process that finds such a socket creates the next
 * number. The highest number is never removed, not even by its holder: a process that was paused
 * after it found an older socket finds a higher number, and gives up.
 */
export class DirectoryLock {
  readonly #held: Held | undefined

  private constructor(held?: Held) {
    this.#held = held
  }

  /**
   * @param name letters, digits and hyphens, or empty
   * @param run runs each step with the rights to use the directory
   * @returns undefined if another process has the lock
   */
  static async take(directory: string, name = '', run: Run = (step) => step()): Promise<DirectoryLock | undefined> {
    const descriptor = run(() => openSync(directory, 'r'))
    // Node removes the socket name that it listens on, so that name must be unique.
    const own = pathOf(descriptor, name, `new-${randomBytes(6).toString('hex')}`)
    let server: Server | undefined
    const abandon = (): undefined => {
      server?.close()
      closeSync(descriptor)
    }
    try {
      server = await run(() => listen(own))
      const last = run(() => numbersOf(descriptor, name)).at(-1) ?? 0
      if (await run(() => answers(pathOf(descriptor, name, last)))) return abandon()
      const number = last + 1
      const path = pathOf(descriptor, name, number)
      if (!run(() => claimName(own, path))) return abandon()
      const numbers = run(() => numbersOf(descriptor, name))
      if (numbers.at(-1) !== number) {
        run(() => remove(path))
        return abandon()
      }
      for (const older of numbers.slice(0, -1)) run(() => remove(pathOf(descriptor, name, older)))
      // The lock must not keep the process running.
      server.unref()
      return new DirectoryLock({ server, directory: descriptor })
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
      return await answers(pathOf(descriptor, name, numbersOf(descriptor, name).at(-1) ?? 0))
    } finally {
      closeSync(descriptor)
    }
  }

  async release(): Promise<void> {
    if (this.#held === undefined) return
    const { server, directory } = this.#held
    await new Promise((resolve) => server.close(resolve))
    closeSync(directory)
  }
}

/** Via the directory's descriptor, since the path of a socket has at most 107 bytes (unix(7)). */
function pathOf(descriptor: number, name: string, part: number | string): string {
  return `/proc/self/fd/${descriptor}/${prefixOf(name)}${part}.sock`
}

function prefixOf(name: string): string {
  return `${LOCK_PREFIX}${name === '' ? '' : `${name}.`}`
}

/**
 * The numbers of the sockets of a lock, ascending. The kernel lists a small directory in one call
 * (getdents64(2)), so no socket is added or removed meanwhile.
 */
function numbersOf(descriptor: number, name: string): number[] {
  const prefix = prefixOf(name)
  return readdirSync(`/proc/self/fd/${descriptor}`)
    .map((file) => (file.startsWith(prefix) ? Number(NUMBER.exec(file.slice(prefix.length))?.[1] ?? 0) : 0))
    .filter((number) => number > 0)
    .sort((a, b) => a - b)
}

/** Links the socket to its number. Returns false if the number is taken. */
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

function remove(path: string): void {
  try {
    unlinkSync(path)
  } catch {
    // A remaining socket is harmless: nothing accepts connections on it.
  }
}

/** Nothing listens on a socket, or it was removed (unix(7)). */
const FREE: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOENT'])
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
    // Another error, such as a full backlog of a stopped process, does not prove that it is free.
    socket.once('connect', end(true)).once('error', ({ code = '' }: NodeJS.ErrnoException) => end(!FREE.has(code))())
  })
}
