import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  closeSync,
  constants,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { asOwnerOf, beforeBecoming, userOn } from './become-user.ts'
import { syncDirectory } from './directory.ts'
import { Fault, type FaultCode } from './error-codes.ts'
import { systemErrorText } from './failure.ts'
import type { User } from './ownership.ts'

/** Of unfinished files: the id of the process that writes them, and random digits. */
const PART = /^\.(\d+)\.[0-9a-f]{8}\.part$/

export interface NewFileOptions {
  /** Permissions of the file, before the umask. */
  readonly mode: number
  /** The file must not exist, and has its name from the start. */
  readonly exclusive?: boolean
  readonly code?: FaultCode
}

/**
 * A file that appears, or replaces the file of that name, when it is complete. A program that reads
 * the file never sees a part of it. Root opens it with the rights of the user who controls its
 * path, and may become another user before the file is complete. A device or pipe, such as
 * /dev/null, is written to and never replaced.
 */
export class NewFile {
  readonly path: string
  readonly #setting: string
  readonly #code: FaultCode
  readonly #partPath: string
  readonly #isSpecial: boolean
  readonly #file: number
  readonly #forget: () => void
  /** Has the rights that this process has given up. */
  #finisher: FileFinisher | undefined
  #isComplete = false
  #isClosed = false

  /**
   * @param setting the option that names the file, for errors
   * @throws Fault `code`, by default EXPORT_FILE
   */
  constructor(setting: string, path: string, { mode, exclusive = false, code = 'EXPORT_FILE' }: NewFileOptions) {
    this.#setting = setting
    this.#code = code
    this.path = resolve(path)
    const status = statSync(this.path, { throwIfNoEntry: false })
    this.#isSpecial = status !== undefined && !status.isFile() && !status.isDirectory()
    const isPart = !exclusive && !this.#isSpecial
    const suffix = isPart ? `.${process.pid}.${randomBytes(4).toString('hex')}.part` : ''
    this.#partPath = this.path + suffix
    this.#file = this.#tried('create', () =>
      asOwnerOf(setting, dirname(this.path), () => {
        removeLeftParts(this.path)
        return openSync(this.#partPath, this.#isSpecial ? constants.O_WRONLY : 'wx', mode)
      }),
    )
    this.#forget = beforeBecoming(({ uid }) => {
      if (this.#isSpecial) return
      const owner = userOn(setting, dirname(this.path)) ?? { uid: 0, gid: 0 }
      if (owner.uid !== uid) this.#finisher = new FileFinisher(this.#partPath, this.path, owner)
    })
  }

  /** @throws Fault */
  write(content: string | Uint8Array): void {
    const bytes = typeof content === 'string' ? Buffer.from(content) : content
    this.#tried('write', () => writeAll(this.#file, bytes))
  }

  /**
   * Flushes the file to disk, and gives it its name: even if this process ends after the call.
   * @throws Fault.
   */
  complete(): Promise<void> {
    if (this.#isSpecial) return Promise.resolve()
    this.#tried('write', () => fsyncSync(this.#file))
    this.#isComplete = true
    if (this.#finisher !== undefined) {
      return this.#finisher.complete().catch((error: unknown) => {
        throw this.#fault('write', error)
      })
    }
    this.#tried('write', () =>
      asOwnerOf(this.#setting, dirname(this.path), () => {
        renameSync(this.#partPath, this.path)
        syncDirectory(dirname(this.path))
      }),
    )
    return Promise.resolve()
  }

  /** Closes the file. Removes it unless it is complete, or if it should not be. */
  async close({ isWanted = true } = {}): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#forget()
    closeSync(this.#file)
    const isRemoved = !this.#isSpecial && !(this.#isComplete && isWanted)
    if (this.#finisher !== undefined) await this.#finisher.end(isRemoved)
    else if (isRemoved) {
      const path = this.#isComplete ? this.path : this.#partPath
      asOwnerOf(this.#setting, dirname(path), () => rmSync(path, { force: true }))
    }
  }

  #tried<T>(what: string, work: () => T): T {
    try {
      return work()
    } catch (error) {
      throw error instanceof Fault ? error : this.#fault(what, error)
    }
  }

  #fault(what: string, error: unknown): Fault {
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'EEXIST' ? 'the file exists; name another file' : systemErrorText(error)
    return new Fault(this.#code, `${this.#setting} ${this.path}: cannot ${what}: ${why}`, { cause: error })
  }
}

/**
 * Opens a new file before `work` and closes it afterward. `work` completes it. undefined without a
 * path.
 *
 * @throws Fault
 */
export async function withNewFile<T>(
  setting: string,
  path: string | undefined,
  options: NewFileOptions,
  work: (file: NewFile | undefined) => Promise<T>,
): Promise<T> {
  const file = path === undefined ? undefined : new NewFile(setting, path, options)
  try {
    return await work(file)
  } finally {
    await file?.close()
  }
}

/** Removes what killed processes have left. */
function removeLeftParts(path: string): void {
  const name = basename(path)
  for (const each of readdirSync(dirname(path), { withFileTypes: true })) {
    if (!each.isFile() || !each.name.startsWith(name)) continue
    const [, pid] = PART.exec(each.name.slice(name.length)) ?? []
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(dirname(path), each.name), { force: true })
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/**
 * A process that root starts before it becomes another user: the only one that can rename a file in
 * a directory of root afterward. It knows the file from its command line, and can only complete or
 * remove it. Orders are lines in a pipe, which outlive this process. At the end of the pipe, it
 * removes a file that is not complete.
 */
class FileFinisher {
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  readonly #answers: AsyncIterator<string>

  constructor(partPath: string, path: string, { uid, gid }: Pick<User, 'uid' | 'gid'>) {
    const child = fork(fileURLToPath(new URL('./file-finisher-process.js', import.meta.url)), [partPath, path], {
      stdio: ['pipe', 'pipe', 'ignore', 'ipc'],
      execArgv: [],
      env: {},
      cwd: '/',
      // Ctrl-C on the terminal does not reach it.
      detached: true,
      uid,
      gid,
    })
    child.disconnect()
    // Its end is the answer.
    child.stdin?.on('error', () => {})
    this.#child = child
    this.#ended = once(child, 'exit').catch(() => {})
    this.#answers = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  }

  /** The process completes the file even if this one ends. @throws Error with a code. */
  async complete(): Promise<void> {
    this.#child.stdin?.write('complete\n')
    const { value: code = 'its process ended' } = await this.#answers.next()
    if (code !== '') throw Object.assign(new Error(code), { code })
  }

  async end(isRemoved: boolean): Promise<void> {
    this.#child.stdin?.end(isRemoved ? 'remove\n' : '')
    await this.#ended
  }
}

/**
 * Writes all bytes. One write may write fewer bytes than it was given (POSIX write(2)), as on a
 * disk that becomes full.
 *
 * @throws Error of the system
 */
export function writeAll(file: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
}
