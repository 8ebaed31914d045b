import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { systemErrorText } from '../../engine/kernel/process/failure.ts'
import type { Logger } from '../../engine/kernel/process/log.ts'
import type { AddAnswer, AddedFile, AddOrder } from './add-process.ts'
import { ADD_MS_MAX, KEPT_FILES_MAX, KEPT_MS } from './limits.ts'

interface KeptFile {
  readonly organizationId: string
  readonly sessionId: string
  readonly path: string
  readonly name: string
  readonly timer: NodeJS.Timeout
}

const PRIORITY_LOW = 10

/** The copy of an upload while it arrives. */
export class FileCopy {
  readonly path: string
  /** Why the copy is not complete; '' if it is. */
  problem = ''
  #file: FileHandle | undefined

  constructor(path: string) {
    this.path = path
  }

  /** After a failure, does nothing. */
  async write(chunk: Uint8Array): Promise<void> {
    if (this.problem !== '') return
    try {
      this.#file ??= await open(this.path, 'wx', 0o600)
      await this.#file.appendFile(chunk)
    } catch (error) {
      this.problem = systemErrorText(error)
      await this.remove()
    }
  }

  async close(): Promise<void> {
    await this.#file?.close().catch(() => {})
    this.#file = undefined
  }

  async remove(): Promise<void> {
    await this.close()
    rmSync(this.path, { force: true })
  }
}

/**
 * Copies of uploaded logs that their member can still add, in a folder of the data directory that is
 * emptied when the service starts and stops. Few, and for some minutes: a log names people.
 */
export class KeptFiles {
  readonly #dataDirectory: string
  readonly #directory: string
  readonly #log: Logger
  /** By id, the oldest first. */
  readonly #files = new Map<string, KeptFile>()
  #isAdding = false

  constructor(dataDirectory: string, log: Logger) {
    this.#dataDirectory = dataDirectory
    this.#directory = join(dataDirectory, 'uploads')
    this.#log = log
    this.clear()
  }

  /** Also removes what a killed process has left. */
  clear(): void {
    try {
      rmSync(this.#directory, { recursive: true, force: true })
    } catch (error) {
      this.#log.warn({ reason: systemErrorText(error) }, 'the copies of uploaded files cannot be removed')
    }
  }

  begin(): FileCopy {
    const copy = new FileCopy(join(this.#directory, randomBytes(16).toString('hex')))
    try {
      mkdirSync(this.#directory, { recursive: true, mode: 0o700 })
    } catch (error) {
      copy.problem = systemErrorText(error)
    }
    return copy
  }

  /**
   * Keeps a complete copy, and no earlier one of the organization.
   *
   * @returns the id by which it is added
   */
  async keep(copy: FileCopy, of: Pick<KeptFile, 'organizationId' | 'sessionId' | 'name'>): Promise<string> {
    await copy.close()
    for (const [id, { organizationId }] of this.#files) if (organizationId === of.organizationId) this.#drop(id)
    const [oldest = ''] = this.#files.keys()
    if (this.#files.size >= KEPT_FILES_MAX) this.#drop(oldest)
    const id = randomBytes(16).toString('hex')
    const timer = setTimeout(() => this.#drop(id), KEPT_MS)
    timer.unref()
    this.#files.set(id, { ...of, path: copy.path, timer })
    return id
  }

  /**
   * Adds the file to the buffer of its organization. It is kept if that fails.
   *
   * @throws Fault NOT_FOUND if it is not kept any more, STORE_IN_USE, and those of the reading
   */
  async add(
    id: string,
    { sessionId, ...by }: Pick<KeptFile, 'sessionId'> & Omit<AddOrder, 'dataDirectory' | 'path' | 'name'>,
  ): Promise<AddedFile> {
    const file = this.#files.get(id)
    if (file?.organizationId !== by.organizationId || file.sessionId !== sessionId) {
      throw new Fault('NOT_FOUND', 'the file is not kept any more. Choose it again')
    }
    // A process for each click would take the memory of the service.
    if (this.#isAdding) throw new Fault('STORE_IN_USE', 'another file is being added. Try again in a minute')
    this.#isAdding = true
    const { path, name } = file
    try {
      const added = await this.#added({ ...by, dataDirectory: this.#dataDirectory, path, name })
      if (added.fault === '') this.#drop(id)
      return added
    } finally {
      this.#isAdding = false
    }
  }

  #added(order: AddOrder): Promise<AddedFile> {
    const child = fork(fileURLToPath(new URL('./add-process.js', import.meta.url)), [], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execArgv: [],
    })
    try {
      if (child.pid !== undefined) setPriority(child.pid, PRIORITY_LOW)
    } catch {
      // Not every sandbox allows this.
    }
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => child.send('stop'), ADD_MS_MAX)
      child.once('message', (answer: AddAnswer) => {
        if ('refused' in answer) reject(new Fault(answer.refused.code, answer.refused.message))
        else resolve(answer)
      })
      const failed = (reason: string): void => {
        clearTimeout(timer)
        this.#log.error({ reason }, 'the process that adds an uploaded file failed')
        reject(
          new Fault('STORE_UNWRITABLE', 'the process that adds the file failed. The log of the service has the reason'),
        )
      }
      child.once('error', (error) => failed(error.message))
      child.once('exit', (status, signal) => {
        clearTimeout(timer)
        if (status !== 0) failed(`ended by ${signal ?? `status ${status}`}`)
      })
      child.send(order, (error) => error !== null && failed(error.message))
    })
  }

  #drop(id: string): void {
    const file = this.#files.get(id)
    if (file === undefined) return
    clearTimeout(file.timer)
    this.#files.delete(id)
    rmSync(file.path, { force: true })
  }
}
