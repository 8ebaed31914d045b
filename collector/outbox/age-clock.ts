import { openRecord, sealRecord } from '../../engine/kernel/lmdb/record.ts'
import { CLOCK_SET_MS } from '../../engine/kernel/process/clock.ts'

const RECORD_VERSION = 1
/**
 * A difference between wall clock and monotonic clock of this much between two polls means that the
 * wall clock was set, in milliseconds.
 */
const JUMP_MS = 60_000
/** Maximum number of stored jumps. Beyond it, the oldest two are merged. */
const JUMPS_MAX = 64

/** The clock was set by `ms` when `before` was the next sequence. */
interface Jump {
  readonly before: number
  readonly ms: number
}

/**
 * Computes the age of stored events even if the wall clock is set: by NTP after a start, by hand,
 * or after an empty battery. An event written before a jump has its age corrected by that jump.
 */
export class AgeClock {
  #jumps: Jump[]
  /** Wall clock minus monotonic clock at the last poll. */
  #offsetMs = Date.now() - performance.now()

  constructor(stored?: Buffer) {
    this.#jumps =
      stored === undefined ? [] : (JSON.parse(openRecord(stored, RECORD_VERSION, 'clock').toString()) as Jump[])
  }

  /**
   * Checks whether the clock was set since the last poll. Returns true if it was, in which case
   * `record` has changed.
   */
  poll(firstSequence: number, nextSequence: number): boolean {
    const offsetMs = Date.now() - performance.now()
    const ms = Math.round(offsetMs - this.#offsetMs)
    this.#offsetMs = offsetMs
    if (Math.abs(ms) < JUMP_MS) return false
    // Jumps before the oldest waiting event are no longer needed.
    this.#jumps = [...this.#jumps.filter(({ before }) => before > firstSequence), { before: nextSequence, ms }]
    if (this.#jumps.length > JUMPS_MAX) {
      const [oldest, second, ...rest] = this.#jumps as [Jump, Jump, ...Jump[]]
      this.#jumps = [{ before: second.before, ms: oldest.ms + second.ms }, ...rest]
    }
    return true
  }

  get record(): Buffer {
    return sealRecord(RECORD_VERSION, Buffer.from(JSON.stringify(this.#jumps)))
  }

  /**
   * Returns the age in milliseconds of events written at `writtenMs`, of which `lastSequence` is
   * the last; 0 if unknown.
   */
  ageMs(writtenMs: number, lastSequence: number): number {
    let sinceMs = Date.now() - writtenMs
    let known = writtenMs >= CLOCK_SET_MS
    for (const { before, ms } of this.#jumps) {
      if (before <= lastSequence) continue
      sinceMs -= ms
      // The jump corrects the time.
      known = true
    }
    return known ? sinceMs : 0
  }
}
