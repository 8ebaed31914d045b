import type { MetricRow } from '../process/metrics.ts'
import type { ScanCounters } from './schedule.ts'

/** What the schedule has counted, for Prometheus. */
export function scanRows({ completed, failed, eventsFolded, eventsDamaged, milliseconds }: ScanCounters): MetricRow[] {
  return [
    [
      'posture_scans_completed_total',
      'counter',
      'Discovery scans that were completed, by what started them',
      completed,
      'trigger',
    ],
    ['posture_scans_failed_total', 'counter', 'Discovery scans that failed; their events wait for the next', failed],
    ['posture_scan_seconds_total', 'counter', 'Time from start to end of completed scans', milliseconds / 1000],
    ['posture_scan_events_folded_total', 'counter', 'Buffered events that scans took in', eventsFolded],
    ['posture_scan_events_damaged_total', 'counter', 'Buffered events that could not be read any more', eventsDamaged],
  ]
}
