import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { logFailure } from '../kernel/process/failure.ts'
import type { Logger } from '../kernel/process/log.ts'
import { type Certificate, checkedFingerprint, type TlsFiles, usingTlsFiles } from './certificate.ts'

/**
 * Polling interval in milliseconds. File notifications miss some replaced, renamed and linked
 * files.
 */
const POLL_MS = 5000

/**
 * Detects a renewed certificate. An unusable certificate, or one that does not match its key yet,
 * changes nothing.
 */
export class CertificateWatch {
  readonly #files: Certificate
  readonly #log: Logger
  readonly #onChange: () => void
  readonly #timer: NodeJS.Timeout
  /** Hash of both files: intermediate certificates and the key may change, too. */
  #content: string
  #seen: string
  /** The state of the files for which an error was logged. */
  #refused = ''

  constructor(files: Certificate, log: Logger, onChange: () => void, pollMs = POLL_MS) {
    this.#files = files
    this.#log = log
    this.#onChange = onChange
    this.#content = contentOf(files)
    this.#seen = stateOf(files)
    this.#timer = setInterval(() => this.poll(), pollMs)
    this.#timer.unref()
  }

  poll(): void {
    let state = ''
    try {
      state = stateOf(this.#files)
      if (state === this.#seen) return
      const fingerprint = checkedFingerprint(this.#files)
      const content = contentOf(this.#files)
      this.#seen = state
      if (content === this.#content) return
      this.#content = content
      this.#log.info({ fingerprint }, 'using the renewed certificate')
      this.#onChange()
    } catch (error) {
      if (this.#refused !== state) {
        logFailure(this.#log, error, 'could not use the renewed certificate; keeping the old one', { level: 'warn' })
      }
      this.#refused = state
    }
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

function contentOf(files: TlsFiles): string {
  return usingTlsFiles(files, () => {
    const hash = createHash('sha256')
    for (const file of [files.keyFile, files.certificateFile]) hash.update(readFileSync(file)).update('\0')
    return hash.digest('hex')
  })
}

/** Changes when a file is written or replaced. */
function stateOf(files: TlsFiles): string {
  const state = (file: string): string => {
    const found = statSync(file, { throwIfNoEntry: false })
    return found === undefined ? 'none' : `${found.dev} ${found.ino} ${found.size} ${found.mtimeMs}`
  }
  return usingTlsFiles(files, () => `${state(files.keyFile)} ${state(files.certificateFile)}`)
}
