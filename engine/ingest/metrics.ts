import { Verdict } from '../formats/log-line.ts'
import type { LabeledValue, MetricRow } from '../kernel/process/metrics.ts'
import { OUTCOMES } from '../store/outcomes.ts'
import type { EventAcceptor } from './accept.ts'
import type { IngestAccounting } from './ingest-accounting.ts'
import type { LineStatus } from './line-status.ts'
import type { BatchCounters } from './request-body.ts'
import { LISTENERS, type SourceTable } from './sources.ts'
import type { SyslogStatus } from './thread-protocol.ts'

const PREFIX = 'posture_ingest_'

/** The Prometheus metrics of ingest. A token is identified by its label, never by its secret. */
export function ingestRows(
  { counters: accepted, coverage, forgotten }: Pick<EventAcceptor, 'counters' | 'coverage' | 'forgotten'>,
  batches: BatchCounters,
  { sources, lost }: IngestAccounting,
  syslog: SyslogStatus | undefined,
  httpLogs: LineStatus | undefined,
): MetricRow[] {
  const rows: MetricRow[] = [
    ['received_total', 'counter', 'Received messages and events by listener', received(sources, syslog), 'listener'],
    ['messages_total', 'counter', 'Messages and events by listener and outcome', byListener(sources, syslog)],
    [
      'token_messages_total',
      'counter',
      'Messages and events by label of the monitoring token and outcome',
      byToken(sources, syslog),
    ],
    [
      'events_total',
      'counter',
      'Events at the writer by outcome',
      {
        accepted: accepted.accepted,
        duplicates: accepted.duplicates,
        outside_dedup_window: accepted.outsideDedupWindow,
        rejected: accepted.rejected,
        deferred: accepted.deferred,
        organization_removed: accepted.removed,
      },
      'outcome',
    ],
    [
      'events_future_timestamp_total',
      'counter',
      'Events with a last_seen after their receipt, which is stored instead',
      accepted.ahead,
    ],
    [
      'dedup_evictions_total',
      'counter',
      'Removed at a limit: senders whose events would count again, and pages of old events, which are too late from then on',
      { instances: forgotten.instances, pages: forgotten.pages },
      'kind',
    ],
    [
      'batches_total',
      'counter',
      'HTTPS batches by outcome',
      {
        taken: batches.batches,
        unauthorized: batches.unauthorized,
        malformed: batches.malformed,
        overloaded: batches.overloaded,
      },
      'outcome',
    ],
    [
      'coverage_reports_total',
      'counter',
      'Coverage reports of sensors by outcome; malformed ones by HTTPS',
      {
        accepted: coverage.accepted,
        repeated: coverage.repeated,
        too_often: coverage.tooOften + (syslog?.coverageSkipped ?? 0),
        deferred: coverage.deferred,
        organization_removed: coverage.removed,
        malformed: coverage.malformed,
      },
      'outcome',
    ],
    [
      'sources_unwritten_total',
      'counter',
      'Counts by sender that were lost while the store could not be written',
      lost,
    ],
  ]
  if (syslog !== undefined) rows.push(...syslogRows(syslog))
  const lines = [syslog, httpLogs].filter((status) => status !== undefined)
  if (lines.length > 0) rows.push(...lineRows(lines))
  return rows.map(([name, ...rest]) => [PREFIX + name, ...rest] as const)
}

/** Log messages by syslog and by HTTPS. */
function lineRows(lines: readonly LineStatus[]): MetricRow[] {
  const sum = (of: (status: LineStatus) => number): number => lines.reduce((all, status) => all + of(status), 0)
  return [
    [
      'format_messages_total',
      'counter',
      'Log messages by detected format and verdict',
      byFormat(lines.flatMap(({ formats }) => formats)),
    ],
    [
      'user_names_total',
      'counter',
      'User names of log messages that were truncated, or refused because of control characters or another encoding than UTF-8',
      { truncated: sum(({ usersTruncated }) => usersTruncated), refused: sum(({ usersRefused }) => usersRefused) },
      'outcome',
    ],
    [
      'candidates_skipped_total',
      'counter',
      'Log messages of unknown hosts that were not searched for AI candidates, by limit: messages a second, new names, waiting candidates',
      {
        busy: sum(({ candidatesSkipped }) => candidatesSkipped.busy),
        unread: sum(({ candidatesSkipped }) => candidatesSkipped.unread),
        full: sum(({ candidatesSkipped }) => candidatesSkipped.full),
      },
      'limit',
    ],
  ]
}

function syslogRows({ connections, ...status }: SyslogStatus): MetricRow[] {
  return [
    ['connections', 'gauge', 'Open syslog connections', connections.open],
    [
      'connections_total',
      'counter',
      'Accepted syslog connections by listener',
      { ...connections.accepted },
      'listener',
    ],
    [
      'connections_closed_total',
      'counter',
      'Syslog connections closed by the service, by listener and reason',
      Object.entries(connections.closed).flatMap(([listener, closed]) => {
        return Object.entries(closed).map(([reason, value]) => ({ labels: { listener, reason }, value }))
      }),
    ],
    ['dnstap_frames_total', 'counter', 'Frames of dnstap connections by kind', { ...status.dnstap }, 'kind'],
    ['oversized_total', 'counter', 'Syslog messages over the maximum length', connections.oversized],
    [
      'datagrams_waiting',
      'gauge',
      'Syslog datagrams that cannot be stored now, and are dropped after 15 s',
      status.datagramsWaiting,
    ],
    [
      'datagrams_dropped_total',
      'counter',
      'Lost syslog datagrams by place: in the kernel, or in the service when it was full',
      { kernel: status.kernelDropped, service: status.datagramsDropped },
      'place',
    ],
    [
      'sources_overflowed_total',
      'counter',
      'Messages of senders beyond the maximum number of tracked senders',
      status.sourcesOverflowed,
    ],
  ]
}

function received(sources: SourceTable, syslog: SyslogStatus | undefined): Record<string, number> {
  return Object.fromEntries(
    LISTENERS.map((listener) => [listener, sources.received[listener] + (syslog?.received[listener] ?? 0)]),
  )
}

function byListener(sources: SourceTable, syslog: SyslogStatus | undefined): LabeledValue[] {
  return LISTENERS.flatMap((listener) => {
    const own = sources.listeners[listener]
    const theirs = syslog?.messages[listener]
    return OUTCOMES.map((outcome, index) => {
      return { labels: { listener, outcome }, value: (own[index] ?? 0) + (theirs?.[index] ?? 0) }
    })
  })
}

function byToken(sources: SourceTable, syslog: SyslogStatus | undefined): LabeledValue[] {
  const sums = new Map<string, LabeledValue & { value: number }>()
  for (const { organizationId, label, counts } of [...sources.tokens.values(), ...(syslog?.tokens ?? [])]) {
    if (label === '') continue
    for (const [index, outcome] of OUTCOMES.entries()) {
      const key = `${organizationId} ${label} ${outcome}`
      const sum = sums.get(key) ?? { labels: { organization: organizationId, token_label: label, outcome }, value: 0 }
      sum.value += counts[index] ?? 0
      sums.set(key, sum)
    }
  }
  return [...sums.values()]
}

function byFormat(formats: LineStatus['formats']): LabeledValue[] {
  const sums = new Map<string, LabeledValue & { value: number }>()
  for (const { format, verdicts } of formats) {
    for (const [name, index] of Object.entries(Verdict)) {
      const labels = { format: format === '' ? 'none' : format, verdict: name }
      const key = `${labels.format} ${name}`
      const sum = sums.get(key) ?? { labels, value: 0 }
      sum.value += verdicts[index] ?? 0
      sums.set(key, sum)
    }
  }
  return [...sums.values()]
}
