import { hostname } from 'node:os'
import { type CoverageReport, coverageReportToJson } from '../../engine/kernel/event/coverage-report.ts'
import { type Event, eventToJson } from '../../engine/kernel/event/event.ts'
import { SYSLOG_DATAGRAM_BYTES_MAX } from '../limits.ts'
import { connectionProblem, type Peer, type ServiceSettings, syslogPeer } from './connection.ts'
import type { Forwarder, Outcome } from './forwarder.ts'
import { DatagramLink, StreamLink, type SyslogLink } from './syslog-link.ts'

export type SyslogSettings = ServiceSettings & { readonly token: string }

/**
 * Sends events and coverage reports as syslog messages (RFC 5424): over TLS (RFC 5425), TCP with
 * octet counting (RFC 6587 §3.4.1) or UDP (RFC 5426). Syslog has no answers, so a message counts as
 * accepted when the operating system has it.
 */
export class SyslogForwarder implements Forwarder {
  readonly #peer: Peer
  readonly #link: SyslogLink
  readonly #messages: SyslogMessages

  /** @throws Fault USAGE if the CA certificate cannot be read. */
  constructor(settings: SyslogSettings) {
    this.#peer = syslogPeer(settings)
    this.#link = this.#peer.scheme === 'udp' ? new DatagramLink(this.#peer) : new StreamLink(this.#peer)
    this.#messages = new SyslogMessages(settings.token)
  }

  get alive(): boolean {
    return this.#link.alive
  }

  async send(events: readonly Event[], coverage?: CoverageReport): Promise<Outcome> {
    const bytesMax = this.#peer.scheme === 'udp' ? SYSLOG_DATAGRAM_BYTES_MAX : Number.POSITIVE_INFINITY
    const messages: string[] = []
    const rejected: string[] = []
    for (const event of events) {
      const message = this.#messages.of(event, bytesMax)
      if (message === undefined)
        rejected.push(`longer than a datagram of ${bytesMax} bytes: ${event.name.slice(0, 80)}…`)
      else messages.push(message)
    }
    const report = coverage === undefined ? undefined : this.#messages.ofCoverage(coverage, bytesMax)
    if (report !== undefined) messages.push(report)
    const isTooLong = coverage !== undefined && report === undefined
    const failure = isTooLong ? { coverageError: `longer than a datagram of ${bytesMax} bytes` } : {}
    try {
      await this.#link.open()
      await this.#link.send(messages)
      return { kind: 'accepted', duplicates: 0, outsideDedupWindow: 0, rejected, ...failure }
    } catch (error) {
      return { kind: 'retry', why: connectionProblem(error, this.#peer).why }
    }
  }

  close(): Promise<void> {
    return this.#link.close()
  }
}

/*
 * An event as a syslog message (RFC 5424 §6), in ASCII and without line feeds, so that every
 * receiver can parse it (one line, wrapped here):
 *
 *   <134>1 2026-11-20T09:15:02.123Z edge-7 posture-collector 4711 event
 *     [svc@00000 key="TOKEN" id="ID"] {"id":"ID","name":"claude.ai",...}
 *
 * PRI: facility local0 (16), severity informational (6). TIMESTAMP: when the event was last seen. A
 * coverage report has another MSGID and content, and no id. Its TIMESTAMP is when it was created:
 *
 *   <134>1 2026-11-20T09:15:02.123Z edge-7 posture-collector 4711 coverage
 *     [svc@00000 key="TOKEN"] {"coverage":{"instance":...}}
 */
const PRI = 16 * 8 + 6
const APP_NAME = 'posture-collector'
const NILVALUE = '-'
/** RFC 5424 §6: HOSTNAME is at most 255 characters of PRINTUSASCII. */
const HOSTNAME = /^[\x21-\x7e]{1,255}$/

export class SyslogMessages {
  readonly #host: string
  /** The fields between HOSTNAME and MSGID. */
  readonly #sender = `${APP_NAME} ${process.pid}`
  readonly #token: string

  /** `token` must be 7-bit without `"`, `\` and `]`, which the settings ensure. */
  constructor(token: string, host = hostname()) {
    this.#token = token
    this.#host = HOSTNAME.test(host) ? host : NILVALUE
  }

  /**
   * Returns the message for an event. Omits HOSTNAME if the message would be longer than
   * `bytesMax`. Undefined if the message is still too long.
   */
  of(event: Event, bytesMax = Number.POSITIVE_INFINITY): string | undefined {
    const json = ascii(JSON.stringify(eventToJson(event)))
    const rest = `${this.#sender} event [svc@00000 key="${this.#token}" id="${event.id}"] ${json}`
    return this.#message(event.lastSeenMs, rest, bytesMax)
  }

  /** The same for a coverage report. Leaves out the counters by kind if it would be too long. */
  ofCoverage(report: CoverageReport, bytesMax = Number.POSITIVE_INFINITY): string | undefined {
    const message = (hidden: boolean): string | undefined => {
      const json = JSON.stringify({ coverage: coverageReportToJson(report, { hidden }) })
      return this.#message(report.madeMs, `${this.#sender} coverage [svc@00000 key="${this.#token}"] ${json}`, bytesMax)
    }
    return message(true) ?? message(false)
  }

  #message(timeMs: number, rest: string, bytesMax: number): string | undefined {
    const time = new Date(timeMs).toISOString()
    const message = `<${PRI}>1 ${time} ${this.#host} ${rest}`
    if (message.length <= bytesMax) return message
    const short = `<${PRI}>1 ${time} ${NILVALUE} ${rest}`
    return short.length <= bytesMax ? short : undefined
  }
}

function ascii(json: string): string {
  return json.replace(/[^\x20-\x7e]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
