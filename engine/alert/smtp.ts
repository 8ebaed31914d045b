import { createRequire } from 'node:module'
import { isIP } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { assertExpected } from '../kernel/process/failure.ts'
import { withoutBrackets } from '../kernel/process/network.ts'
import { connectChecked } from '../kernel/process/outbound-address.ts'
import type { ReportMessage } from '../store/report-schedules.ts'
import { type SmtpSettings, secretsOf } from './channel-settings.ts'
import { type AlertMessage, type CompletedMessage, linesOfAlert, wordsOf } from './message.ts'
import { answerText, connectionFailure, type SendOptions, type SendOutcome } from './send-outcome.ts'

const require = createRequire(import.meta.url)

/** Alerts with their details in one mail. */
const MAIL_ALERTS_MAX = 50

const NOT_ATTACHED =
  'The report is too large to be attached. It is in the console (Report), and posture-admin report --out writes it.'

/** SMTP replies to MAIL, RCPT and DATA from this one on are permanent (RFC 5321 §4.2.1). */
const PERMANENT_FROM = 500
/** Errors of nodemailer about one message, not about the connection or the sign-in. */
const MESSAGE_ERRORS = new Set(['EENVELOPE', 'EMESSAGE'])

/** Errors of nodemailer about the connection. Their messages name no address. */
const LIBRARY_CODES = new Set(['ESOCKET', 'ETLS', 'ECONNECTION', 'EAUTH', 'EPROTOCOL'])

/** The errors of nodemailer: code of the library, and reply of the server. */
interface MailError extends NodeJS.ErrnoException {
  readonly responseCode?: number
  readonly response?: string
}

/** Sends one mail over a connection of its own, whose address was checked. */
export async function sendMail(
  settings: SmtpSettings,
  message: CompletedMessage,
  options: SendOptions,
): Promise<SendOutcome> {
  // Loaded on demand: most services send no mail.
  const { createTransport } = require('nodemailer') as typeof import('nodemailer')
  const { host, port, tls, user, password, ca } = settings
  const bare = withoutBrackets(host)
  const { signal } = options
  // Servers repeat the address of a receiver. Dead letters are not searched for managers to erase.
  const secrets = [...secretsOf(settings), ...(message.type === 'manager' ? [message.to] : [])]
  try {
    const socket = await connectChecked(bare, port, { allowed: options.allowed, timeoutMs: options.timeoutMs })
    const abort = (): void => void socket.destroy(Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' }))
    signal.addEventListener('abort', abort, { once: true })
    // Aborted while connecting: the event came before the listener.
    if (signal.aborted) abort()
    const transport = createTransport({
      host: bare,
      port,
      secure: tls === 'implicit',
      requireTLS: tls === 'starttls',
      ignoreTLS: tls === 'off',
      connection: socket,
      connectionTimeout: options.timeoutMs,
      greetingTimeout: options.timeoutMs,
      socketTimeout: options.timeoutMs,
      tls: {
        minVersion: 'TLSv1.2',
        ...(ca === '' ? {} : { ca }),
        ...(isIP(bare) === 0 ? { servername: bare } : {}),
      },
      ...(user === '' ? {} : { auth: { user, pass: password } }),
      disableFileAccess: true,
      disableUrlAccess: true,
    })
    try {
      const { response } = await transport.sendMail(mailOf(settings, message))
      return { kind: 'delivered', answer: answerText(response, secrets) }
    } finally {
      signal.removeEventListener('abort', abort)
      transport.close()
      socket.destroy()
    }
  } catch (error) {
    assertExpected(error)
    const { code = '', responseCode = 0, response = '' } = error as MailError
    const said = answerText(response, secrets)
    const isPermanent = responseCode >= PERMANENT_FROM && MESSAGE_ERRORS.has(code)
    if (isPermanent) return { kind: 'refused', why: said }
    if (said !== '') return { kind: 'retry', why: said }
    // The library replaces the code of the connection by its own.
    const isOfLibrary = LIBRARY_CODES.has(code) && !signal.aborted
    return { kind: 'retry', why: answerText(isOfLibrary ? error.message : connectionFailure(error, signal), secrets) }
  }
}

function mailOf({ from, to }: SmtpSettings, message: CompletedMessage) {
  const domain = from.slice(from.lastIndexOf('@') + 1).replace(/[^a-z0-9.-]/gi, '')
  return {
    from,
    ...contentOf(message, to),
    // The same in each attempt: mail servers and programs drop the second one.
    messageId: `<${message.id}@${domain}>`,
    date: new Date(message.created_at),
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Posture-Alert': message.id },
  }
}

function contentOf(message: CompletedMessage, toByDefault: readonly string[]) {
  switch (message.type) {
    case 'report':
      return reportMail(message, toByDefault)
    case 'manager':
      return { to: message.to, subject: `[${message.organization.name}] ${message.title}`, text: message.text }
    default:
      return alertMail(message, toByDefault)
  }
}

/** Text only: names in alerts come from networks and must not become markup. */
function alertMail(message: AlertMessage, to: readonly string[]) {
  return { to: [...to], subject: `[${message.organization.name}] ${message.title}`, text: textOf(message) }
}

/** The report is attached: mail programs remove style sheets and charts. */
function reportMail({ to, title, text, html, created_at }: ReportMessage, toByDefault: readonly string[]) {
  const [date = ''] = created_at.split('T')
  const mail = { to: [...(to.length > 0 ? to : toByDefault)], subject: title }
  if (html === '') return { ...mail, text: `${text}\n\n${NOT_ATTACHED}\n` }
  const content = gunzipSync(Buffer.from(html, 'base64'))
  return {
    ...mail,
    text: `${text}\n\nThe report is attached. Open it in a browser.\n`,
    attachments: [{ filename: `use-of-ai-${date}.html`, contentType: 'text/html; charset=utf-8', content }],
  }
}

function textOf(message: AlertMessage): string {
  const { organization, rule, severity, title, created_at, count, alerts, type, url = '' } = message
  const head = [title, '', `Organization: ${organization.name}`, `Time: ${created_at}`]
  if (type === 'test') return [...head, '', 'The channel works.', ''].join('\n')
  const listed = alerts.slice(0, MAIL_ALERTS_MAX).flatMap((alert) => {
    const lines = [...linesOfAlert(alert), `Id: ${alert.id}`, ...(alert.url === undefined ? [] : [alert.url])]
    return ['', `- ${alert.title}`, ...lines.map((line) => `    ${line}`)]
  })
  const others = count - Math.min(alerts.length, MAIL_ALERTS_MAX)
  const rest = others > 0 ? ['', `and ${others} more: ${url || 'posture-admin alert list shows all.'}`] : []
  return [...head, `Rule: ${wordsOf(rule)}`, `Severity: ${severity}`, ...listed, ...rest, ''].join('\n')
}
