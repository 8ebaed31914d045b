import type { Use } from '../../registry/contact.ts'
import type { Environment } from '../kernel/lmdb/environment.ts'
import { HISTORY_DAYS } from '../limits.ts'
import type { DecisionState } from './decisions.ts'
import { Family } from './family.ts'
import { u32Bytes, uuidBytes } from './keys.ts'
import type { ScanSummary } from './scans.ts'

const DAY_OFFSET = 16
/** Days removed per transaction. More than one only after a long pause. */
const REMOVED_AT_ONCE_MAX = 400

/** A platform as a scan published it: its use over the evidence window. */
export interface HistoryPlatform {
  readonly id: string
  readonly use: Use
  readonly decision: DecisionState
  readonly risk: number
  readonly clients: number
  readonly matches: number
}

/** The result of the last scan of a day (UTC). */
export interface HistoryDay {
  readonly scanId: string
  readonly completedAtMs: number
  readonly summary: ScanSummary
  readonly platforms: readonly HistoryPlatform[]
}

/** The results of scans by day, for 13 months. */
export class History {
  readonly #days: Family<HistoryDay>

  constructor(environment: Environment) {
    this.#days = new Family(environment.table('history'), 'history of scans')
  }

  get(organizationId: string, day: number): HistoryDay | undefined {
    return this.#days.get(dayKey(organizationId, day))
  }

  /** The days with a scan, in order. */
  days(organizationId: string): number[] {
    return Array.from(this.#days.keys(uuidBytes(organizationId)), (key) => key.readUInt32BE(DAY_OFFSET))
  }

  /** Replaces the result of an earlier scan of the day. Requires the transaction of the scan. */
  put(organizationId: string, day: number, result: HistoryDay): void {
    this.#days.put(dayKey(organizationId, day), result)
    const expired: Buffer[] = []
    for (const key of this.#days.keys(uuidBytes(organizationId))) {
      if (key.readUInt32BE(DAY_OFFSET) > day - HISTORY_DAYS || expired.length === REMOVED_AT_ONCE_MAX) break
      expired.push(Buffer.from(key))
    }
    for (const key of expired) this.#days.remove(key)
  }
}

function dayKey(organizationId: string, day: number): Buffer {
  return Buffer.concat([uuidBytes(organizationId), u32Bytes(day)])
}
