import { NARROW_AFTER_SECONDS, WIDEN_AFTER_SECONDS, WIDEN_AFTER_SECONDS_MAX } from '../limits.ts'
import type { FilterWidth } from './bpf.ts'

/**
 * When the filter of a live capture narrows, and when it widens again. It narrows when packets were lost in NARROW_AFTER_SECONDS seconds one
 * after the other, since a single burst is over before a new filter is there. It widens after WIDEN_AFTER_SECONDS without a loss; when that
 * was too early, the next time after twice as long.
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

  /** Told once a second how many packets were lost in it. Answers the width that the filter shall have. */
  second(lost: number): FilterWidth {
    this.#lossySeconds = lost > 0 ? this.#lossySeconds + 1 : 0
    this.#calmSeconds = lost > 0 ? 0 : this.#calmSeconds + 1
    if (this.#width === 'wide') {
      if (this.#lossySeconds >= NARROW_AFTER_SECONDS) this.#narrow()
      // As long as it was narrow without trouble, it was wide without trouble: the next time is the first again.
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
