import type { CoverageReport } from '../../engine/event/coverage-report.ts'
import { COVERAGE_TIMEOUT_MS, SYSLOG_DATAGRAM_BYTES_MAX } from '../limits.ts'
import { connectionProblem, type Peer, syslogPeer } from './connection.ts'
import type { CoverageOutcome, CoverageWay } from './coverage-way.ts'
import type { SyslogSettings } from './syslog.ts'
import { DatagramLink } from './syslog-datagram.ts'
import type { SyslogLink } from './syslog-link.ts'
import { SyslogMessages } from './syslog-message.ts'
import { StreamLink } from './syslog-stream.ts'

/** Sends reports of coverage as syslog messages, where events go by syslog alone, on a connection beside theirs. */
export class SyslogCoverage implements CoverageWay {
  readonly #peer: Peer
  readonly #link: SyslogLink
  readonly #messages: SyslogMessages

  /** @throws Fault USAGE where the file of the authority cannot be read. */
  constructor(settings: SyslogSettings) {
    this.#peer = syslogPeer(settings)
    const isDatagram = this.#peer.scheme === 'udp'
    this.#link = isDatagram ? new DatagramLink(this.#peer) : new StreamLink(this.#peer, COVERAGE_TIMEOUT_MS)
    this.#messages = new SyslogMessages(settings.token)
  }

  async send(report: CoverageReport): Promise<CoverageOutcome> {
    const bytesMax = this.#peer.scheme === 'udp' ? SYSLOG_DATAGRAM_BYTES_MAX : Number.POSITIVE_INFINITY
    const message = this.#messages.ofCoverage(report, bytesMax)
    if (message === undefined) return { kind: 'failed', why: `longer than a datagram of ${bytesMax} bytes` }
    try {
      await this.#link.open()
      await this.#link.send([message])
      return { kind: 'sent' }
    } catch (error) {
      return { kind: 'failed', why: connectionProblem(error, this.#peer).why }
    }
  }

  close(): Promise<void> {
    return this.#link.close()
  }
}
