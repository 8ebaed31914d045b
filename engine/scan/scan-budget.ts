import { Fault } from '../kernel/process/error-codes.ts'
import { SCAN_ADDING_CPU_MS, SCAN_CPU_MS } from '../limits.ts'

/** The CPU time of one scan, so that no organization delays the scans of others for long. */
export class ScanBudget {
  readonly #cpuMs: () => number
  readonly #startMs: number

  /** @param cpuMs the CPU time of this thread */
  constructor(cpuMs: () => number) {
    this.#cpuMs = cpuMs
    this.#startMs = cpuMs()
  }

  /** Whether the scan may add more events and still publish them. */
  get mayAdd(): boolean {
    return this.#spentMs < SCAN_ADDING_CPU_MS
  }

  /** @throws BudgetSpent */
  check(): void {
    if (this.#spentMs >= SCAN_CPU_MS) throw new BudgetSpent()
  }

  get #spentMs(): number {
    return this.#cpuMs() - this.#startMs
  }
}

export class BudgetSpent extends Fault {
  constructor() {
    super(
      'SCAN_FAILED',
      `the scan took more than ${SCAN_CPU_MS / 1000} s of CPU time; shorten the evidence window or the retention of clients`,
    )
  }
}
