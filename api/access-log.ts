import { METHODS } from 'node:http'
import { type FieldBlock, type HttpRequest, type HttpResponse, sentBytes } from '../engine/http/port.ts'
import { SECOND_MS } from '../engine/process/clock.ts'
import type { Logger } from '../engine/process/log.ts'
import type { Caller } from './callers.ts'

/** Writes a line for each request; under load for some, which say how many were left out. */
export class AccessLog {
  readonly #log: Logger
  readonly #linesPerSecondMax: number
  readonly #isKnownPath: (path: string) => boolean
  #second = 0
  #lines = 0
  #leftOut = 0

  constructor(log: Logger, linesPerSecondMax: number, isKnownPath: (path: string) => boolean) {
    this.#log = log
    this.#linesPerSecondMax = linesPerSecondMax
    this.#isKnownPath = isKnownPath
  }

  /** The same response, which is logged when it is sent. */
  watch(request: HttpRequest, response: HttpResponse): LoggedResponse {
    return new LoggedResponse(request, response, this, this.#isKnownPath)
  }

  /** A key stands by its visible digits. What else a client says is its own words, and may be a key: it is not logged. */
  write(line: AccessLine): void {
    const second = Math.floor(performance.now() / SECOND_MS)
    if (second !== this.#second) {
      this.#second = second
      this.#lines = 0
    }
    if (this.#lines++ >= this.#linesPerSecondMax) {
      this.#leftOut++
      return
    }
    this.#log.info({ ...line, ...(this.#leftOut > 0 ? { left_out: this.#leftOut } : {}) }, 'request')
    this.#leftOut = 0
  }
}

export interface AccessLine {
  readonly address: string
  /** One of the registered ones, or `other`. */
  readonly method: string
  /** One of ours, or `other`. */
  readonly path: string
  readonly status: number
  /** Of the body, as it is sent. */
  readonly bytes: number
  readonly organization?: string
  /** The 8 visible digits of the key. */
  readonly key_visible?: string
}

const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS)
const OTHER = 'other'

export class LoggedResponse implements HttpResponse {
  caller: Caller | undefined
  readonly #response: HttpResponse
  readonly #log: AccessLog
  readonly #address: string
  readonly #method: string
  readonly #path: string

  constructor(request: HttpRequest, response: HttpResponse, log: AccessLog, isKnownPath: (path: string) => boolean) {
    this.#response = response
    this.#log = log
    this.#address = request.remoteAddress()
    this.#method = KNOWN_METHODS.has(request.method) ? request.method : OTHER
    this.#path = isKnownPath(request.path) ? request.path : OTHER
  }

  get aborted(): boolean {
    return this.#response.aborted
  }

  send(
    status: number,
    fields: readonly string[],
    body: Uint8Array | string,
    bodyOmitted = false,
    block?: FieldBlock,
  ): void {
    const bytes = sentBytes(status, body, bodyOmitted)
    this.#response.send(status, fields, body, bodyOmitted, block)
    const { caller } = this
    this.#log.write({
      address: this.#address,
      method: this.#method,
      path: this.#path,
      status,
      bytes,
      ...(caller === undefined ? {} : { organization: caller.organization.id, key_visible: caller.visible }),
    })
  }
}
