import { clientOfBytes } from '../kernel/process/network.ts'
import { type FieldLines, linesOf, withoutConnection } from './fields.ts'
import {
  HSTS,
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

/** How far a response has come. The request counts in the traffic until the last two. */
const Phase = {
  /** The handler has not answered. */
  open: 0,
  /** The handler has answered. The kernel has not accepted all of the response. */
  answered: 1,
  /** The kernel has accepted the response. */
  ended: 2,
  /** The connection was closed first. */
  aborted: 3,
} as const
type Phase = (typeof Phase)[keyof typeof Phase]

/** When and how a response is written. */
const Writing = {
  /** The handler runs, so the library corks writes. */
  now: 0,
  /**
   * The handler runs, and the response is written one turn of the event loop later. If another
   * pipelined request follows meanwhile, the library closes the connection.
   */
  nextTurn: 1,
  /** The handler has returned, so writes must be corked explicitly. */
  corked: 2,
} as const
type Writing = (typeof Writing)[keyof typeof Writing]

export class UwsResponse implements HttpResponse, WaitingAnswer {
  /** The argument of onAnswer. */
  request: HttpRequest | undefined
  #phase: Phase = Phase.open
  #writing: Writing
  /** The library has the abort callback. */
  #isWatched = false
  /** The client that the response refuses. */
  #refusedClient: string | undefined
  #notifyAborted: (() => void) | undefined
  readonly #raw: RawResponse
  readonly #traffic: Traffic
  readonly #options: HttpListenOptions
  /** Whether the connection stays open after the response. */
  readonly #keepsAlive: boolean

  constructor(raw: RawResponse, traffic: Traffic, options: HttpListenOptions, keepsAlive: boolean) {
    this.#keepsAlive = keepsAlive
    this.#raw = raw
    this.#writing = traffic.turn.take() ? Writing.nextTurn : Writing.now
    this.#traffic = traffic
    this.#options = options
  }

  get aborted(): boolean {
    return this.#phase === Phase.aborted
  }

  /** The handler has returned. A later response needs the abort callback. */
  returned(): void {
    this.#writing = Writing.corked
    if (this.#phase === Phase.open) this.#watch()
  }

  onAborted(notify: () => void): void {
    this.#notifyAborted = notify
    this.#watch()
  }

  send(answer: HttpAnswer): void {
    if (this.#phase !== Phase.open) return
    const { status, body, fields = [], block, bodyOmitted = false } = answer
    const closes = fields.includes('connection')
    // Before anything is written, so that an invalid field can still be answered with an error.
    const lines = linesOf(closes ? withoutConnection(fields) : fields, block)
    this.#phase = Phase.answered
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
    else if (this.#writing === Writing.nextTurn) this.#sendDeferred(status, lines, body, isBodiless)
    else if (this.#writing === Writing.now) this.#write(status, lines, body, isBodiless)
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
    this.#watch()
    const taken = typeof body === 'string' ? body : Buffer.from(body)
    setImmediate(() => {
      if (this.aborted) return this.#notePipelined()
      this.#raw.cork(() => {
        if (isBodiless) this.#writeLastBodiless(status, lines, Buffer.byteLength(taken))
        else {
          this.#writeHead(status, lines, false)
          this.#raw.end(taken, true)
          this.#finish(Phase.ended)
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
    this.#writeHead(status, lines, false)
    if (status !== 304) this.#raw.writeHeader('content-length', String(bytes))
    this.#raw.writeHeader('date', new Date().toUTCString())
    this.#raw.writeHeader('connection', 'close\r\n')
  }

  #watch(): void {
    if (this.#isWatched) return
    this.#isWatched = true
    this.#raw.onAborted(() => {
      this.#finish(Phase.aborted)
      this.#notifyAborted?.()
    })
  }

  #finish(phase: typeof Phase.ended | typeof Phase.aborted): void {
    if (this.#phase >= Phase.ended) return
    this.#phase = phase
    this.#traffic.requests--
    this.#traffic.waiting.remove(this)
  }

  #write(status: number, lines: FieldLines, body: Uint8Array | string, isBodiless: boolean): void {
    this.#writeHead(status, lines, this.#keepsAlive)
    if (!isBodiless) return this.#writeBody(body)
    // A 304 has neither body nor length (RFC 9110 §15.4.5). For an omitted body, the length is
    // written as an ordinary field: otherwise the library waits for the body and drops the
    // connection at its next request.
    if (status !== 304) this.#raw.writeHeader('content-length', String(Buffer.byteLength(body)))
    // The library does not count a response without a body as a response: without an abort callback
    // it would end the process.
    this.#watch()
    this.#raw.endWithoutBody()
    this.#finish(Phase.ended)
  }

  #writeHead(status: number, { firstName, rest }: FieldLines, keepsAlive: boolean): void {
    if (status !== 200) this.#raw.writeStatus(`${status} ${REASON_PHRASE[status] ?? ''}`)
    if (firstName !== '') this.#raw.writeHeader(firstName, rest)
    if (this.#options.hsts) this.#raw.writeHeader(HSTS[0], HSTS[1])
    if (keepsAlive) this.#raw.writeHeader('connection', KEEP_ALIVE)
  }

  #writeBody(body: Uint8Array | string): void {
    const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length
    if (this.#raw.tryEnd(body, bytes)[1]) this.#finish(Phase.ended)
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
      if (isComplete) this.#finish(Phase.ended)
      return wasTaken
    })
    this.#traffic.waiting.add(this, this.#client(), rest.length)
  }
}
