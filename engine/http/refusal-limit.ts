import { DISCONNECTED_MS, REFUSALS_PER_MINUTE_MAX, REFUSED_CLIENTS_MAX } from '../limits.ts'

const WINDOW_MS = 60_000

interface RefusedClient {
  readonly sinceMs: number
  refusals: number
  /** When the client may connect again; 0 if it is not disconnected. */
  untilMs: number
}

/** Counts refused requests by client. Beyond REFUSALS_PER_MINUTE_MAX a client is disconnected. */
export class RefusalLimit {
  readonly #clients = new Map<string, RefusedClient>()
  readonly #nowMs: () => number

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  /** Returns `now` if these refusals disconnect the client, `already` if it was disconnected. */
  note(client: string, refusals = 1): 'no' | 'now' | 'already' {
    const nowMs = this.#nowMs()
    const known = this.#current(client, nowMs) ?? this.#begin(client, nowMs)
    known.refusals += refusals
    if (known.untilMs > 0) return 'already'
    if (known.refusals <= REFUSALS_PER_MINUTE_MAX) return 'no'
    known.untilMs = nowMs + DISCONNECTED_MS
    return 'now'
  }

  isDisconnected(client: string): boolean {
    if (this.#clients.size === 0) return false
    return (this.#current(client, this.#nowMs())?.untilMs ?? 0) > 0
  }

  /** Returns undefined after the client's minute, or after the end of its disconnection. */
  #current(client: string, nowMs: number): RefusedClient | undefined {
    const known = this.#clients.get(client)
    if (known === undefined) return undefined
    const endMs = known.untilMs > 0 ? known.untilMs : known.sinceMs + WINDOW_MS
    if (nowMs < endMs) return known
    this.#clients.delete(client)
    return undefined
  }

  #begin(client: string, nowMs: number): RefusedClient {
    const begun = { sinceMs: nowMs, refusals: 0, untilMs: 0 }
    this.#clients.set(client, begun)
    if (this.#clients.size > REFUSED_CLIENTS_MAX) {
      const [oldest] = this.#clients.keys()
      if (oldest !== undefined) this.#clients.delete(oldest)
    }
    return begun
  }
}
