/**
 * The counters of what a sensor saw and what it could not see, by their names in reports and in the
 * store. Both programs share this list. The table in docs/reference/visibility.md is generated from
 * both lists.
 */
export const COVERAGE_COUNTERS = {
  packets: 'Packets that were read',
  packets_lost:
    'Packets that were lost because the card, the ring buffer or the batches were full, and gaps in DNS over TCP',
  packets_truncated: 'Packets that end before the length in their headers',
  packets_undecodable: 'Packets that could not be decoded: malformed, encrypted, or of an unknown link type',
  names: 'Names in DNS questions and ClientHellos',
  names_matched: 'Names of AI platforms',
  hellos_named: 'ClientHellos with a readable name',
  hellos_ech: 'ClientHellos with Encrypted Client Hello, or its GREASE; the name is the outer one',
  hellos_unnamed: 'Complete ClientHellos without a name',
  hellos_incomplete: 'Incomplete ClientHellos',
  hellos_unknown_version: 'QUIC connections of an unsupported version',
  dot_sessions: 'Connections of DNS over TLS or QUIC',
  doh_sessions: 'ClientHellos to known resolvers for DNS over HTTPS',
} as const satisfies Readonly<Record<string, string>>

/**
 * Counters of encrypted and unread traffic by kind. A report leaves out those that are 0, and
 * earlier programs leave out all of them.
 */
export const HIDDEN_COUNTERS = {
  hellos_explained:
    'ClientHellos and QUIC connections without a readable name for which a DNS answer or a request to a proxy gave the name',
  doq_sessions: 'Of `dot_sessions`, those over QUIC',
  dnscrypt_sessions: 'Connections of DNSCrypt over UDP in which a resolver answered',
  esp_sessions: 'Security associations of IPsec ESP, also in UDP',
  wireguard_sessions: 'Connections in which a peer began a handshake of WireGuard',
  openvpn_sessions: 'Connections that a client of OpenVPN began, over UDP or TCP',
  tor_sessions: 'ClientHellos that look like those of Tor: a random name, and no ALPN',
  dtls_sessions: 'Connections that a client of DTLS began, such as calls and VPNs',
  ah_packets: 'Packets with an IPsec authentication header; their content was read',
  macsec_packets: 'Frames that MACsec encrypted',
  unknown_ethertype_packets: 'Frames of an EtherType that is not read and may contain IP',
} as const satisfies Readonly<Record<string, string>>
export type HiddenCounter = keyof typeof HIDDEN_COUNTERS
export const HIDDEN_COUNTER_NAMES = Object.keys(HIDDEN_COUNTERS) as readonly HiddenCounter[]

export type CoverageCounter = keyof typeof COVERAGE_COUNTERS | HiddenCounter
export type CoverageCounters = Readonly<Record<CoverageCounter, number>>

/** The counters that every report has. */
export const REQUIRED_COUNTER_NAMES = Object.keys(COVERAGE_COUNTERS) as readonly (keyof typeof COVERAGE_COUNTERS)[]
export const COVERAGE_COUNTER_NAMES: readonly CoverageCounter[] = [...REQUIRED_COUNTER_NAMES, ...HIDDEN_COUNTER_NAMES]

/**
 * A larger count is invalid: 2^50 packets take 3.5 years at ten million per second. Sums of some
 * thousand such counts are still exact.
 */
export const COVERAGE_COUNT_MAX = 2 ** 50

/**
 * The counters of one run of a sensor since its start. Cumulative, so that a later report includes
 * a lost one.
 */
export interface CoverageReport {
  /**
   * 16 lower-case hex digits. Identifies one run of a live sensor, whose counters begin at 0. A
   * capture file has the same instance in each run that reads it.
   */
  readonly instance: string
  /** When the run began, by the sensor's clock, in milliseconds since 1970. */
  readonly sinceMs: number
  /** `sinceMs` plus the elapsed time, so that it never goes backward. */
  readonly madeMs: number
  /** The last report of this run. */
  readonly ended: boolean
  readonly counters: CoverageCounters
  /** The version of the registry's data in use. Absent in reports of earlier programs. */
  readonly registry?: string | undefined
  /**
   * Names of no platform that look like AI services, with their requests since the report before.
   * Only of collectors that report them (`CANDIDATES`); at most CANDIDATES_PER_REPORT.
   */
  readonly candidates?: readonly (readonly [name: string, requests: number])[] | undefined
}

export const CANDIDATES_PER_REPORT = 100

/*
 * The JSON form of a report, as `coverage` in a batch (event.ts) or in a syslog message. Times are
 * ISO 8601 in UTC with milliseconds.
 *
 *   { "instance": "5c28dc30ef9d3ca8", "since": "2026-11-20T09:00:00.000Z",
 *     "made": "2026-11-20T09:15:02.123Z", "ended": false, "counters": { "packets": 120000, ... },
 *     "registry": "2026.11.23", "candidates": [["chat.acme.ai", 12]] }
 *
 * The counters of COVERAGE_COUNTERS are required, those of HIDDEN_COUNTERS are 0 if absent. Unknown
 * members belong to a later release and are ignored.
 */
export function coverageReportToJson(
  report: CoverageReport,
  options: { readonly hidden: boolean } = { hidden: true },
): Record<string, unknown> {
  const { instance, sinceMs, madeMs, ended, registry, candidates = [] } = report
  const isSent = (name: CoverageCounter, count: number): boolean =>
    !Object.hasOwn(HIDDEN_COUNTERS, name) || (options.hidden && count > 0)
  const counters = Object.fromEntries(
    Object.entries(report.counters).filter(([name, count]) => isSent(name as CoverageCounter, count)),
  )
  const since = new Date(sinceMs).toISOString()
  const made = new Date(madeMs).toISOString()
  const named = options.hidden && candidates.length > 0 ? { candidates } : {}
  return { instance, since, made, ended, counters, ...(registry === undefined ? {} : { registry }), ...named }
}
