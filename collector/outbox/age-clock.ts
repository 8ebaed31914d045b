import { openRecord, sealRecord } from '../../engine/lmdb/record.ts'
import { CLOCK_SET_MS } from '../../engine/process/clock.ts'

const RECORD_VERSION = 1
/** A clock that goes so much otherwise than the monotonic one between two looks was set, in milliseconds. */
const JUMP_MS = 60_000
/** Jumps that are remembered; with more the oldest two count as one. */
const JUMPS_MAX = 64

/** The clock was set by so much when this sequence was the next one. */
interface Jump {
  readonly before: number
  readonly ms: number
}

/**
 * How old what was written is, through clocks that are set: by NTP after a start, by hand, by a battery that is empty. What was written before
 * a jump is as much older or younger than its time says.
 */
export class AgeClock {
  #jumps: Jump[]
  /** Wall clock less monotonic clock, at the last look. */
  #offsetMs = Date.now() - performance.now()

  constructor(stored?: Buffer) {
    this.#jumps =
      stored === undefined ? [] : (JSON.parse(openRecord(stored, RECORD_VERSION, 'clock').toString()) as Jump[])
  }

  /** Looks whether the clock was set since the last look; true when it was, and `record` has changed. */
  poll(firstSequence: number, nextSequence: number): boolean {
    const offsetMs = Date.now() - performance.now()
    const ms = Math.round(offsetMs - this.#offsetMs)
    this.#offsetMs = offsetMs
    if (Math.abs(ms) < JUMP_MS) return false
    // Of what has left nothing need be known.
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

  /** Age of what was written then, its last sequence being this one, in milliseconds; 0 where it cannot be told. */
  ageMs(writtenMs: number, lastSequence: number): number {
    let sinceMs = Date.now() - writtenMs
    let known = writtenMs >= CLOCK_SET_MS
    for (const { before, ms } of this.#jumps) {
      if (before <= lastSequence) continue
      sinceMs -= ms
      // The jump says how wrong the time was.
      known = true
    }
    return known ? sinceMs : 0
  }
}
