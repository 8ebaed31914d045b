import { NARROW_AFTER_SECONDS, WIDEN_AFTER_SECONDS, WIDEN_AFTER_SECONDS_MAX } from '../limits.ts'
import type { FilterWidth } from './bpf.ts'

/**
 * Decides when the filter of a live capture narrows and widens. It narrows after
 * NARROW_AFTER_SECONDS consecutive seconds with losses, because a single burst is over before a new
 * filter is active. It widens after WIDEN_AFTER_SECONDS without a loss. If that was too early, the
 * delay doubles for the next time.
 */
export class Pressure {
  #width: FilterWidth = 'wide'
  #lossySeconds = 0
  #calmSeconds = 0
  readonly #widenAfterFirst: number
  #widenAfter: number

  constructor(widenAfterSeconds = WIDEN_AFTER_SECONDS) {
    this.#widenAfterFirst = widenAfterSeconds
    this.#widenAfter = widenAfterSeconds
  }

  /**
   * Called once a second with the number of packets lost in that second. Returns the width that the
   * filter should have.
   */
  second(lost: number): FilterWidth {
    this.#lossySeconds = lost > 0 ? this.#lossySeconds + 1 : 0
    this.#calmSeconds = lost > 0 ? 0 : this.#calmSeconds + 1
    if (this.#width === 'wide') {
      if (this.#lossySeconds >= NARROW_AFTER_SECONDS) this.#narrow()
      // The wide filter has lasted without a loss as long as the narrow one had to: the delay
      // starts from its first value again.
      else if (this.#calmSeconds >= this.#widenAfter) this.#widenAfter = this.#widenAfterFirst
    } else if (this.#calmSeconds >= this.#widenAfter) {
      this.#width = 'wide'
      this.#calmSeconds = 0
      this.#widenAfter = Math.min(this.#widenAfter * 2, WIDEN_AFTER_SECONDS_MAX)
    }
    return this.#width
  }

  #narrow(): void {
    this.#width = 'narrow'
    this.#lossySeconds = 0
    this.#calmSeconds = 0
  }
}
