import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { resolve } from 'node:path'
import { Fault } from './error-codes.ts'

/**
 * A file that appears, or replaces the file of that name, when it is complete. A program that reads
 * the file never sees a part of it.
 */
export class NewFile {
  readonly #setting: string
  readonly #path: string
  readonly #partPath: string
  readonly #file: number

  /**
   * @param setting the option that names the file, for errors
   * @param mode of the file, before the umask
   * @throws Fault EXPORT_FILE
   */
  constructor(setting: string, path: string, mode: number) {
    this.#setting = setting
    this.#path = resolve(path)
    this.#partPath = `${this.#path}.${process.pid}.part`
    this.#file = this.#tried('create', () => openSync(this.#partPath, 'wx', mode))
  }

  /** @throws Fault EXPORT_FILE */
  write(text: string): void {
    this.#tried('write', () => writeSync(this.#file, text))
  }

  /** @throws Fault EXPORT_FILE */
  complete(): void {
    this.#tried('write', () => {
      fsyncSync(this.#file)
      closeSync(this.#file)
      renameSync(this.#partPath, this.#path)
    })
  }

  /** For a file that cannot be completed. */
  discard(): void {
    closeSync(this.#file)
    rmSync(this.#partPath, { force: true })
  }

  #tried<T>(what: string, work: () => T): T {
    try {
      return work()
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      throw new Fault('EXPORT_FILE', `${this.#setting} ${this.#path}: cannot ${what}: ${code ?? message}`, {
        cause: error,
      })
    }
  }
}

/** Writes a whole file. @throws Fault EXPORT_FILE. */
export function writeNewFile(setting: string, path: string, text: string, mode: number): void {
  const file = new NewFile(setting, path, mode)
  try {
    file.write(text)
  } catch (error) {
    file.discard()
    throw error
  }
  file.complete()
}
