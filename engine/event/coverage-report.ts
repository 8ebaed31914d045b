/**
 * What a sensor counts of what it saw and of what was hidden from it: the words in which the collector tells it and the service stores and shows it.
 * The two programs share this list. docs/design/visibility.md has it as a table, which is made of this one.
 */
export const COVERAGE_COUNTERS = {
  packets: 'Packets that were read',
  packets_lost: 'Packets that were lost because the card, the ring buffer or the batches were full',
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
export type CoverageCounter = keyof typeof COVERAGE_COUNTERS
export type CoverageCounters = Readonly<Record<CoverageCounter, number>>

export const COVERAGE_COUNTER_NAMES = Object.keys(COVERAGE_COUNTERS) as readonly CoverageCounter[]

/** A larger count is none: 2^50 packets take 3.5 years at ten million a second. Sums of some thousand such counts are still exact. */
export const COVERAGE_COUNT_MAX = 2 ** 50

/** What one run of a sensor has counted since it began: cumulative, so that the next one makes up for one that was lost. */
export interface CoverageReport {
  /** 16 lower-case hex digits. Of one run of a live sensor, whose counters begin at 0; of a capture file the same in each run that reads it. */
  readonly instance: string
  /** When the run began, by the sensor's clock, in milliseconds since 1970. */
  readonly sinceMs: number
  /** That and the time that has passed since, so that it never steps back. */
  readonly madeMs: number
  /** Nothing follows of this run. */
  readonly ended: boolean
  readonly counters: CoverageCounters
}

/*
 * The form of a report, as `coverage` in a batch (event.ts) and in a syslog message of its own. Times
 * are ISO 8601 in UTC with milliseconds.
 *
 *   { "instance": "5c28dc30ef9d3ca8", "since": "2026-11-20T09:00:00.000Z",
 *     "made": "2026-11-20T09:15:02.123Z", "ended": false, "counters": { "packets": 120000, ... } }
 *
 * All counters of this release are required. Unknown members belong to a later release and are ignored.
 */
export function coverageReportToJson(report: CoverageReport): Record<string, unknown> {
  const { instance, sinceMs, madeMs, ended, counters } = report
  const since = new Date(sinceMs).toISOString()
  const made = new Date(madeMs).toISOString()
  return { instance, since, made, ended, counters }
}
