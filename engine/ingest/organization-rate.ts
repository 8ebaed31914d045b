import { SECOND_MS } from '../process/clock.ts'

/** How often something is done for each organization in a second, and for how many organizations at all: so none of them keeps a thread busy with it. */
export class OrganizationRate {
  readonly #timesMax: number
  readonly #organizationsMax: number
  readonly #times = new Map<string, number>()
  #sinceMs = 0

  constructor(timesMax: number, organizationsMax: number) {
    this.#timesMax = timesMax
    this.#organizationsMax = organizationsMax
  }

  /** Whether it may be done once more now; then it counts as done. */
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
