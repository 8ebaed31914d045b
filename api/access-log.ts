import { type FieldBlock, type HttpRequest, type HttpResponse, sentBytes } from '../engine/http/port.ts'
import { SECOND_MS } from '../engine/process/clock.ts'
import type { Logger } from '../engine/process/log.ts'
import type { Caller } from './callers.ts'

/** Writes a line for each request; under load for some, which say how many were left out. */
export class AccessLog {
  readonly #log: Logger
  readonly #linesPerSecondMax: number
  #second = 0
  #lines = 0
  #leftOut = 0

  constructor(log: Logger, linesPerSecondMax: number) {
    this.#log = log
    this.#linesPerSecondMax = linesPerSecondMax
  }

  /** The same response, which is logged when it is sent. */
  watch(request: HttpRequest, response: HttpResponse): LoggedResponse {
    return new LoggedResponse(request, response, this)
  }

  /** A key stands by its visible digits. Parameters of a request are its client's words: they are not logged where they are none of ours. */
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
  readonly method: string
  readonly path: string
  readonly status: number
  /** Of the body, as it is sent. */
  readonly bytes: number
  readonly organization?: string
  /** The 8 visible digits of the key. */
  readonly key?: string
}

/** No client of ours has a longer path. */
const PATH_CHARS_MAX = 100

export class LoggedResponse implements HttpResponse {
  caller: Caller | undefined
  readonly #response: HttpResponse
  readonly #log: AccessLog
  readonly #address: string
  readonly #method: string
  readonly #path: string

  constructor(request: HttpRequest, response: HttpResponse, log: AccessLog) {
    this.#response = response
    this.#log = log
    this.#address = request.remoteAddress()
    this.#method = request.method
    this.#path = request.path.slice(0, PATH_CHARS_MAX)
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
      ...(caller === undefined ? {} : { organization: caller.organization.id, key: caller.visible }),
    })
  }
}
