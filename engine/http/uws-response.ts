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

/** What is used of the library's response. */
export interface RawResponse {
  getRemoteAddress(): ArrayBuffer
  writeStatus(status: string): unknown
  writeHeader(name: string, value: string): unknown
  end(body: Uint8Array | string, closes: boolean): unknown
  endWithoutBody(): unknown
  tryEnd(body: Uint8Array | string, bytes: number): [wasTaken: boolean, isWhole: boolean]
  getWriteOffset(): number
  cork(write: () => void): unknown
  close(): unknown
  onWritable(write: (offset: number) => boolean): unknown
  onAborted(notify: () => void): unknown
}

export class UwsResponse implements HttpResponse, WaitingAnswer {
  aborted = false
  /** For onAnswer. */
  request: HttpRequest | undefined
  #answered = false
  /** The system has taken the answer, or will never. */
  #over = false
  /** The library has put writes together for as long as the handler runs; later we must ask for that. */
  #corked = true
  #watched = false
  /** Who was refused by the answer. */
  #refusedClient: string | undefined
  #notifyAborted: (() => void) | undefined
  readonly #raw: RawResponse
  readonly #traffic: Traffic
  readonly #options: HttpListenOptions

  /** Written in the next turn of the event loop, during which the library closes the connection if another request follows. */
  readonly #waitsForTurn: boolean

  constructor(raw: RawResponse, traffic: Traffic, options: HttpListenOptions) {
    this.#raw = raw
    this.#waitsForTurn = traffic.turn.take()
    this.#traffic = traffic
    this.#options = options
  }

  /** The handler has returned. Who has not answered will be told when the peer goes. */
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
    // Before anything is written: where a field cannot be, another answer can.
    const lines = linesOf(closes ? withoutConnection(fields) : fields, block)
    this.#answered = true
    const isBodiless = bodyOmitted || status === 304
    if (answer.isRefusal) {
      this.#refusedClient = this.#client()
      if (this.#traffic.connections.isPastRefusals(this.#refusedClient)) return this.#disconnect()
    }
    try {
      // Before the answer is written, since the library knows no address after it.
      if (this.request !== undefined) this.#options.onAnswer?.(this.request, status, sentBytes(answer))
    } finally {
      this.#sendNow(status, lines, body, isBodiless, closes)
    }
  }

  #sendNow(status: number, lines: FieldLines, body: Uint8Array | string, isBodiless: boolean, closes: boolean): void {
    if (closes || (isBodiless && this.#traffic.closesBodiless())) this.#sendLast(status, lines, body, isBodiless)
    else if (this.#corked && this.#waitsForTurn) this.#sendNextTurn(status, lines, body, isBodiless)
    else if (this.#corked) this.#write(status, lines, body, isBodiless)
    else this.#raw.cork(() => this.#write(status, lines, body, isBodiless))
  }

  /** What waits of the answer takes room that others need. */
  cut(): void {
    this.#options.onCut?.()
    this.#raw.close()
  }

  #disconnect(): void {
    this.#watch()
    this.#raw.close()
  }

  #sendNextTurn(status: number, lines: FieldLines, body: Uint8Array | string, isBodiless: boolean): void {
    this.#watch()
    const taken = typeof body === 'string' ? body : Buffer.from(body)
    setImmediate(() => {
      if (this.aborted) this.#notePipelined()
      else this.#raw.cork(() => this.#write(status, lines, taken, isBodiless))
    })
  }

  /** The connection has closed before the answer was written: in one turn of the event loop, so most likely by a request that followed. */
  #notePipelined(): void {
    if (this.#refusedClient !== undefined) this.#traffic.connections.notePipelined(this.#refusedClient)
  }

  /** What the peer counts under. To be asked while the library still has the request. */
  #client(): string {
    return clientOfBytes(new Uint8Array(this.#raw.getRemoteAddress()))
  }

  /**
   * Closes the connection behind the answer, with the field that says so. While the handler runs the library would go on with what came behind the request,
   * and forget to close; one turn later it lets a client go that has sent more.
   */
  #sendLast(status: number, lines: FieldLines, body: Uint8Array | string, isBodiless: boolean): void {
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

  /** The library closes behind a body only. Here it is told nothing of the end of the fields, which is an empty line, and is closed. */
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
    if (this.#over) return
    this.#over = true
    this.#traffic.requests--
    this.#traffic.waiting.remove(this)
  }

  #write(status: number, lines: FieldLines, body: Uint8Array | string, isBodiless: boolean): void {
    this.#writeHead(status, lines)
    if (!isBodiless) return this.#writeBody(body)
    // A 304 has no body and no length (RFC 9110 §15.4.5). The length of a body that is omitted is a field like others: told of it in another way the library
    // waits for that body, and drops the connection at its next request.
    if (status !== 304) this.#raw.writeHeader('content-length', String(Buffer.byteLength(body)))
    // The library does not take an answer without a body for one, and ends the process where nobody watches.
    this.#watch()
    this.#raw.endWithoutBody()
    this.#end()
  }

  #writeHead(status: number, { firstName, rest }: FieldLines): void {
    if (status !== 200) this.#raw.writeStatus(`${status} ${REASON_PHRASE[status] ?? ''}`)
    if (firstName !== '') this.#raw.writeHeader(firstName, rest)
  }

  #writeBody(body: Uint8Array | string): void {
    const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length
    if (this.#raw.tryEnd(body, bytes)[1]) this.#end()
    else this.#writeRest(body, bytes)
  }

  /** The system has taken a part only: the rest is kept until the client has read so much. The library lets a client go that reads nothing for 10 s. */
  #writeRest(body: Uint8Array | string, bytes: number): void {
    this.#watch()
    const from = this.#raw.getWriteOffset()
    const rest = typeof body === 'string' ? Buffer.from(body).subarray(from) : Buffer.from(body.subarray(from))
    this.#raw.onWritable((at) => {
      if (this.aborted) return true
      const [wasTaken, isWhole] = this.#raw.tryEnd(rest.subarray(at - from), bytes)
      if (isWhole) this.#end()
      return wasTaken
    })
    this.#traffic.waiting.add(this, this.#client(), rest.length)
  }
}
