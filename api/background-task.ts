import type { AlertStatus } from '../engine/alert/alert-runner.ts'
import type { PlainFault } from '../engine/process/error-codes.ts'
import type { LogLevel } from '../engine/process/log.ts'
import type { Network } from '../engine/process/network.ts'
import type { ScheduledReportStatus } from '../engine/report/scheduled-reports.ts'
import type { ScanOutcome, ScanRequest } from '../engine/scan/scan-runner.ts'

/** Options of the background thread. */
export interface BackgroundData {
  readonly dataDirectory: string
  /** Path of the key file of stored secrets. */
  readonly secretsKeyFile: string
}

/** Settings that a running service can change. */
export interface AlertSettings {
  readonly logLevel: LogLevel
  readonly outboundNetworks: readonly Network[]
}

/** A task of the background thread. `close` closes the store before the thread ends. */
export type BackgroundTask =
  | { readonly kind: 'scans'; readonly requests: readonly ScanRequest[] }
  | { readonly kind: 'alerts'; readonly settings: AlertSettings }
  | { readonly kind: 'close' }

/** The result, or the fault that prevented the task. `hasStarted`: its store was open. */
export type BackgroundAnswer =
  | { readonly kind: 'scanned'; readonly outcomes: readonly ScanOutcome[] }
  | { readonly kind: 'alerts'; readonly status: AlertStatus; readonly reports: ScheduledReportStatus }
  | { readonly kind: 'closed' }
  | { readonly kind: 'failed'; readonly fault: PlainFault; readonly hasStarted: boolean }
