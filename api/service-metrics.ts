import type { Console } from '../console/console.ts'
import { answerTotals } from '../engine/http/answer-counters.ts'
import { connectionRows } from '../engine/http/connections.ts'
import type { EventAcceptor } from '../engine/ingest/accept.ts'
import type { HttpLogs } from '../engine/ingest/http-logs.ts'
import type { IngestAccounting } from '../engine/ingest/ingest-accounting.ts'
import { ingestRows } from '../engine/ingest/metrics.ts'
import type { BatchCounters } from '../engine/ingest/request-body.ts'
import type { SyslogIngest } from '../engine/ingest/syslog-ingest.ts'
import { systemClock } from '../engine/process/clock.ts'
import { assertExpected } from '../engine/process/failure.ts'
import type { MetricRow } from '../engine/process/metrics.ts'
import { scanRows } from '../engine/scan/metrics.ts'
import type { ScanSchedule } from '../engine/scan/schedule.ts'
import type { BackgroundThread } from './background-thread.ts'
import type { Cluster } from './cluster.ts'
import { apiRows } from './counters.ts'
import type { Health } from './health.ts'
import type { OrganizationMetrics } from './organization-metrics.ts'
import { tableFull } from './rate-limit/rate-limit.ts'

/** The parts of the service that count. */
export interface MeasuredParts {
  readonly health: Health
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
    ...ingestRows(parts.acceptor, parts.batches, parts.accounting, syslog, parts.httpLogs?.intake.lineStatus()),
    ...((await parts.cluster?.rows()) ?? []),
    ...scanRows(parts.schedule),
    ...parts.background.metricRows(),
    ...apiRows(answerTotals(parts.apiCounters), { keys: tableFull(keys), addresses: tableFull(addresses) }),
    ...connectionRows(parts.connections),
    ...(parts.console?.metricRows() ?? []),
    ...(await parts.organizations.rows(systemClock.nowMs())),
  ]
}
