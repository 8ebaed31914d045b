import { createHash, randomBytes } from 'node:crypto'
import { existsSync, linkSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Fault } from './error-codes.ts'
import { readPrivateFile } from './private-file.ts'

const FILE_MODE = 0o600
/** A folder of the data directory, which several nodes can share, also read-only. */
const SHARED_FOLDER = 'keys'
/** Errors of a read-only file system, and of another user's folder. */
const READ_ONLY_CODES: readonly unknown[] = ['EROFS', 'EACCES', 'EPERM']

/** The path of a key file: in the folder `keys` of the data directory if there is one. */
export function keyPath(dataDirectory: string, name: string): string {
  const shared = join(dataDirectory, SHARED_FOLDER)
  return join(existsSync(shared) ? shared : dataDirectory, name)
}

/** A random key in hex in a file that only the user of the service can read. */
export class KeyFile {
  readonly file: string
  readonly #keyBytes: number

  constructor(file: string, keyBytes: number) {
    this.file = file
    this.#keyBytes = keyBytes
  }

  /**
   * Returns the key. `remedy` is a sentence for the case that the file is missing.
   *
   * @throws Fault SECRETS_KEY
   */
  read(remedy: string): Buffer {
    if (!existsSync(this.file)) throw new Fault('SECRETS_KEY', `${this.file}: no such file. ${remedy}`)
    const digits = this.#keyBytes * 2
    const expected = { pattern: new RegExp(`^[0-9a-f]{${digits}}$`), text: `${digits} hex digits` }
    return Buffer.from(readPrivateFile(this.file, this.file, { code: 'SECRETS_KEY', expected }), 'hex')
  }

  /**
   * Creates the file unless it exists. Of two processes that create it at once, one succeeds, and
   * both read the same key.
   *
   * @returns whether this process has created it
   * @throws Fault SECRETS_KEY
   */
  createIfMissing(): boolean {
    if (existsSync(this.file)) return false
    const partial = `${this.file}.${randomBytes(4).toString('hex')}`
    try {
      writeFileSync(partial, `${randomBytes(this.#keyBytes).toString('hex')}\n`, { flag: 'wx', mode: FILE_MODE })
      linkSync(partial, this.file)
      return true
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      if (code !== 'EEXIST') {
        const fix = READ_ONLY_CODES.includes(code) ? `. Create it with ${this.#keyBytes * 2} random hex digits` : ''
        throw new Fault('SECRETS_KEY', `${this.file}: cannot be created: ${code ?? message}${fix}`)
      }
      return false
    } finally {
      rmSync(partial, { force: true })
    }
  }

  /** In a read-only folder, the file stays: who shares the folder has to remove it. */
  remove(): void {
    try {
      rmSync(this.file, { force: true })
    } catch (error) {
      if (!READ_ONLY_CODES.includes((error as NodeJS.ErrnoException).code)) throw error
    }
  }
}

/** The first 16 hex digits of the SHA-256 of a key. */
export function keyIdOf(key: Uint8Array): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 16)
}
