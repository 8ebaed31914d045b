import { METHODS } from 'node:http'
import type { HttpRequest } from '../engine/http/port.ts'
import { SECOND_MS } from '../engine/kernel/process/clock.ts'
import type { Logger } from '../engine/kernel/process/log.ts'
import type { Caller } from './callers.ts'

const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS)
const OTHER = 'other'

/**
 * Logs a line for each answered request. Above the rate limit, skips requests and counts the
 * skipped ones.
 */
export class AccessLog {
  readonly #log: Logger
  readonly #linesPerSecondMax: number
  readonly #isKnownPath: (path: string) => boolean
  /** Callers of requests in progress. */
  readonly #callers = new WeakMap<HttpRequest, Caller>()
  #second = 0
  #lines = 0
  #skipped = 0

  constructor(log: Logger, linesPerSecondMax: number, isKnownPath: (path: string) => boolean) {
    this.#log = log
    this.#linesPerSecondMax = linesPerSecondMax
    this.#isKnownPath = isKnownPath
  }

  /** Records the caller for the log line of this request. */
  noteCaller(request: HttpRequest, caller: Caller): void {
    this.#callers.set(request, caller)
  }

  /**
   * The port's hook. The line contains the method (a registered one, or `other`), the path (of the
   * API, or `other`), the size of the body as sent and the 8 visible digits of the key. Other text
   * of the client may contain a key, so it is not logged.
   */
  onAnswer(request: HttpRequest, status: number, bytes: number): void {
    const second = Math.floor(performance.now() / SECOND_MS)
    if (second !== this.#second) {
      this.#second = second
      this.#lines = 0
    }
    if (this.#lines++ >= this.#linesPerSecondMax) {
      this.#skipped++
      return
    }
    const caller = this.#callers.get(request)
    this.#log.info(
      {
        address: request.remoteAddress(),
        method: KNOWN_METHODS.has(request.method) ? request.method : OTHER,
        path: this.#isKnownPath(request.path) ? request.path : OTHER,
        status,
        bytes,
        ...(caller === undefined ? {} : { organization: caller.organization.id, key_visible: caller.visible }),
        ...(this.#skipped > 0 ? { skipped: this.#skipped } : {}),
      },
      'request',
    )
    this.#skipped = 0
  }
}
