import type { Environment } from '../lmdb/environment.ts'
import { Family } from './family.ts'
import { uuidBytes, uuidText } from './keys.ts'

/** What the scans of an organization know of those before them. */
export interface ScanState {
  /** Grows with each scan that is completed: one that was prepared before another completed must not be written. */
  readonly generation: number
  /** Scans that are stored. */
  readonly stored: number
  /** When the last scan on the schedule was started, 0 where there was none: milliseconds since 1970. */
  readonly scheduledAtMs: number
  /** The oldest day whose evidence the last completed scan counted, in days since 1970. */
  readonly firstDay: number
  /** What else than evidence the last completed scan was made of: settings, approvals and registry, as a hash. '' where none was completed. */
  readonly inputs: string
  /** The registry with which waiting events were last matched, by its fingerprint; '' to match them again. Absent before any waited. */
  readonly unmatchedRegistry?: string
  /** The first day of the evidence window at that time, in days since 1970. */
  readonly unmatchedDay?: number
  /** The scan that is running: the parts of its key. Absent when none is. */
  readonly running?: { readonly id: string; readonly requestedAtMs: number } | undefined
}

const NEVER: ScanState = { generation: 0, stored: 0, scheduledAtMs: 0, firstDay: 0, inputs: '' }

export class ScanStates {
  readonly #states: Family<ScanState>

  constructor(environment: Environment) {
    this.#states = new Family(environment.table('scan-states'), 'scan state')
  }

  get(organizationId: string): ScanState {
    return this.#states.get(uuidBytes(organizationId)) ?? NEVER
  }

  /** Organizations that have one. */
  organizations(): string[] {
    return Array.from(this.#states.keys(Buffer.alloc(0)), uuidText)
  }

  /** Inside a transaction of the caller. */
  put(organizationId: string, state: ScanState): void {
    this.#states.put(uuidBytes(organizationId), state)
  }
}
