import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns'
import { once } from 'node:events'
import { isIP, type Socket } from 'node:net'
import { hostname } from 'node:os'
import { setTimeout as later } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { promisify } from 'node:util'
import { cefLine } from '../export/cef.ts'
import { type FindingEvent, reporterOf } from '../export/finding-event.ts'
import { leefLine } from '../export/leef.ts'
import { ocsfLine } from '../export/ocsf.ts'
import { assertExpected } from '../kernel/process/failure.ts'
import { withoutBrackets } from '../kernel/process/network.ts'
import { checkAddress, checkedLookup, connectChecked } from '../kernel/process/outbound-address.ts'
import type { AlertSeverity } from '../store/alerts.ts'
import type { SyslogSettings } from './channel-settings.ts'
import { type AlertJson, type AlertMessage, wordsOf } from './message.ts'
import { connectionFailure, type SendOptions, type SendOutcome } from './send-outcome.ts'

/*
 * One syslog message per alert (RFC 5424 §6), in UTF-8 without line ends:
 *
 *   <131>1 2026-11-20T09:15:02.000Z host posture-service 4711 alert [svc@00000 id="ID"] CEF:0|...
 *
 * Over TCP and TLS with octet counting (RFC 6587 §3.4.1, RFC 5425 §4.3).
 */
const FACILITY_LOCAL0 = 16
/** RFC 5424 §6.2.1: error, warning, notice, informational. */
const LEVEL: Readonly<Record<AlertSeverity, number>> = { critical: 2, high: 3, medium: 4, low: 5, informational: 6 }
const APP_NAME = 'posture-service'
const NILVALUE = '-'
/** RFC 5424 §6: HOSTNAME is at most 255 characters of PRINTUSASCII. */
const HOSTNAME = /^[\x21-\x7e]{1,255}$/
/** Syslog has no answer: milliseconds to wait for the receiver to close after all was sent. */
const CLOSE_MS = 2000
/** Milliseconds to wait for the kernel's report that nobody receives datagrams. */
const DATAGRAM_ERROR_MS = 50

const LINES = { cef: cefLine, leef: leefLine, ocsf: ocsfLine } as const

/** Sends the alerts of a message, each as one syslog message, over a connection of its own. */
export async function sendSyslog(
  settings: SyslogSettings,
  message: AlertMessage,
  options: SendOptions,
): Promise<SendOutcome> {
  const { signal } = options
  const lines = syslogLines(settings, message, options.version)
  try {
    if (settings.transport === 'udp') await sendDatagrams(settings, lines, options)
    else await sendStream(settings, lines, options)
    const messages = `${lines.length} syslog message${lines.length === 1 ? '' : 's'}`
    return { kind: 'delivered', answer: `sent ${messages}; syslog has no answer` }
  } catch (error) {
    assertExpected(error)
    return { kind: 'retry', why: connectionFailure(error, signal) }
  }
}

function syslogLines({ format }: SyslogSettings, message: AlertMessage, version: string): string[] {
  const host = HOSTNAME.test(hostname()) ? hostname() : NILVALUE
  const { organization, rule, id, title, severity, created_at, alerts, type } = message
  const own: AlertJson = {
    ...{ id, title, severity, created_at, details: {} },
    subject: { kind: 'organization', id: organization.id, name: organization.name },
  }
  return (type === 'test' ? [own] : alerts).map((alert) => {
    const pri = FACILITY_LOCAL0 * 8 + LEVEL[alert.severity]
    const time = new Date(alert.created_at).toISOString()
    const line = LINES[format](eventOf(message, rule === '' ? 'test' : rule, alert), reporterOf(version))
    return `<${pri}>1 ${time} ${host} ${APP_NAME} ${process.pid} alert [svc@00000 id="${alert.id}"] ${line}`
  })
}

function eventOf({ organization, type }: AlertMessage, rule: string, alert: AlertJson): FindingEvent {
  const { id, title, severity, created_at, subject, details, groups = [], people = [], url } = alert
  const named = {
    ...(groups.length > 0 && { groups: groups.join(', ') }),
    ...(people.length > 0 && { people: people.join(', ') }),
  }
  return {
    id,
    kind: `alert.${rule}`,
    title: wordsOf(rule),
    message: title,
    severity,
    timeMs: Date.parse(created_at),
    isAlert: type === 'alerts',
    organization,
    url,
    details: { ...details, ...named, subject: `${subject.kind} ${subject.name}`, subject_id: subject.id },
  }
}

async function sendStream(
  { host, port, transport, ca }: SyslogSettings,
  lines: readonly string[],
  { allowed, timeoutMs, signal }: SendOptions,
): Promise<void> {
  const bare = withoutBrackets(host)
  let socket: Socket = await connectChecked(bare, port, { allowed, timeoutMs })
  const failed = new Promise<never>((_resolve, reject) => {
    const fail = (error: Error): void => reject(error)
    signal.addEventListener('abort', () => fail(new Error('aborted')), { once: true })
    if (signal.aborted) fail(new Error('aborted'))
    socket.on('error', fail)
    if (transport === 'tls') {
      // Server Name Indication is for names only (RFC 6066 §3).
      const servername = isIP(bare) === 0 ? { servername: bare } : {}
      socket = connectTls({ socket, host: bare, ...servername, ...(ca === '' ? {} : { ca }), minVersion: 'TLSv1.2' })
      socket.on('error', fail)
    }
  })
  failed.catch(() => {})
  try {
    if (transport === 'tls') await Promise.race([once(socket, 'secureConnect'), failed])
    const frames = lines.map((line) => `${Buffer.byteLength(line)} ${line}`).join('')
    const closed = once(socket.resume(), 'close')
    await Promise.race([new Promise<void>((resolve) => socket.end(frames, resolve)), failed])
    // A receiver that rejects the connection resets it. One that read everything closes it.
    await Promise.race([closed, failed, later(CLOSE_MS, undefined, { ref: false })])
  } finally {
    socket.destroy()
  }
}

async function sendDatagrams(
  { host, port }: SyslogSettings,
  lines: readonly string[],
  { allowed, signal }: SendOptions,
) {
  const bare = withoutBrackets(host)
  checkAddress(bare, allowed)
  const resolve = promisify(checkedLookup(allowed, lookup)) as unknown as (
    host: string,
    options: object,
  ) => Promise<string>
  const address = isIP(bare) === 0 ? await resolve(bare, {}) : bare
  signal.throwIfAborted()
  const socket = createSocket(isIP(address) === 6 ? 'udp6' : 'udp4')
  try {
    socket.connect(port, address)
    await once(socket, 'connect')
    const failed = once(socket, 'error').then(([error]) => Promise.reject(error as Error))
    failed.catch(() => {})
    for (const line of lines) {
      const sent = new Promise<void>((done, reject) => {
        socket.send(line, (error) => (error ? reject(error) : done()))
      })
      await Promise.race([sent, failed])
    }
    await Promise.race([later(DATAGRAM_ERROR_MS), failed])
  } finally {
    socket.close()
  }
}
