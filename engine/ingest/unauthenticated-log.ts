import { UNAUTHENTICATED_LOGGED_PER_MINUTE_MAX } from '../limits.ts'
import { MINUTE_MS } from '../process/clock.ts'
import type { Logger } from '../process/log.ts'
import { NoticeLimiter } from './notice-limiter.ts'
import type { FromLane } from './thread-protocol.ts'

type UnauthenticatedMessage = Pick<
  Extract<FromLane, { kind: 'unauthorized' }>,
  'listener' | 'address' | 'port' | 'hasToken'
>

/**
 * Logs unauthenticated senders: at most UNAUTHENTICATED_LOGGED_PER_MINUTE_MAX a minute, then one
 * line that there are more.
 */
export class UnauthenticatedLog {
  readonly #log: Logger
  readonly #notes = new NoticeLimiter(UNAUTHENTICATED_LOGGED_PER_MINUTE_MAX, MINUTE_MS)
  #summaryLoggedInMinute = 0

  constructor(log: Logger) {
    this.#log = log
  }

  note({ listener, address, port, hasToken }: UnauthenticatedMessage, nowMs: number): void {
    const before = this.#notes.skipped
    if (this.#notes.admit(address, nowMs)) {
      this.#log.warn(
        { listener, address, port },
        hasToken
          ? 'syslog with an unknown or revoked token is dropped'
          : 'syslog without a token is dropped; see posture-admin token bind for devices that cannot send one',
      )
      return
    }
    const minute = Math.floor(nowMs / MINUTE_MS)
    if (this.#notes.skipped === before || minute === this.#summaryLoggedInMinute) return
    this.#summaryLoggedInMinute = minute
    this.#log.warn(
      { named: UNAUTHENTICATED_LOGGED_PER_MINUTE_MAX, unnamedSinceStart: this.#notes.skipped },
      'more unauthenticated senders are not logged in this minute; their messages are counted',
    )
  }
}
