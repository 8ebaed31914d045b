import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { assertExpected } from '../kernel/process/failure.ts'
import { connectTo, requestOver } from '../kernel/process/outbound-address.ts'
import { ALERT_ANSWER_BYTES_MAX } from '../limits.ts'
import { answerText, connectionFailure, type SendOptions, type SendOutcome } from './send-outcome.ts'

/** The longest delay that a receiver can request with Retry-After, in milliseconds. */
const RETRY_AFTER_MAX_MS = 3_600_000
/** How long the body of an answer is read, in milliseconds. */
const BODY_MS_MAX = 2000
/**
 * Statuses that say that this message will never be accepted, although others may be. All others
 * say that the receiver is not ready, or that the channel has wrong settings, which can be fixed.
 */
const REFUSED = new Set([400, 406, 409, 411, 413, 414, 415, 422, 431])

export interface Post {
  readonly url: string
  readonly ca: string
  readonly fields: Readonly<Record<string, string>>
  readonly body: string
  readonly secrets: readonly string[]
}

/**
 * Sends one POST request over a connection of its own. Follows no redirect. Uses the proxy of
 * HTTPS_PROXY, which decides by its own rules to which names it connects.
 */
export async function post({ url, ca, fields, body, secrets }: Post, options: SendOptions): Promise<SendOutcome> {
  const { signal } = options
  let socket: Socket | undefined
  try {
    const to = new URL(url)
    socket = await connectTo(to, options.allowed, options.timeoutMs)
    const headers = { ...fields, 'user-agent': `posture-service/${options.version}` }
    const answer = await requestOver(socket, to, { method: 'POST', headers, signal }, body, ca === '' ? {} : { ca })
    return outcomeOf(answer, await bodyOf(answer, signal), secrets)
  } catch (error) {
    assertExpected(error)
    return { kind: 'retry', why: answerText(connectionFailure(error, signal), secrets) }
  } finally {
    socket?.destroy()
  }
}

function outcomeOf(
  { statusCode = 0, statusMessage = '', headers }: IncomingMessage,
  body: string,
  secrets: readonly string[],
): SendOutcome {
  const status = `${statusCode} ${answerText(statusMessage, secrets)}`.trim()
  const text = answerText(body, secrets)
  const said = text === '' ? status : `${status}: ${text}`
  if (statusCode >= 200 && statusCode < 300) return { kind: 'delivered', answer: said }
  if (REFUSED.has(statusCode)) return { kind: 'refused', why: said }
  if (statusCode >= 300 && statusCode < 400) return { kind: 'retry', why: `${status}: redirects are not followed` }
  const seconds = /^\d{1,9}$/.test(headers['retry-after'] ?? '') ? Number(headers['retry-after']) : undefined
  if (seconds === undefined) return { kind: 'retry', why: said }
  return { kind: 'retry', why: said, afterMs: Math.min(seconds * 1000, RETRY_AFTER_MAX_MS) }
}

/**
 * The beginning of the body. The rest is not read: the connection is closed. Never rejects, because
 * the status has arrived: a message that was accepted must not be sent again.
 */
async function bodyOf(answer: IncomingMessage, signal: AbortSignal): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  const end = (): void => void answer.destroy()
  const timer = setTimeout(end, BODY_MS_MAX)
  signal.addEventListener('abort', end, { once: true })
  try {
    for await (const part of answer) {
      parts.push(part as Buffer)
      bytes += (part as Buffer).length
      if (bytes >= ALERT_ANSWER_BYTES_MAX) break
    }
  } catch (error) {
    assertExpected(error)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', end)
  }
  return Buffer.concat(parts).toString('utf8', 0, ALERT_ANSWER_BYTES_MAX)
}
