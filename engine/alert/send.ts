import type { Clock } from '../kernel/process/clock.ts'
import { type ChannelSettings, secretsOf } from './channel-settings.ts'
import { slackBody, teamsBody } from './chat.ts'
import { type Post, post } from './http-post.ts'
import type { AlertMessage, CompletedMessage } from './message.ts'
import { type SendOptions, type SendOutcome, TOO_LATE } from './send-outcome.ts'
import { sendMail } from './smtp.ts'
import { sendSyslog } from './syslog.ts'
import { signedFields } from './webhook-signature.ts'

/**
 * Sends a message to the receiver of a channel, once. Settles within `options.timeoutMs`, and at
 * once when the signal is aborted. Rejects only on an internal error.
 */
export function send(
  settings: ChannelSettings,
  message: CompletedMessage,
  clock: Clock,
  options: SendOptions,
): Promise<SendOutcome> {
  return inTime(options, (signal) => sendOnce(settings, message, clock, { ...options, signal }))
}

/**
 * Aborts `work` after the time, or with the signal of the options, and does not wait for it then: a
 * name lookup, for example, cannot be aborted.
 *
 * With a timer of its own, since AbortSignal.any() of an AbortSignal.timeout() can be collected as
 * garbage before its time.
 */
export async function inTime(
  { timeoutMs, signal }: Pick<SendOptions, 'timeoutMs' | 'signal'>,
  work: (signal: AbortSignal) => Promise<SendOutcome>,
): Promise<SendOutcome> {
  const controller = new AbortController()
  const abort = (): void => controller.abort()
  const late = new Promise<SendOutcome>((resolve) => {
    // After the work had its chance: a receiver may have accepted the message already.
    const end = (): void => void setImmediate(resolve, { kind: 'retry', why: TOO_LATE })
    controller.signal.addEventListener('abort', end, { once: true })
  })
  const timer = setTimeout(abort, timeoutMs)
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  try {
    return await Promise.race([work(controller.signal), late])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}

async function sendOnce(
  settings: ChannelSettings,
  message: CompletedMessage,
  clock: Clock,
  options: SendOptions,
): Promise<SendOutcome> {
  if (settings.kind === 'smtp') return sendMail(settings, message, options)
  if (message.type === 'report' || message.type === 'manager') {
    return { kind: 'refused', why: 'reports and messages to managers are sent by mail only' }
  }
  switch (settings.kind) {
    case 'webhook':
    case 'slack':
    case 'teams':
      return post(postOf(settings, message, clock), options)
    case 'syslog':
      return sendSyslog(settings, message, options)
    default:
      return settings satisfies never
  }
}

function postOf(
  settings: Extract<ChannelSettings, { readonly url: string }>,
  message: AlertMessage,
  clock: Clock,
): Post {
  const { url, ca } = settings
  const isWebhook = settings.kind === 'webhook'
  const body = isWebhook ? JSON.stringify(message) : settings.kind === 'slack' ? slackBody(message) : teamsBody(message)
  const signed = isWebhook ? signedFields(settings.secret, message.id, clock.nowMs(), body) : {}
  const fields = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)), ...signed }
  return { url, ca, fields, body, secrets: secretsOf(settings) }
}
