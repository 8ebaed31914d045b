import type { Environment } from '../lmdb/environment.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'

/** The clients of all AI platforms on one day (UTC). */
export interface DayUse {
  /** Days since 1970. */
  readonly day: number
  /** Distinct clients that used approved platforms only. */
  readonly approved: number
  /** Distinct clients that used a platform that is not approved. */
  readonly notApproved: number
}

/** The use per day over the evidence window, as the last scan counted it. One record each. */
export class DailyUse {
  readonly #records: Family<readonly DayUse[]>

  constructor(environment: Environment) {
    this.#records = new Family(environment.table('daily-use'), 'daily use')
  }

  /** Days with evidence, in order. */
  get(organizationId: string): readonly DayUse[] {
    return this.#records.get(uuidBytes(organizationId)) ?? []
  }

  /** Requires the transaction of the scan. */
  put(organizationId: string, days: readonly DayUse[]): void {
    this.#records.put(uuidBytes(organizationId), days)
  }
}
