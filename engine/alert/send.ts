import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../kernel/process/clock.ts'
import { assertExpected } from '../kernel/process/failure.ts'
import { connectTo, requestOver } from '../kernel/process/outbound-address.ts'
import type { SecretsKey } from '../kernel/process/secrets-key.ts'
import { ALERT_ANSWER_BYTES_MAX } from '../limits.ts'
import type { AlertChannel } from '../store/alert-channels.ts'
import { newUuid } from '../store/keys.ts'
import type { Organization } from '../store/organizations.ts'
import { type ChannelSettings, openSettings, secretsOf } from './channel-settings.ts'
import { type AlertMessage, type CompletedMessage, linesOfAlert, testMessage } from './message.ts'
import { answerText, connectionFailure, type SendOptions, type SendOutcome, TOO_LATE } from './send-outcome.ts'
import { sendMail } from './smtp.ts'
import { sendSyslog } from './syslog.ts'
import { signedFields } from './webhook-signature.ts'

/** Alerts that a person reads in one message. */
const CHAT_ALERTS_MAX = 10

/**
 * The lines of a message for people: what is known about its only alert, or its alerts and how many
 * are not listed.
 */
function linesOf({ organization, severity, count, alerts, type }: AlertMessage): { about: string; list: string[] } {
  const [first] = alerts
  const shown = alerts.slice(0, CHAT_ALERTS_MAX).map(({ title }) => title)
  const others = count > shown.length ? [`and ${count - shown.length} more`] : []
  return {
    about: type === 'test' ? organization.name : `${organization.name}, severity ${severity}`,
    list: count === 1 && first ? linesOfAlert(first) : [...shown, ...others],
  }
}

/** The body for an incoming webhook of Slack; Mattermost and Rocket.Chat accept it, too. */
function slackBody(message: AlertMessage): string {
  const { about, list } = linesOf(message)
  const lines = [`*${slackText(message.title)}*`, slackText(about), ...list.map((line) => `• ${slackText(line)}`)]
  if (message.url !== undefined) lines.push(`<${message.url}|Open in the console>`)
  return JSON.stringify({ text: lines.join('\n'), unfurl_links: false })
}

/**
 * Slack's control characters as entities. Names that others chose neither format nor mention nor
 * link: the zero-width space separates `*`, `_`, `~`, backquotes, and Mattermost's `@` and `](`.
 */
function slackText(text: string): string {
  const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }
  return text
    .replace(/[&<>]/g, (character) => entities[character] ?? '')
    .replace(/[*_~`]/g, '\u200b$&')
    .replace(/(?<![\w.])@|\](?=\()/g, '$&\u200b')
}

/** The body for a workflow of Microsoft Teams: an Adaptive Card. */
function teamsBody(message: AlertMessage): string {
  const { about, list } = linesOf(message)
  const block = (text: string, more: Readonly<Record<string, unknown>> = {}) => {
    return { type: 'TextBlock', text: teamsText(text), wrap: true, ...more }
  }
  const body = [
    block(message.title, { weight: 'Bolder', size: 'Medium' }),
    block(about, { isSubtle: true, spacing: 'None' }),
    ...list.map((line) => block(line, { spacing: 'Small' })),
  ]
  const action = { type: 'Action.OpenUrl', title: 'Open in the console', url: message.url }
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    body,
    ...(message.url !== undefined && { actions: [action] }),
  }
  return JSON.stringify({
    type: 'message',
    attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content }],
  })
}

/** Without the Markdown of text blocks: links, emphasis and lists. */
function teamsText(text: string): string {
  return text.replace(/[\\*_[\]()~`#]/g, '\\$&').replace(/^([-+]|\d+\.)/, '\\$1')
}

/** The longest delay that a receiver can request with Retry-After, in milliseconds. */
const RETRY_AFTER_MAX_MS = 3_600_000
/** How long the body of an answer is read, in milliseconds. */
const BODY_MS_MAX = 2000
/**
 * Statuses that say that this message will never be accepted, although others may be. All others
 * say that the receiver is not ready, or that the channel has wrong settings, which can be fixed.
 */
const REFUSED = new Set([400, 406, 409, 411, 413, 414, 415, 422, 431])

interface Post {
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
async function post({ url, ca, fields, body, secrets }: Post, options: SendOptions): Promise<SendOutcome> {
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

/**
 * Sends a test message once, without the queue. Rejects only on an internal error, and with
 * Fault SECRETS_KEY.
 */
export async function sendTest(
  organization: Organization,
  channel: AlertChannel,
  key: SecretsKey,
  clock: Clock,
  options: SendOptions,
): Promise<SendOutcome> {
  const settings = openSettings(key, channel)
  const message = testMessage(organization, channel, newUuid().replaceAll('-', ''), clock.nowMs())
  return send(settings, message, clock, options)
}
