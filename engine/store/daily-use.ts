import type { Environment } from '../kernel/lmdb/environment.ts'
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
  /**
   * The clients that were counted, so that a scan adds those of changed evidence instead of reading
   * the evidence of all platforms. Only the last day has them: most events are of that day.
   */
  readonly sketches?: DayUseSketches
}

/** Sketches of clients (DistinctClients.toBytes). */
export interface DayUseSketches {
  readonly all: Uint8Array
  readonly notApproved: Uint8Array
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

  /** Keeps the counts. The next scan counts the last day again. */
  removeSketches(organizationId: string): void {
    const days = this.get(organizationId)
    if (days.some(({ sketches }) => sketches !== undefined)) this.put(organizationId, days.map(countsOf))
  }
}

/** The use of a day without its sketches. */
export function countsOf({ day, approved, notApproved }: DayUse): DayUse {
  return { day, approved, notApproved }
}
