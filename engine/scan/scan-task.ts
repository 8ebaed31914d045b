import type { PlainFault } from '../process/error-codes.ts'
import type { ScanOutcome, ScanRequest } from './scan-runner.ts'

/** Options of the scan thread. */
export interface ScanWorkerData {
  readonly dataDirectory: string
}

/** A task of the scan thread: run scans, or close the store before the thread ends. */
export type ScanTask = readonly ScanRequest[] | 'close'

/** The result: the outcomes, or the fault that prevented all scans from starting. */
export type ScanAnswer =
  | { readonly kind: 'ran'; readonly outcomes: readonly ScanOutcome[] }
  | { readonly kind: 'failed'; readonly fault: PlainFault }
