import { canonicalAddress } from '../kernel/process/network.ts'
import { BodyStream } from './body-stream.ts'
import { type BodyEnd, type BodyPace, type HttpRequest, type TakeChunk, watchPace } from './port.ts'
import type { UwsResponse } from './uws-response.ts'

/** The parts of the library's request that are used. */
export interface RawRequest {
  getHeader(name: string): string
  getQuery(): string | undefined
  forEach(each: (name: string, value: string) => void): void
}

/** The parts of the library's response that a request uses. */
export interface RawSource {
  getRemoteAddressAsText(): ArrayBuffer
  onData(take: (chunk: ArrayBuffer, isLast: boolean) => void): unknown
  pause(): unknown
  resume(): unknown
}

/** Fields of most requests whose first line is enough. Joining the lines costs a microsecond. */
const FIRST_LINE_ONLY: ReadonlySet<string> = new Set(['accept-encoding', 'transfer-encoding'])

export class UwsRequest implements HttpRequest {
  readonly method: string
  readonly path: string
  readonly #request: RawRequest
  readonly #raw: RawSource
  readonly #response: UwsResponse
  readonly #length: string

  constructor(
    request: RawRequest,
    raw: RawSource,
    response: UwsResponse,
    method: string,
    path: string,
    length: string,
  ) {
    this.method = method
    this.path = path
    this.#request = request
    this.#raw = raw
    this.#response = response
    this.#length = length
  }

  get query(): string {
    return this.#request.getQuery() ?? ''
  }

  header(name: string): string {
    if (name === 'content-length') return this.#length
    const first = this.#request.getHeader(name)
    return first === '' || FIRST_LINE_ONLY.has(name) ? first : this.#joined(name)
  }

  /** Joins the lines of a field (RFC 9110 §5.3), of which the library returns only the first. */
  #joined(wanted: string): string {
    let joined = ''
    this.#request.forEach((name, value) => {
      if (name === wanted) joined += joined === '' ? value : `, ${value}`
    })
    return joined
  }

  remoteAddress(): string {
    return canonicalAddress(Buffer.from(this.#raw.getRemoteAddressAsText()).toString())
  }

  body(bytesMax: number, pace?: BodyPace): Promise<Buffer | 'too large' | 'too slow' | 'aborted'> {
    const field = this.#length
    const announced = Number(field || 0)
    if (announced > bytesMax) return Promise.resolve('too large')
    // uWebSockets.js ends a body at its announced length, so the body is copied once, into its
    // final buffer.
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
        // uWebSockets.js invalidates the chunk when this callback returns.
        if (whole === undefined) chunks.push(Buffer.from(Buffer.from(chunk)))
        else whole.set(new Uint8Array(chunk), at)
        if (isLast) resolve(whole?.subarray(0, bytes) ?? Buffer.concat(chunks, bytes))
      })
    })
  }

  bodyChunks(bytesMax: number, take: TakeChunk, pace?: BodyPace): Promise<BodyEnd> {
    if (Number(this.#length || 0) > bytesMax) return Promise.resolve('too large')
    const stream = new BodyStream({
      ...{ bytesMax, take, pace },
      pause: () => void (this.#response.aborted || this.#raw.pause()),
      resume: () => void (this.#response.aborted || this.#raw.resume()),
    })
    this.#response.onAborted(() => stream.abort())
    this.#raw.onData((chunk, isLast) => {
      // uWebSockets.js invalidates the chunk when this callback returns.
      stream.push(new Uint8Array(chunk.slice(0)))
      if (isLast) stream.complete()
    })
    return stream.ended
  }
}
