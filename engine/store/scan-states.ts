import type { Environment } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import { uuidBytes, uuidText } from './keys.ts'

/** What the next scan of an organization needs to know of earlier ones. */
export interface ScanState {
  /**
   * Incremented by each completed scan. A scan that was prepared for an older generation must not
   * be written.
   */
  readonly generation: number
  /** Number of stored scans. */
  readonly stored: number
  /** When the last scheduled scan began, in milliseconds since 1970. 0: never. */
  readonly scheduledAtMs: number
  /** The oldest day whose evidence the last completed scan counted, in days since 1970. */
  readonly firstDay: number
  /**
   * Hash of the inputs of the last completed scan other than evidence: settings, decisions,
   * registry. '': no completed scan.
   */
  readonly inputs: string
  /** The formula of the risks that it published (registry/risk-sum.ts). Absent: an earlier one. */
  readonly riskFormula?: number
  /**
   * When the next decision that the last completed scan counted expires, in milliseconds since
   * 1970. Absent if none does.
   */
  readonly decisionExpiresAtMs?: number | undefined
  /**
   * Fingerprint of the registry that unmatched events were last matched with. '': match them again.
   */
  readonly unmatchedRegistry?: string
  /** The first day of the evidence window at that time, in days since 1970. */
  readonly unmatchedDay?: number
  /**
   * When the first event was buffered, in milliseconds since 1970. Absent before the first event.
   */
  readonly firstEventAtMs?: number | undefined
  /** The key parts of the running scan, if any. */
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

  /** Organizations with a state. */
  organizations(): string[] {
    return Array.from(this.#states.keys(Buffer.alloc(0)), uuidText)
  }

  put(organizationId: string, state: ScanState): void {
    this.#states.put(uuidBytes(organizationId), state)
  }
}
