import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { logFailure } from '../process/failure.ts'
import type { Logger } from '../process/log.ts'
import { type Certificate, checkedFingerprint, type TlsFiles, usingTlsFiles } from './certificate.ts'

/** How often the files are looked at, in milliseconds. They are replaced, renamed and linked in ways that no notice of the system covers. */
const POLL_MS = 5000

/** Notices that a certificate was renewed. One that cannot be used, or does not belong to its key yet, changes nothing. */
export class CertificateWatch {
  readonly #files: Certificate
  readonly #log: Logger
  readonly #onChange: () => void
  readonly #timer: NodeJS.Timeout
  /** Of the whole files: the certificates behind the first, and a key made anew, are part of what is shown. */
  #content: string
  #seen: string
  /** The state of the files that was complained about. */
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
      this.#log.info({ fingerprint }, 'uses the renewed certificate')
      this.#onChange()
    } catch (error) {
      if (this.#refused !== state) {
        logFailure(this.#log, error, 'the renewed certificate cannot be used; the old one stays', { level: 'warn' })
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

/** What changes when a file is written or replaced. */
function stateOf(files: TlsFiles): string {
  const state = (file: string): string => {
    const found = statSync(file, { throwIfNoEntry: false })
    return found === undefined ? 'none' : `${found.dev} ${found.ino} ${found.size} ${found.mtimeMs}`
  }
  return usingTlsFiles(files, () => `${state(files.keyFile)} ${state(files.certificateFile)}`)
}
