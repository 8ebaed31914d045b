import { MINUTE_MS, type SECOND_MS } from '../process/clock.ts'

/**
 * Decides which unauthenticated senders are reported: each once a minute, and a limited number in
 * total per interval. Senders can forge addresses at line rate, so memory is bounded: only reported
 * addresses are remembered, for two minutes at most.
 */
export class NoticeLimiter {
  /** Notices suppressed by the total limit, since the start. */
  skipped = 0
  readonly #notesMax: number
  readonly #spanMs: number
  #named = new Map<string, number>()
  /** Addresses of the previous minute. */
  #namedBefore = new Map<string, number>()
  #minute = 0
  #span = 0
  #notes = 0

  /** @param notesMax maximum per interval of `spanMs`, a second or a minute */
  constructor(notesMax: number, spanMs: typeof SECOND_MS | typeof MINUTE_MS) {
    this.#notesMax = notesMax
    this.#spanMs = spanMs
  }

  /** Whether to report the sender at this address now. */
  admit(address: string, nowMs: number): boolean {
    const minute = Math.floor(nowMs / MINUTE_MS)
    if (minute !== this.#minute) {
      this.#namedBefore = Math.abs(minute - this.#minute) === 1 ? this.#named : new Map()
      this.#named = new Map()
      this.#minute = minute
    }
    const namedMs = this.#named.get(address) ?? this.#namedBefore.get(address)
    if (namedMs !== undefined && Math.abs(nowMs - namedMs) < MINUTE_MS) return false
    const span = Math.floor(nowMs / this.#spanMs)
    if (span !== this.#span) {
      this.#span = span
      this.#notes = 0
    }
    if (this.#notes >= this.#notesMax) {
      this.skipped++
      return false
    }
    this.#notes++
    this.#named.set(address, nowMs)
    return true
  }
}
