import type { MetricRow } from '../kernel/process/metrics.ts'
import type { ScanSchedule } from './schedule.ts'

/** The Prometheus metrics of the schedule. */
export function scanRows({ counters, unmatchedWaiting, clientBytes }: ScanSchedule): MetricRow[] {
  const { completed, failed, eventsAdded, eventsDamaged, milliseconds } = counters
  return [
    ['posture_scans_completed_total', 'counter', 'Completed discovery scans by trigger', completed, 'trigger'],
    ['posture_scans_failed_total', 'counter', 'Failed discovery scans; their events wait for the next scan', failed],
    [
      'posture_scans_over_budget_total',
      'counter',
      'Of these, scans that took more CPU time than a scan may take',
      counters.overBudget,
    ],
    ['posture_scan_seconds_total', 'counter', 'Duration of completed scans', milliseconds / 1000],
    ['posture_scan_events_added_total', 'counter', 'Buffered events added to the evidence', eventsAdded],
    ['posture_scan_events_damaged_total', 'counter', 'Buffered events that were damaged', eventsDamaged],
    [
      'posture_scan_events_unmatched_total',
      'counter',
      'Buffered events that no registry matched, so that they wait',
      counters.eventsUnmatched,
    ],
    [
      'posture_scan_events_rematched_total',
      'counter',
      'Waiting events added to the evidence after the registry changed',
      counters.unmatchedRematched,
    ],
    [
      'posture_unmatched_removed_total',
      'counter',
      'Waiting events removed, by reason: out of the evidence window, or beyond the limit',
      counters.unmatchedRemoved,
      'reason',
    ],
    [
      'posture_client_records_removed_total',
      'counter',
      'Client records (of one platform and day) removed by the size limit',
      counters.clientRecordsRemoved,
    ],
    ['posture_client_bytes', 'gauge', 'Bytes of client records', clientBytes],
    ['posture_unmatched_waiting', 'gauge', 'Events that wait for a registry with their name', unmatchedWaiting],
  ]
}
