import type { Logger } from '../process/log.ts'

/** A request, as far as handlers need it. It may be asked only until the handler first awaits or returns. */
export interface HttpRequest {
  /** Upper case. */
  readonly method: string
  /** As sent, from the first slash to the question mark; not decoded. */
  readonly path: string
  /** Behind the question mark, not decoded; empty where there is none. */
  readonly query: string
  /** The value of a field whose name is given in lower case; empty where it is missing. */
  header(name: string): string
  /** Textual address of the peer. */
  remoteAddress(): string
  /**
   * Collects the body. Must be called before the handler first awaits.
   * A body that announces or grows beyond `bytesMax` is `too large`, one that falls behind the pace `too slow`, and no more of it is read.
   */
  body(bytesMax: number, pace?: BodyPace): Promise<Buffer | 'too large' | 'too slow' | 'aborted'>
}

/** How fast a body must come: behind the first moment, on average. */
export interface BodyPace {
  readonly graceMs: number
  readonly bytesPerSecondMin: number
}

export interface HttpResponse {
  /** The peer has gone, so that nothing need be made for it any more. `send` then does nothing. */
  readonly aborted: boolean
  /**
   * Answers, once. `fields` holds names and values in turn, `block` those that are the same in many answers. With `bodyOmitted` only the body's length is
   * sent, as for HEAD. The body's bytes are taken before this returns.
   */
  send(
    status: number,
    fields: readonly string[],
    body: Uint8Array | string,
    bodyOmitted?: boolean,
    block?: FieldBlock,
  ): void
}

/** Fields that many answers have, put together once: names and values in turn, none of them from outside. */
export class FieldBlock {
  readonly fields: readonly string[]
  readonly firstName: string
  /** What stands behind the first name and its colon in an answer (RFC 9112 §5), without the last line's end. */
  readonly rest: string

  /** @throws RangeError where a name or value would end its line. */
  constructor(fields: readonly string[]) {
    const [name, value, ...others] = fields
    if (name === undefined || value === undefined) throw new RangeError('a block of no field')
    this.fields = fields
    this.firstName = ofOneLine(name)
    this.rest = ofOneLine(value) + fieldLines(others)
  }
}

/** Lines of fields, names and values in turn, each behind the end of the line before. @throws RangeError where a name or value would end its line. */
export function fieldLines(fields: readonly string[]): string {
  let text = ''
  for (let at = 0; at + 1 < fields.length; at += 2) {
    text += `\r\n${ofOneLine(fields[at] ?? '')}: ${ofOneLine(fields[at + 1] ?? '')}`
  }
  return text
}

function ofOneLine(text: string): string {
  if (text.includes('\n') || text.includes('\r')) throw new RangeError(`a field of two lines: ${JSON.stringify(text)}`)
  return text
}

/** Answers every request, at once or later. What it throws is logged and answered by 500. */
export type HttpHandler = (request: HttpRequest, response: HttpResponse) => void | Promise<void>

export interface HttpListenOptions {
  readonly address: string
  readonly port: number
  /** PEM files; without them the listener speaks plain HTTP. */
  readonly tls?: { readonly keyFile: string; readonly certificateFile: string }
  readonly handler: HttpHandler
  /** Paths that most requests have: those of GET are told apart before the handler is called. */
  readonly usualPaths?: readonly string[]
  /** Told of each answer: its status, and how many bytes of body are sent. */
  readonly onAnswer?: (status: number, bodyBytes: number) => void
  /** Told of each answer that was cut since too much waited for clients (ANSWERS_WAITING_BYTES_MAX). */
  readonly onCut?: () => void
  readonly log: Logger
}

export interface HttpListener {
  /** `uWebSockets.js` or `node:http`, for the log. */
  readonly implementation: string
  readonly port: number
  /** Gives new connections the certificate that stands in the files now; those that are there keep theirs. */
  reload(): Promise<void>
  /** Accepts no more connections, lets the system take the answers under way for `deadlineMs`, then closes what is left, and logs how much that is. */
  drain(deadlineMs: number): Promise<void>
}

export type HttpListen = (options: HttpListenOptions) => Promise<HttpListener>

/** Reason phrases of the statuses that we answer (RFC 9110 §15, RFC 6585). */
export const REASON_PHRASE: Readonly<Record<number, string>> = {
  200: 'OK',
  304: 'Not Modified',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  412: 'Precondition Failed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
  505: 'HTTP Version Not Supported',
}

/** The body and fields of every error answer: `{ "error": message }`. */
export function sendError(
  response: HttpResponse,
  status: number,
  message: string,
  fields: readonly string[] = [],
  bodyOmitted = false,
): void {
  response.send(
    status,
    ['content-type', 'application/json', ...fields],
    JSON.stringify({ error: message }),
    bodyOmitted,
  )
}

/** Bytes of a body as it is sent. */
export function sentBytes(status: number, body: Uint8Array | string, bodyOmitted: boolean): number {
  if (bodyOmitted || status === 304) return 0
  return typeof body === 'string' ? Buffer.byteLength(body) : body.length
}

const PACE_LOOK_MS = 1000

/** Calls `onSlow` once if a body falls behind its pace. Answers how to stop watching. */
export function watchPace(pace: BodyPace | undefined, bytes: () => number, onSlow: () => void): () => void {
  if (pace === undefined) return () => {}
  const beganMs = performance.now()
  const timer = setInterval(
    () => {
      const seconds = (performance.now() - beganMs - pace.graceMs) / 1000
      if (seconds <= 0 || bytes() >= seconds * pace.bytesPerSecondMin) return
      clearInterval(timer)
      onSlow()
    },
    Math.min(PACE_LOOK_MS, Math.max(1, pace.graceMs)),
  )
  timer.unref()
  return () => clearInterval(timer)
}

const DRAIN_POLL_MS = 10

/** Waits until no request is under way or the deadline has passed, and then logs how many are cut. */
export async function whenIdle(requests: () => number, deadlineMs: number, log: Logger): Promise<void> {
  const deadline = performance.now() + deadlineMs
  while (requests() > 0) {
    if (performance.now() >= deadline) {
      log.warn({ requests: requests(), deadlineMs }, 'answers under way are cut: the time to end them has passed')
      return
    }
    await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS))
  }
}
