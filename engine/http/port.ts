import type { Logger } from '../kernel/process/log.ts'
import type { TlsFiles } from './certificate.ts'
import type { ConnectionLimits } from './connections.ts'
import type { FieldBlock } from './fields.ts'

/** A request, as handlers see it. Valid only until the handler first awaits or returns. */
export interface HttpRequest {
  /** Upper case. */
  readonly method: string
  /** As sent, up to the question mark; not decoded. */
  readonly path: string
  /** After the question mark, not decoded. Empty if there is none. */
  readonly query: string
  /** The value of a field, by its lower-case name. Empty if missing. */
  header(name: string): string
  /** The peer's address as text; one of IPv4 also if it arrives in IPv6 (canonicalAddress). */
  remoteAddress(): string
  /**
   * Reads the body. Must be called before the handler first awaits. `too large`: the announced or
   * received size exceeds `bytesMax`. `too slow`: the body is slower than `pace`. Reading stops in
   * both cases.
   */
  body(bytesMax: number, pace?: BodyPace): Promise<Buffer | 'too large' | 'too slow' | 'aborted'>
  /**
   * The same for a body that is never in memory as a whole: `take` receives its chunks as they
   * arrive. Rejects with the error of `take`.
   */
  bodyChunks(bytesMax: number, take: TakeChunk, pace?: BodyPace): Promise<BodyEnd>
}

/**
 * Receives a chunk of a body, which it may keep. Nothing more is read from the connection until the
 * promise that it may return resolves.
 */
export type TakeChunk = (chunk: Uint8Array) => void | Promise<void>

/** `ended`: the whole body was taken. */
export type BodyEnd = 'ended' | 'too large' | 'too slow' | 'aborted'

/** Minimum average rate of a body, after a grace period. */
export interface BodyPace {
  readonly graceMs: number
  readonly bytesPerSecondMin: number
}

export interface HttpResponse {
  /** The client has disconnected: nothing needs to be computed for it. `send` does nothing. */
  readonly aborted: boolean
  /**
   * Sends the response, once. Copies the body before it returns. @throws RangeError if a field
   * contains a line end; then nothing is sent.
   */
  send(answer: HttpAnswer): void
}

/** The content of a response. */
export interface HttpAnswer {
  readonly status: number
  readonly body: Uint8Array | string
  /** Names and values alternate. */
  readonly fields?: readonly string[]
  /** Fields shared by many responses. */
  readonly block?: FieldBlock
  /** Sends only the length of the body, as for HEAD. */
  readonly bodyOmitted?: boolean
  /**
   * The client has sent no valid key or token. A client with too many refusals is disconnected
   * without a response (REFUSALS_PER_MINUTE_MAX).
   */
  readonly isRefusal?: boolean
}

/** Answers a request, now or later. An exception is logged and answered with 500. */
export type HttpHandler = (request: HttpRequest, response: HttpResponse) => void | Promise<void>

export interface HttpListenOptions {
  readonly address: string
  readonly port: number
  /** PEM files. Without them, the listener serves plain HTTP. */
  readonly tls?: { readonly keyFile: string; readonly certificateFile: string }
  readonly handler: HttpHandler
  /** Frequent paths, which are routed for GET before the handler is called. */
  readonly fastPaths?: readonly string[]
  /** Sends Strict-Transport-Security with every response (RFC 6797). */
  readonly hsts?: boolean
  /** Without limits, every connection is accepted. */
  readonly limits?: ConnectionLimits
  /** The thread's row of connection counters (connections.ts). */
  readonly connectionCounters?: Float64Array
  /** Called once for each answered request. */
  readonly onAnswer?: OnAnswer
  /**
   * Called for each response that was aborted because too many bytes waited for clients
   * (ANSWERS_WAITING_BYTES_MAX).
   */
  readonly onAnswerAborted?: () => void
  readonly log: Logger
}

/**
 * Receives the request (only `method`, `path` and `remoteAddress()` may be used), the status, and
 * the sent bytes of body. Called while the response is being sent. An exception is logged like a
 * handler's and does not stop the response.
 */
type OnAnswer = (request: HttpRequest, status: number, bodyBytes: number) => void

export interface HttpListener {
  /** `uWebSockets.js` or `node:http`, for the log. */
  readonly implementation: string
  readonly port: number
  /** Loads the certificate files again for new connections. Open connections are unaffected. */
  reload(files?: TlsFiles): Promise<void>
  /**
   * Stops accepting connections and waits up to `deadlineMs` for responses in progress. Closes the
   * remaining connections and logs their number.
   */
  drain(deadlineMs: number): Promise<void>
}

/** Names and values alternate. A browser remembers for a year to use only HTTPS with this host. */
export const HSTS = ['strict-transport-security', 'max-age=31536000'] as const

/** Reason phrases of the statuses in use (RFC 9110 §15, RFC 6585). */
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
  422: 'Unprocessable Content',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
  505: 'HTTP Version Not Supported',
}

/** Sends an error response: `{ "error": message }`. */
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

/**
 * Answers a client without a valid key or token as `sendError` does, and counts the refusal.
 */
export function refuse(response: HttpResponse, status: number, message: string, fields: readonly string[] = []): void {
  const body = JSON.stringify({ error: message })
  response.send({ status, fields: ['content-type', 'application/json', ...fields], body, isRefusal: true })
}

/** The bytes of the body that are sent. */
export function sentBytes({ status, body, bodyOmitted = false }: HttpAnswer): number {
  if (bodyOmitted || status === 304) return 0
  return typeof body === 'string' ? Buffer.byteLength(body) : body.length
}

const PACE_CHECK_MS = 1000

/**
 * Calls `onSlow` once if a body is slower than its pace. Returns a function that stops watching.
 */
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

/** Waits until no request is in progress. At the deadline, logs how many are aborted. */
export async function whenIdle(requests: () => number, deadlineMs: number, log: Logger): Promise<void> {
  const deadline = performance.now() + deadlineMs
  while (requests() > 0) {
    if (performance.now() >= deadline) {
      log.warn({ requests: requests(), deadlineMs }, 'aborting responses in progress: the deadline has passed')
      return
    }
    await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS))
  }
}
