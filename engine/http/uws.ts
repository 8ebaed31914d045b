import type * as Uws from 'uWebSockets.js'
import { Fault } from '../process/error-codes.ts'
import {
  type BodyPace,
  type FieldBlock,
  fieldText,
  type HttpListener,
  type HttpListenOptions,
  type HttpRequest,
  type HttpResponse,
  REASON_PHRASE,
  sendError,
  sentBytes,
  watchPace,
  whenIdle,
} from './port.ts'

/*
 * The only file that touches uWebSockets.js. Two rules of that library end the process when broken, without a JavaScript
 * exception: a handler must answer or set onAborted before it returns, and an aborted response must not be touched.
 * So onAborted is set for who has not answered when the handler returns or waits for a body, and every write asks `aborted`.
 *
 * A call into the library costs 0.15 us, however little it does: fields are written by one call, as the lines that they are.
 */

/**
 * Starts a listener over uWebSockets.js. Several threads may listen on one port; the kernel then spreads the connections.
 *
 * @throws whatever importing the library throws where it has no binary for this Node or C library.
 */
export async function listenUws(options: HttpListenOptions): Promise<HttpListener> {
  const uws = (await import('uWebSockets.js')) as typeof Uws & { _cfg?: (option: string) => void }
  // No `uWebSockets` banner in the answers.
  uws._cfg?.('silent')
  const busy = { requests: 0 }
  const first = await open(uws, options, busy)
  const apps = [first]
  const port = uws.us_socket_local_port(first.socket)
  return {
    implementation: 'uWebSockets.js',
    port,
    async reload() {
      // An app keeps its certificate for ever, so another one takes the port over. They share it for a moment.
      const next = await open(uws, { ...options, port }, busy)
      const before = apps.at(-1)
      if (before !== undefined) uws.us_listen_socket_close(before.socket)
      apps.push(next)
    },
    async drain(deadlineMs) {
      const last = apps.at(-1)
      if (last !== undefined) uws.us_listen_socket_close(last.socket)
      await whenIdle(() => busy.requests, deadlineMs)
      for (const { app } of apps) app.close()
    },
  }
}

interface OpenApp {
  readonly app: Uws.TemplatedApp
  readonly socket: Uws.us_listen_socket
}

async function open(uws: typeof Uws, options: HttpListenOptions, busy: { requests: number }): Promise<OpenApp> {
  const app = options.tls
    ? uws.SSLApp({ key_file_name: options.tls.keyFile, cert_file_name: options.tls.certificateFile })
    : uws.App()
  for (const path of options.usualPaths ?? []) {
    app.get(path, (raw, request) => answer(raw, request, 'GET', path, options, busy))
  }
  app.any('/*', (raw, request) => {
    answer(raw, request, request.getCaseSensitiveMethod(), request.getUrl(), options, busy)
  })
  const socket = await new Promise<Uws.us_listen_socket | false>((resolve) => {
    app.listen(options.address, options.port, resolve)
  })
  if (socket === false) throw new Fault('PORT_TAKEN', `${options.address} port ${options.port}: cannot listen`)
  return { app, socket }
}

function answer(
  raw: Uws.HttpResponse,
  rawRequest: Uws.HttpRequest,
  method: string,
  path: string,
  options: HttpListenOptions,
  busy: { requests: number },
): void {
  busy.requests++
  const response = new UwsResponse(raw, busy, options.onAnswer)
  const request = new UwsRequest(rawRequest, raw, response, method, path)
  const failed = (error: unknown): void => {
    options.log.error({ path, err: error }, 'request failed')
    sendError(response, 500, 'Internal error', [], method === 'HEAD')
  }
  try {
    const later = options.handler(request, response)
    response.returned()
    if (later !== undefined) later.catch(failed)
  } catch (error) {
    failed(error)
  }
}

class UwsRequest implements HttpRequest {
  readonly method: string
  readonly path: string
  readonly #request: Uws.HttpRequest
  readonly #raw: Uws.HttpResponse
  readonly #response: UwsResponse

  constructor(request: Uws.HttpRequest, raw: Uws.HttpResponse, response: UwsResponse, method: string, path: string) {
    this.method = method
    this.path = path
    this.#request = request
    this.#raw = raw
    this.#response = response
  }

  get query(): string {
    return this.#request.getQuery() ?? ''
  }

  header(name: string): string {
    return this.#request.getHeader(name)
  }

  remoteAddress(): string {
    return Buffer.from(this.#raw.getRemoteAddressAsText()).toString()
  }

  body(bytesMax: number, pace?: BodyPace): Promise<Buffer | 'too large' | 'too slow' | 'aborted'> {
    const field = this.#request.getHeader('content-length')
    const announced = Number(field || 0)
    if (announced > bytesMax) return Promise.resolve('too large')
    // uWebSockets.js ends a body where its announced length ends, so it is copied once, to where it stays.
    const whole = field === '' || !(announced >= 0) ? undefined : Buffer.allocUnsafe(announced)
    const most = whole?.length ?? bytesMax
    return new Promise((settle) => {
      const chunks: Buffer[] = []
      let bytes = 0
      let isEnded = false
      const stopWatch = watchPace(
        pace,
        () => bytes,
        () => resolve('too slow'),
      )
      const resolve = (body: Buffer | 'too large' | 'too slow' | 'aborted'): void => {
        stopWatch()
        isEnded = true
        settle(body)
      }
      this.#response.onAborted(() => resolve('aborted'))
      this.#raw.onData((chunk, isLast) => {
        if (isEnded) return
        const at = bytes
        bytes += chunk.byteLength
        if (bytes > most) {
          chunks.length = 0
          resolve('too large')
          return
        }
        // uWebSockets.js takes the chunk back when this returns.
        if (whole === undefined) chunks.push(Buffer.from(Buffer.from(chunk)))
        else whole.set(new Uint8Array(chunk), at)
        if (isLast) resolve(whole?.subarray(0, bytes) ?? Buffer.concat(chunks, bytes))
      })
    })
  }
}

class UwsResponse implements HttpResponse {
  aborted = false
  #answered = false
  /** The library has put writes together for as long as the handler runs; later we must ask for that. */
  #corked = true
  #watched = false
  #tellAborted: (() => void) | undefined
  readonly #raw: Uws.HttpResponse
  readonly #busy: { requests: number }
  readonly #onAnswer: HttpListenOptions['onAnswer']

  constructor(raw: Uws.HttpResponse, busy: { requests: number }, onAnswer: HttpListenOptions['onAnswer']) {
    this.#raw = raw
    this.#busy = busy
    this.#onAnswer = onAnswer
  }

  /** The handler has returned. Who has not answered will be told when the peer goes. */
  returned(): void {
    this.#corked = false
    if (!this.#answered) this.#watch()
  }

  onAborted(tell: () => void): void {
    this.#tellAborted = tell
    this.#watch()
  }

  send(
    status: number,
    fields: readonly string[],
    body: Uint8Array | string,
    bodyOmitted = false,
    block?: FieldBlock,
  ): void {
    if (this.aborted || this.#answered) return
    this.#answered = true
    this.#busy.requests--
    this.#onAnswer?.(status, sentBytes(status, body, bodyOmitted))
    if (this.#corked) this.#write(status, fields, body, bodyOmitted, block)
    else this.#raw.cork(() => this.#write(status, fields, body, bodyOmitted, block))
  }

  #watch(): void {
    if (this.#watched) return
    this.#watched = true
    this.#raw.onAborted(() => {
      this.aborted = true
      this.#tellAborted?.()
      if (!this.#answered) this.#busy.requests--
    })
  }

  #write(
    status: number,
    fields: readonly string[],
    body: Uint8Array | string,
    bodyOmitted: boolean,
    block: FieldBlock | undefined,
  ): void {
    if (status !== 200) this.#raw.writeStatus(`${status} ${REASON_PHRASE[status] ?? ''}`)
    let closes = false
    let written = fields
    const connection = fields.indexOf('connection')
    if (connection >= 0) {
      // The library says so itself where it closes the connection.
      closes = fields[connection + 1] === 'close'
      written = fields.filter((_, at) => at !== connection && at !== connection + 1)
    }
    let text = block?.text ?? ''
    if (written.length > 0) text += `${text === '' ? '' : '\r\n'}${fieldText(written)}`
    const colon = text.indexOf(': ')
    if (colon > 0) this.#raw.writeHeader(text.slice(0, colon), text.slice(colon + 2))
    // A 304 has no body and no length (RFC 9110 §15.4.5). The length of a body that is omitted is a field like others: told of it in another way the library
    // waits for that body, and drops the connection at its next request.
    if (status !== 304 && bodyOmitted) this.#raw.writeHeader('content-length', String(Buffer.byteLength(body)))
    if (status === 304 || bodyOmitted) {
      // The library does not take an answer without a body for one, and ends the process where nobody watches.
      this.#watch()
      this.#raw.endWithoutBody()
    } else this.#raw.end(body, closes)
  }
}
