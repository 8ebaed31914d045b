import type { Environment } from './environment.ts'
import { Family } from './family.ts'
import { u64Bytes, uuidBytes } from './keys.ts'

export const SCAN_STATUSES = ['pending', 'running', 'completed', 'failed'] as const
export type ScanStatus = (typeof SCAN_STATUSES)[number]

/** What made a scan start. */
export type ScanTrigger = 'schedule' | 'buffer' | 'administrator'

export interface Scan {
  readonly id: string
  readonly organizationId: string
  readonly status: ScanStatus
  readonly trigger: ScanTrigger
  readonly domain: string
  readonly startedAtMs: number
  /** 0 until the scan has ended. */
  readonly completedAtMs: number
  readonly eventsFolded: number
  readonly summary: ScanSummary
  /** Why it failed; empty otherwise. */
  readonly failure: string
}

export interface ScanSummary {
  readonly platformsDiscovered: number
  readonly shadowAiCount: number
  /** 0 to 100. */
  readonly overallRiskScore: number
}

/** The scans of each organization, in the order in which they started. */
export class Scans {
  readonly #records: Family<Scan>

  constructor(environment: Environment) {
    this.#records = new Family(environment.table('scans'), 'scan')
  }

  /** Inside a transaction of the caller. */
  put(scan: Scan): void {
    this.#records.put(
      Buffer.concat([uuidBytes(scan.organizationId), u64Bytes(scan.startedAtMs), uuidBytes(scan.id)]),
      scan,
    )
  }

  /** Oldest first. */
  ofOrganization(organizationId: string): Scan[] {
    return [...this.#records.range(uuidBytes(organizationId))].map(({ value }) => value)
  }

  last(organizationId: string, wanted: (scan: Scan) => boolean): Scan | undefined {
    return this.#records.last(uuidBytes(organizationId), wanted)
  }
}
