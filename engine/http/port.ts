import type { Logger } from '../process/log.ts'
import type { FieldBlock } from './fields.ts'

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
  /** Answers, once. The body's bytes are taken before this returns. @throws RangeError where a field would end its line; nothing is sent then. */
  send(answer: HttpAnswer): void
}

/** What is sent as the answer to a request. */
export interface HttpAnswer {
  readonly status: number
  readonly body: Uint8Array | string
  /** Names and values in turn. */
  readonly fields?: readonly string[]
  /** Fields that are the same in many answers. */
  readonly block?: FieldBlock
  /** Only the length of the body is sent, as for HEAD. */
  readonly bodyOmitted?: boolean
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
  readonly fastPaths?: readonly string[]
  /** Called once for each answered request. */
  readonly onAnswer?: OnAnswer
  /** Told of each answer that was cut since too much waited for clients (ANSWERS_WAITING_BYTES_MAX). */
  readonly onCut?: () => void
  readonly log: Logger
}

/**
 * Receives the request, of which only `method`, `path` and `remoteAddress()` may be read, the status, and how many bytes of body are sent. Called while the
 * answer is being sent. What it throws does not stop the answer, and is logged as what a handler throws.
 */
export type OnAnswer = (request: HttpRequest, status: number, bodyBytes: number) => void

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
  303: 'See Other',
  304: 'Not Modified',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  409: 'Conflict',
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
  response.send({
    status,
    fields: ['content-type', 'application/json', ...fields],
    body: JSON.stringify({ error: message }),
    bodyOmitted,
  })
}

/** Bytes of a body as it is sent. */
export function sentBytes({ status, body, bodyOmitted = false }: HttpAnswer): number {
  if (bodyOmitted || status === 304) return 0
  return typeof body === 'string' ? Buffer.byteLength(body) : body.length
}

const PACE_CHECK_MS = 1000

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
    Math.min(PACE_CHECK_MS, Math.max(1, pace.graceMs)),
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
      log.warn({ requests: requests(), deadlineMs }, 'answers in progress are aborted: their time has passed')
      return
    }
    await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS))
  }
}
