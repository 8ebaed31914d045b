import type { FaultCode } from '../process/error-codes.ts'
import type { StoreCheck } from './check.ts'

/** What the thread of a check is started with. */
export interface CheckWorkerData {
  readonly dataDirectory: string
  /** One 32-bit number; anything but 0 asks the check to stop. */
  readonly stop: SharedArrayBuffer
}

/** What it tells. After `checked`, `stopped` or `failed` it ends. */
export type FromCheckWorker =
  | { readonly kind: 'progress'; readonly records: number; readonly recordsTotal: number }
  | { readonly kind: 'checked'; readonly check: StoreCheck }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'failed'; readonly code: FaultCode | undefined; readonly message: string }
