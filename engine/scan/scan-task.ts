import type { PlainFault } from '../process/error-codes.ts'
import type { ScanOutcome, ScanRequest } from './fold.ts'

/** What the thread of the scans is given when it starts. */
export interface ScanWorkerData {
  readonly dataDirectory: string
}

/** What it is asked to do: to run scans, or to close its store before it ends. */
export type ScanTask = readonly ScanRequest[] | 'close'

/** What it answers: the outcomes, or the fault that kept all of the scans from being started. */
export type ScanAnswer =
  | { readonly kind: 'ran'; readonly outcomes: readonly ScanOutcome[] }
  | { readonly kind: 'failed'; readonly fault: PlainFault }
