import { SECOND_MS } from '../process/clock.ts'

/**
 * Limits how often each organization may do something in a second, and how many organizations may
 * do it at all, so that none can keep a thread busy.
 */
export class OrganizationRate {
  readonly #timesMax: number
  readonly #organizationsMax: number
  readonly #times = new Map<string, number>()
  #sinceMs = 0

  constructor(timesMax: number, organizationsMax: number) {
    this.#timesMax = timesMax
    this.#organizationsMax = organizationsMax
  }

  /** Counts one use. Returns false if the limit is reached. */
  take(organizationId: string, nowMs: number): boolean {
    if (nowMs - this.#sinceMs >= SECOND_MS || nowMs < this.#sinceMs) {
      this.#sinceMs = nowMs
      this.#times.clear()
    }
    const before = this.#times.get(organizationId) ?? 0
    if (before >= this.#timesMax) return false
    if (before === 0 && this.#times.size >= this.#organizationsMax) return false
    this.#times.set(organizationId, before + 1)
    return true
  }
}
