import { clientOfBytes } from '../process/network.ts'
import { type FieldLines, linesOf, withoutConnection } from './fields.ts'
import {
  type HttpAnswer,
  type HttpListenOptions,
  type HttpRequest,
  type HttpResponse,
  REASON_PHRASE,
  sentBytes,
} from './port.ts'
import type { Traffic } from './uws-traffic.ts'
import type { WaitingAnswer } from './waiting-answers.ts'

/** The parts of the library's response that are used. */
export interface RawResponse {
  getRemoteAddress(): ArrayBuffer
  writeStatus(status: string): unknown
  writeHeader(name: string, value: string): unknown
  end(body: Uint8Array | string, closes: boolean): unknown
  endWithoutBody(): unknown
  tryEnd(body: Uint8Array | string, bytes: number): [wasTaken: boolean, isComplete: boolean]
  getWriteOffset(): number
  cork(write: () => void): unknown
  close(): unknown
  onWritable(write: (offset: number) => boolean): unknown
  onAborted(notify: () => void): unknown
}

/**
 * The library closes a connection after 8 to 12 s without a request. A client that reads this field
 * sends nothing in the last seconds, so it is not disconnected while its request is in flight.
 */
const KEEP_ALIVE = 'keep-alive\r\nkeep-alive: timeout=5'

export class UwsResponse implements HttpResponse, WaitingAnswer {
  aborted = false
  /** The argument of onAnswer. */
  request: HttpRequest | undefined
  #answered = false
  /** The kernel has accepted the response, or the connection is closed. */
  #isDone = false
  /** The library corks writes while the handler runs. Later writes must be corked explicitly. */
  #corked = true
  #watched = false
  /** Whether the connection stays open after the response, if the client wants that. */
  #keepsAlive: boolean
  /** The client that the response refuses. */
  #refusedClient: string | undefined
  #notifyAborted: (() => void) | undefined
  readonly #raw: RawResponse
  readonly #traffic: Traffic
  readonly #options: HttpListenOptions

  /**
   * Whether the response is sent one turn of the event loop later. If another pipelined request
   * follows meanwhile, the library closes the connection.
   */
  readonly #isDeferred: boolean

  constructor(raw: RawResponse, traffic: Traffic, options: HttpListenOptions, keepsAlive: boolean) {
    this.#keepsAlive = keepsAlive
    this.#raw = raw
    this.#isDeferred = traffic.turn.take()
    this.#traffic = traffic
    this.#options = options
  }

  /** The handler has returned. A later response needs the abort callback. */
  returned(): void {
    this.#corked = false
    if (!this.#answered) this.#watch()
  }

  onAborted(notify: () => void): void {
    this.#notifyAborted = notify
    this.#watch()
  }

  send(answer: HttpAnswer): void {
    if (this.aborted || this.#answered) return
    const { status, body, fields = [], block, bodyOmitted = false } = answer
    const closes = fields.includes('connection')
    // Before anything is written, so that an invalid field can still be answered with an error.
    const lines = linesOf(closes ? withoutConnection(fields) : fields, block)
    this.#answered = true
    const isBodiless = bodyOmitted || status === 304
    if (answer.isRefusal) {
      this.#refusedClient = this.#client()
      if (this.#traffic.connections.isPastRefusals(this.#refusedClient)) return this.#disconnect()
    }
    try {
      // Before the response is written: the library does not know the address afterward.
      if (this.request !== undefined) this.#options.onAnswer?.(this.request, status, sentBytes(answer))
    } finally {
      this.#sendNow(status, lines, body, isBodiless, closes)
    }
  }

  #sendNow(status: number, lines: FieldLines, body: Uint8Array | string, isBodiless: boolean, closes: boolean): void {
    if (closes || (isBodiless && this.#traffic.closesBodiless())) this.#sendLast(status, lines, body, isBodiless)
    else if (this.#corked && this.#isDeferred) this.#sendDeferred(status, lines, body, isBodiless)
    else if (this.#corked) this.#write(status, lines, body, isBodiless)
    else this.#raw.cork(() => this.#write(status, lines, body, isBodiless))
  }

  /** Aborts the response, whose waiting bytes exceed the limit. */
  abort(): void {
    this.#options.onAnswerAborted?.()
    this.#raw.close()
  }

  #disconnect(): void {
    this.#watch()
    this.#raw.close()
  }

  #sendDeferred(status: number, lines: FieldLines, body: Uint8Array | string, isBodiless: boolean): void {
    this.#watch()
    const copy = typeof body === 'string' ? body : Buffer.from(body)
    setImmediate(() => {
      if (this.aborted) this.#notePipelined()
      else this.#raw.cork(() => this.#write(status, lines, copy, isBodiless))
    })
  }

  /**
   * The connection was closed before a deferred response was sent. That is within one turn of the
   * event loop, so most likely because the client had pipelined another request.
   */
  #notePipelined(): void {
    if (this.#refusedClient !== undefined) this.#traffic.connections.notePipelined(this.#refusedClient)
  }

  /** The client, for limits. Valid only until the response is sent. */
  #client(): string {
    return clientOfBytes(new Uint8Array(this.#raw.getRemoteAddress()))
  }

  /**
   * Closes the connection after the response, with `connection: close`. While the handler runs, the
   * library would process the next pipelined request and not close. One turn later it disconnects a
   * client that has sent more.
   */
  #sendLast(status: number, lines: FieldLines, body: Uint8Array | string, isBodiless: boolean): void {
    this.#keepsAlive = false
    this.#watch()
    const taken = typeof body === 'string' ? body : Buffer.from(body)
    setImmediate(() => {
      if (this.aborted) return this.#notePipelined()
      this.#raw.cork(() => {
        if (isBodiless) this.#writeLastBodiless(status, lines, Buffer.byteLength(taken))
        else {
          this.#writeHead(status, lines)
          this.#raw.end(taken, true)
          this.#end()
        }
      })
      if (isBodiless) this.#raw.close()
    })
  }

  /**
   * The library closes only after a body. So this writes the header section, including its empty
   * last line, as fields, and the caller closes the connection.
   */
  #writeLastBodiless(status: number, lines: FieldLines, bytes: number): void {
    this.#writeHead(status, lines)
    if (status !== 304) this.#raw.writeHeader('content-length', String(bytes))
    this.#raw.writeHeader('date', new Date().toUTCString())
    this.#raw.writeHeader('connection', 'close\r\n')
  }

  #watch(): void {
    if (this.#watched) return
    this.#watched = true
    this.#raw.onAborted(() => {
      this.aborted = true
      this.#notifyAborted?.()
      this.#end()
    })
  }

  #end(): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#traffic.requests--
    this.#traffic.waiting.remove(this)
  }

  #write(status: number, lines: FieldLines, body: Uint8Array | string, isBodiless: boolean): void {
    this.#writeHead(status, lines)
    if (!isBodiless) return this.#writeBody(body)
    // A 304 has neither body nor length (RFC 9110 §15.4.5). For an omitted body, the length is
    // written as an ordinary field: otherwise the library waits for the body and drops the
    // connection at its next request.
    if (status !== 304) this.#raw.writeHeader('content-length', String(Buffer.byteLength(body)))
    // The library does not count a response without a body as a response: without an abort callback
    // it would end the process.
    this.#watch()
    this.#raw.endWithoutBody()
    this.#end()
  }

  #writeHead(status: number, { firstName, rest }: FieldLines): void {
    if (status !== 200) this.#raw.writeStatus(`${status} ${REASON_PHRASE[status] ?? ''}`)
    if (firstName !== '') this.#raw.writeHeader(firstName, rest)
    if (this.#keepsAlive) this.#raw.writeHeader('connection', KEEP_ALIVE)
  }

  #writeBody(body: Uint8Array | string): void {
    const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length
    if (this.#raw.tryEnd(body, bytes)[1]) this.#end()
    else this.#writeRest(body, bytes)
  }

  /**
   * The kernel accepted only a part. The rest is kept until the client reads it. The library
   * disconnects a client that reads nothing for 10 s.
   */
  #writeRest(body: Uint8Array | string, bytes: number): void {
    this.#watch()
    const from = this.#raw.getWriteOffset()
    const rest = typeof body === 'string' ? Buffer.from(body).subarray(from) : Buffer.from(body.subarray(from))
    this.#raw.onWritable((at) => {
      if (this.aborted) return true
      const [wasTaken, isComplete] = this.#raw.tryEnd(rest.subarray(at - from), bytes)
      if (isComplete) this.#end()
      return wasTaken
    })
    this.#traffic.waiting.add(this, this.#client(), rest.length)
  }
}
