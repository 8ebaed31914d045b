import type { Logger } from '../kernel/process/log.ts'

/** Number of connections per client. */
export interface ClientCounts {
  /** Whether a client whose new connection is not yet added has `max` others. */
  isAtLimit(client: string, max: number): boolean
  /** Counts a new connection of the client. */
  add(client: string): void
  /** Counts a closed connection of the client. Estimates ignore it. */
  remove(client: string): void
  /** Connections by client. An estimate may be too high. */
  byClient(): ReadonlyMap<string, number>
}

/** For servers that report the address of a closed connection. */
export class ExactCounts implements ClientCounts {
  readonly #counts = new Map<string, number>()

  isAtLimit(client: string, max: number): boolean {
    return (this.#counts.get(client) ?? 0) >= max
  }

  add(client: string): void {
    this.#counts.set(client, (this.#counts.get(client) ?? 0) + 1)
  }

  remove(client: string): void {
    const count = (this.#counts.get(client) ?? 0) - 1
    if (count > 0) this.#counts.set(client, count)
    else this.#counts.delete(client)
  }

  byClient(): ReadonlyMap<string, number> {
    return this.#counts
  }
}

const POLL_EVERY_MS = 1000
/**
 * Maximum number of clients with connections since the last count. At the limit, the kernel is
 * queried again.
 */
const CLIENTS_MAX = 10_000

/**
 * For uWebSockets.js, which does not report the address of a connection that has closed. Counts
 * accepted connections, which is never too low. A client that seems to be at its limit may have
 * closed most of them, so it is refused only if the kernel's list says so. The kernel is asked at
 * most once per second; until then a client that was below its limit is accepted.
 */
export class EstimatedCounts implements ClientCounts {
  readonly #listed: () => Map<string, number>
  readonly #nowMs: () => number
  readonly #log: Logger
  /** The kernel's numbers, and the connections accepted since. */
  #counted = new Map<string, number>()
  readonly #since = new Map<string, number>()
  #nextPollMs = 0

  /** @param listed returns the kernel's numbers, new connections that are not yet added included */
  constructor(listed: () => Map<string, number>, log: Logger, nowMs: () => number = () => performance.now()) {
    this.#listed = listed
    this.#log = log
    this.#nowMs = nowMs
  }

  isAtLimit(client: string, max: number): boolean {
    if (this.#countedOf(client) + (this.#since.get(client) ?? 0) < max) return false
    // Without the new connection, which the list has and which is added if it is accepted.
    if (this.#poll()) this.#counted.set(client, this.#countedOf(client) - 1)
    return this.#countedOf(client) >= max
  }

  add(client: string): void {
    this.#since.set(client, (this.#since.get(client) ?? 0) + 1)
    if (this.#since.size > CLIENTS_MAX) this.#poll()
  }

  remove(): void {
    // The next query of the kernel counts the connection.
  }

  byClient(): ReadonlyMap<string, number> {
    const all = new Map(this.#counted)
    for (const [client, count] of this.#since) all.set(client, (all.get(client) ?? 0) + count)
    return all
  }

  #countedOf(client: string): number {
    return this.#counted.get(client) ?? 0
  }

  /** Returns whether the kernel was asked. */
  #poll(): boolean {
    const nowMs = this.#nowMs()
    if (nowMs < this.#nextPollMs) return false
    this.#nextPollMs = nowMs + POLL_EVERY_MS
    this.#since.clear()
    try {
      this.#counted = this.#listed()
    } catch (error) {
      // Without the kernel's list there is no limit per address. Other limits still apply.
      this.#counted = new Map()
      this.#log.warn({ err: error }, 'connections cannot be counted by address')
    }
    return true
  }
}
