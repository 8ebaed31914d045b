import type { Console } from '../console/console.ts'
import { type AnswerTotals, answerTotals } from '../engine/http/answer-counters.ts'
import { connectionRows } from '../engine/http/connections.ts'
import type { EventAcceptor } from '../engine/ingest/accept.ts'
import type { HttpLogs } from '../engine/ingest/http-logs.ts'
import type { IngestAccounting } from '../engine/ingest/ingest-accounting.ts'
import { ingestRows } from '../engine/ingest/metrics.ts'
import type { BatchCounters } from '../engine/ingest/request-body.ts'
import type { SyslogIngest } from '../engine/ingest/syslog-ingest.ts'
import { type CertificateExpiry, EXPIRY_METRIC_HELP } from '../engine/kernel/process/certificate-expiry.ts'
import { systemClock } from '../engine/kernel/process/clock.ts'
import { assertExpected } from '../engine/kernel/process/failure.ts'
import type { MetricRow } from '../engine/kernel/process/metrics.ts'
import { scanRows } from '../engine/scan/metrics.ts'
import type { ScanSchedule } from '../engine/scan/schedule.ts'
import type { BackgroundThread } from './background-thread.ts'
import type { Cluster } from './cluster.ts'
import type { Health } from './health.ts'
import type { OrganizationMetrics } from './organization-metrics.ts'
import { RateLimit } from './rate-limit/rate-limit.ts'

/** The parts of the service that count. */
export interface MeasuredParts {
  readonly health: Health
  readonly certificates: CertificateExpiry
  readonly acceptor: EventAcceptor
  readonly cluster: Cluster | undefined
  readonly batches: BatchCounters
  readonly accounting: IngestAccounting
  readonly syslog: SyslogIngest | undefined
  readonly httpLogs: HttpLogs | undefined
  readonly schedule: ScanSchedule
  readonly background: BackgroundThread
  readonly apiCounters: SharedArrayBuffer
  readonly rateTables: Readonly<Record<'keys' | 'addresses', SharedArrayBuffer>>
  readonly connections: Parameters<typeof connectionRows>[0]
  readonly console: Console | undefined
  readonly organizations: OrganizationMetrics
}

/** The metrics of the service, for Prometheus. */
export async function serviceRows(parts: MeasuredParts): Promise<MetricRow[]> {
  // During shutdown its threads may be gone. The other counters are still reported.
  const syslog = await parts.syslog?.status().catch((error: unknown) => {
    assertExpected(error)
    return undefined
  })
  const { keys, addresses } = parts.rateTables
  return [
    ...parts.health.rows(),
    [
      'posture_service_certificate_expiration_timestamp_seconds',
      'gauge',
      EXPIRY_METRIC_HELP,
      parts.certificates.endSeconds(),
      'certificate',
    ],
    ...ingestRows(parts.acceptor, parts.batches, parts.accounting, syslog, parts.httpLogs?.pipeline.lineStatus()),
    ...((await parts.cluster?.rows()) ?? []),
    ...scanRows(parts.schedule),
    ...parts.background.metricRows(),
    ...apiRows(answerTotals(parts.apiCounters), {
      keys: new RateLimit(keys).full,
      addresses: new RateLimit(addresses).full,
    }),
    ...connectionRows(parts.connections),
    ...(parts.console?.metricRows() ?? []),
    ...(await parts.organizations.rows(systemClock.nowMs())),
  ]
}

/**
 * Metrics of the API, for Prometheus. `tableFull` counts the requests that were rejected because a
 * table of the rate limit was full, by table.
 */
function apiRows(answers: AnswerTotals, tableFull: Readonly<Record<string, number>>): MetricRow[] {
  return [
    ['posture_api_answers_total', 'counter', 'API answers by status', answers.byStatus, 'status'],
    ['posture_api_body_bytes_total', 'counter', 'Bytes of bodies sent by the API', answers.bodyBytes],
    [
      'posture_api_answers_aborted_total',
      'counter',
      'Answers aborted because too many waited for slow clients',
      answers.aborted,
    ],
    [
      'posture_api_rate_table_full_total',
      'counter',
      'Requests rejected because the rate limit table was full',
      tableFull,
      'table',
    ],
  ]
}
