import type { CoverageReport } from '../../engine/event/coverage-report.ts'
import type { Event } from '../../engine/event/event.ts'
import { SYSLOG_DATAGRAM_BYTES_MAX } from '../limits.ts'
import { connectionProblem, type Peer, type ServiceSettings, syslogPeer } from './connection.ts'
import type { Forwarder, Outcome } from './forwarder.ts'
import { DatagramLink } from './syslog-datagram.ts'
import type { SyslogLink } from './syslog-link.ts'
import { SyslogMessages } from './syslog-message.ts'
import { StreamLink } from './syslog-stream.ts'

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
      return { kind: 'accepted', duplicates: 0, tooLate: 0, rejected, ...failure }
    } catch (error) {
      return { kind: 'retry', why: connectionProblem(error, this.#peer).why }
    }
  }

  close(): Promise<void> {
    return this.#link.close()
  }
}
