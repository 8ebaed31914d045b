import type { Logger } from '../process/log.ts'
import { connectionsByClient } from './kernel-connections.ts'

/** Number of connections per client. */
export interface ClientCounts {
  of(client: string): number
  /** Counts a new connection of the client. */
  add(client: string): void
  /** Counts a closed connection of the client. Estimates ignore it. */
  remove(client: string): void
  /** Called when a client seems to be at its limit. */
  onLimit(): void
}

/** For servers that report the address of a closed connection. */
export class ExactCounts implements ClientCounts {
  readonly #counts = new Map<string, number>()

  of(client: string): number {
    return this.#counts.get(client) ?? 0
  }

  add(client: string): void {
    this.#counts.set(client, this.of(client) + 1)
  }

  remove(client: string): void {
    const count = this.of(client) - 1
    if (count > 0) this.#counts.set(client, count)
    else this.#counts.delete(client)
  }

  onLimit(): void {
    // Nothing to do, because the counts are exact.
  }
}

const POLL_EVERY_MS = 1000
/**
 * Maximum number of clients with connections since the last count. At the limit, the kernel is
 * queried again.
 */
const CLIENTS_MAX = 10_000

/**
 * For uWebSockets.js, which does not report the address of a closed connection. The estimate
 * includes only accepted connections, so it is never too low. When a client seems to be at its
 * limit, the kernel is queried for the exact number, at most once per second.
 */
export class EstimatedCounts implements ClientCounts {
  readonly #port: () => number
  readonly #log: Logger
  /** The kernel's numbers, and the connections since: during the query, and after it. */
  #counted: ReadonlyMap<string, number> = new Map()
  #meanwhile: ReadonlyMap<string, number> = new Map()
  #since = new Map<string, number>()
  #isPolling = false
  #nextPollMs = 0

  constructor(port: () => number, log: Logger) {
    this.#port = port
    this.#log = log
  }

  of(client: string): number {
    return (this.#counted.get(client) ?? 0) + (this.#meanwhile.get(client) ?? 0) + (this.#since.get(client) ?? 0)
  }

  add(client: string): void {
    this.#since.set(client, (this.#since.get(client) ?? 0) + 1)
    if (this.#since.size > CLIENTS_MAX) this.onLimit()
  }

  remove(): void {
    // The next query of the kernel counts the connection.
  }

  onLimit(): void {
    const nowMs = performance.now()
    if (this.#isPolling || nowMs < this.#nextPollMs) return
    this.#nextPollMs = nowMs + POLL_EVERY_MS
    void this.#poll()
  }

  async #poll(): Promise<void> {
    this.#isPolling = true
    this.#meanwhile = this.#since
    this.#since = new Map()
    try {
      this.#counted = await connectionsByClient(this.#port())
    } catch (error) {
      // Without the kernel's list there is no limit per address. Other limits still apply.
      this.#counted = new Map()
      this.#log.warn({ err: error }, 'connections cannot be counted by address')
    }
    this.#meanwhile = new Map()
    this.#isPolling = false
  }
}
