import type { FaultCode } from '../process/error-codes.ts'
import type { StoreCheck } from './check.ts'

/** Options of the check thread. */
export interface CheckWorkerData {
  readonly dataDirectory: string
  /** One 32-bit number. Any value but 0 requests a stop. */
  readonly stop: SharedArrayBuffer
}

/** Messages of the check thread. `checked`, `stopped` or `failed` is the last one. */
export type FromCheckWorker =
  | { readonly kind: 'progress'; readonly records: number; readonly recordsTotal: number }
  | { readonly kind: 'checked'; readonly check: StoreCheck }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'failed'; readonly code: FaultCode | undefined; readonly message: string }
