import type { MetricRow } from '../process/metrics.ts'
import type { ScheduledReportStatus } from './scheduled-reports.ts'

/** Before the thread of the reports has started. */
const NOTHING: ScheduledReportStatus = { queued: 0, failed: 0 }

/** The Prometheus metrics of scheduled reports. */
export function reportRows({ queued, failed }: ScheduledReportStatus = NOTHING): MetricRow[] {
  return [
    ['posture_reports_queued_total', 'counter', 'Scheduled reports that were made and queued for mail', queued],
    [
      'posture_reports_failed_total',
      'counter',
      'Attempts to make a scheduled report that failed; they are repeated',
      failed,
    ],
  ]
}
