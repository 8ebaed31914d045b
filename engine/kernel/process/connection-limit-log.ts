import { MINUTE_MS } from './clock.ts'
import type { Logger } from './log.ts'

const CLIENTS_LOGGED = 3

/** Logs that a limit of connections is reached, at most once a minute for each limit. */
export class ConnectionLimitLog {
  readonly #log: Logger
  readonly #nowMs: () => number
  /** By limit: when to log next, and the connections that were closed since the last entry. */
  readonly #limits = new Map<string, { nextMs: number; closed: number }>()

  constructor(log: Logger, nowMs: () => number = () => performance.now()) {
    this.#log = log
    this.#nowMs = nowMs
  }

  /**
   * Notes that a connection was closed.
   *
   * @param limit `total`, or `address` for the limit of one client
   * @param byClient connections by client; the clients with most connections are logged
   */
  note(limit: 'total' | 'address', max: number, byClient: () => ReadonlyMap<string, number>): void {
    const nowMs = this.#nowMs()
    const entry = this.#limits.get(limit) ?? { nextMs: nowMs, closed: 0 }
    this.#limits.set(limit, entry)
    entry.closed++
    if (nowMs < entry.nextMs) return
    const clients = [...byClient()].sort(([, one], [, other]) => other - one).slice(0, CLIENTS_LOGGED)
    this.#log.warn(
      { limit, max, closed: entry.closed, clients: Object.fromEntries(clients) },
      'connection limit reached: closing connections',
    )
    entry.nextMs = nowMs + MINUTE_MS
    entry.closed = 0
  }
}
