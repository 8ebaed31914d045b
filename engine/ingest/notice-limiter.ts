import { MINUTE_MS, type SECOND_MS } from '../kernel/process/clock.ts'
import type { Logger } from '../kernel/process/log.ts'
import { SENDERS_LOGGED_PER_MINUTE_MAX } from '../limits.ts'
import { FRAMING_REMARKS } from './syslog/framing-remark.ts'
import type { SenderNotice } from './thread-protocol.ts'

/**
 * Decides which senders are reported: each once a minute, and a limited number in total per
 * interval. Senders can forge addresses at line rate, so memory is bounded: only reported
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

const TOKEN_PROBLEMS = {
  unknownToken: 'syslog with an unknown or revoked token is dropped',
  noToken: 'syslog without a token is dropped; see posture-admin token bind for devices that cannot send one',
} as const

/**
 * Logs senders without a token, and senders with wrong framing: of each group at most
 * SENDERS_LOGGED_PER_MINUTE_MAX a minute, then one line that there are more.
 */
export class SenderLog {
  readonly #log: Logger
  readonly #unauthenticated = new NoticeLimiter(SENDERS_LOGGED_PER_MINUTE_MAX, MINUTE_MS)
  readonly #misframed = new NoticeLimiter(SENDERS_LOGGED_PER_MINUTE_MAX, MINUTE_MS)
  #summaryLoggedInMinute = 0

  constructor(log: Logger) {
    this.#log = log
  }

  note({ problem, listener, address, port }: SenderNotice, nowMs: number): void {
    const isOfToken = problem === 'noToken' || problem === 'unknownToken'
    const notes = isOfToken ? this.#unauthenticated : this.#misframed
    const before = notes.skipped
    if (notes.admit(address, nowMs)) {
      const text = isOfToken ? TOKEN_PROBLEMS[problem] : FRAMING_REMARKS[problem]
      this.#log.warn({ listener, address, port }, text)
      return
    }
    const minute = Math.floor(nowMs / MINUTE_MS)
    if (notes.skipped === before || minute === this.#summaryLoggedInMinute) return
    this.#summaryLoggedInMinute = minute
    this.#log.warn(
      { named: SENDERS_LOGGED_PER_MINUTE_MAX, unnamedSinceStart: notes.skipped },
      `more ${isOfToken ? 'unauthenticated senders' : 'senders with wrong framing'} are not logged in this minute; their messages are counted`,
    )
  }
}
