import type { ScanOutcome, ScanRequest } from './scan-runner.ts'

/** Runs scans, one group at a time. */
export interface ScanExecutor {
  run(requests: readonly ScanRequest[]): Promise<readonly ScanOutcome[]>
  close(): Promise<void>
}
