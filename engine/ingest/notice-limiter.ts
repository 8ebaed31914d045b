import { MINUTE_MS, type SECOND_MS } from '../process/clock.ts'

/**
 * Which senders without a known token are to be named: each once a minute, and of all only so many in a span. Anybody can make up addresses and
 * send as fast as the line allows, so nothing here grows with what comes: an address is remembered when it was named, for two minutes at most.
 */
export class NoticeLimiter {
  /** Notes that were not admitted because too many others were, since the start. */
  skipped = 0
  readonly #notesMax: number
  readonly #spanMs: number
  #named = new Map<string, number>()
  /** Of the minute before. */
  #namedBefore = new Map<string, number>()
  #minute = 0
  #span = 0
  #notes = 0

  /** @param notesMax in a span of `spanMs`, which is a second or a minute */
  constructor(notesMax: number, spanMs: typeof SECOND_MS | typeof MINUTE_MS) {
    this.#notesMax = notesMax
    this.#spanMs = spanMs
  }

  /** Whether the sender at this address is to be named now. */
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
