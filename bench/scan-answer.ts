import type { ScanSums } from './peers/scan-sql.ts'

/** The result from the measured process of bench/scan.ts. */
export interface ScanBenchAnswer {
  readonly rates: readonly number[]
  readonly aggregateRates: readonly number[]
  readonly platforms: number
  readonly days: number
  readonly milliseconds: number
  readonly anonymousMegabytes: number
  readonly sums: ScanSums
}
