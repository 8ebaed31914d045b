import type { TlsFiles } from '../engine/http/certificate.ts'
import type { SyslogEndpoint } from '../engine/ingest/thread-protocol.ts'

/** The ports that senders can reach, and the certificate that they see. */
export interface IngestListeners {
  /** undefined: HTTPS ingest is off. */
  readonly httpsPort: number | undefined
  readonly tlsPorts: readonly number[]
  /** Syslog over UDP, or over TCP where UDP is off. */
  readonly plainPorts: readonly number[]
  /** '' if no listener uses TLS. */
  readonly certificateFile: string
}

export const NO_LISTENERS: IngestListeners = { httpsPort: undefined, tlsPorts: [], plainPorts: [], certificateFile: '' }

/** What the console says to people who connect senders. */
export function listenersOf(
  httpsPort: number | undefined,
  syslog: readonly SyslogEndpoint[],
  tls: TlsFiles | undefined,
): IngestListeners {
  const portsOf = (kind: SyslogEndpoint['kind']): number[] => [
    ...new Set(syslog.filter((each) => each.kind === kind && each.dnstap !== true).map(({ port }) => port)),
  ]
  const [udpPorts, tcpPorts] = [portsOf('udp'), portsOf('tcp')]
  const plainPorts = udpPorts.length > 0 ? udpPorts : tcpPorts
  return { httpsPort, tlsPorts: portsOf('tls'), plainPorts, certificateFile: tls?.certificateFile ?? '' }
}
