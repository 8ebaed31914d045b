import { createHash, randomBytes } from 'node:crypto'
import { closeSync, existsSync, linkSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Fault } from './error-codes.ts'
import { createOwnedFile, otherOwner } from './ownership.ts'
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
    const text = readPrivateFile(this.file, this.file, { code: 'SECRETS_KEY', owners: ownersOf(this.file) })
    if (text.length === this.#keyBytes * 2 && /^[0-9a-f]+$/.test(text)) return Buffer.from(text, 'hex')
    throw new Fault('SECRETS_KEY', `${this.file}: expected ${this.#keyBytes * 2} hex digits, found something else`)
  }

  /**
   * Creates the file unless it exists. Of two processes that create it at once, one succeeds, and
   * both read the same key.
   *
   * @throws Fault SECRETS_KEY
   */
  createIfMissing(): void {
    if (existsSync(this.file)) return
    const partial = `${this.file}.${randomBytes(4).toString('hex')}`
    try {
      // A command that runs as root creates the file for the user of the service.
      const owner = otherOwner(dirname(this.file))
      if (owner !== undefined) createOwnedFile(owner, partial)
      const file = openSync(partial, owner === undefined ? 'wx' : 'r+', FILE_MODE)
      writeSync(file, `${randomBytes(this.#keyBytes).toString('hex')}\n`)
      closeSync(file)
      linkSync(partial, this.file)
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      if (code !== 'EEXIST') {
        const fix = READ_ONLY_CODES.includes(code) ? `. Create it with ${this.#keyBytes * 2} random hex digits` : ''
        throw new Fault('SECRETS_KEY', `${this.file}: cannot be created: ${code ?? message}${fix}`)
      }
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

/** Root may use the key file of the user to whom the directory belongs. */
function ownersOf(file: string): readonly number[] {
  return process.geteuid?.() === 0 ? [statSync(dirname(file)).uid] : []
}

/** The first 16 hex digits of the SHA-256 of a key. */
export function keyIdOf(key: Uint8Array): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 16)
}
