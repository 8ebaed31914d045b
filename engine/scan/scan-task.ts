import type { Catalog } from '../../registry/catalog.ts'
import type { ScanRequest } from './fold.ts'

/** What the thread of the scans is given when it starts. */
export interface ScanWorkerData {
  readonly dataDirectory: string
  readonly catalog: Catalog
}

/** What it is asked to do: to run scans, or to close its store before it ends. */
export type ScanTask = readonly ScanRequest[] | 'close'
