import type { MetricRow } from '../process/metrics.ts'
import type { ScanCounters } from './schedule.ts'

/** The Prometheus metrics of the schedule. */
export function scanRows({ completed, failed, eventsFolded, eventsDamaged, milliseconds }: ScanCounters): MetricRow[] {
  return [
    ['posture_scans_completed_total', 'counter', 'Completed discovery scans by trigger', completed, 'trigger'],
    ['posture_scans_failed_total', 'counter', 'Failed discovery scans; their events wait for the next scan', failed],
    ['posture_scan_seconds_total', 'counter', 'Duration of completed scans', milliseconds / 1000],
    ['posture_scan_events_folded_total', 'counter', 'Buffered events added to the evidence', eventsFolded],
    ['posture_scan_events_damaged_total', 'counter', 'Buffered events that were damaged', eventsDamaged],
  ]
}
