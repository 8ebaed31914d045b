import type { Logger } from '../process/log.ts'
import { connectionsByClient } from './kernel-connections.ts'

/** How many connections each client has. */
export interface ClientCounts {
  of(client: string): number
  /** The client has one more. */
  add(client: string): void
  /** The client has one less. An estimate ignores it. */
  remove(client: string): void
  /** A client seems to be at its limit. */
  onLimit(): void
}

/** For servers that report the address of a connection that has closed. */
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
    // The counts are exact: a client at its limit is at its limit.
  }
}

const POLL_EVERY_MS = 1000
/** Clients that have connected since the last count. Beyond it the kernel is asked again. */
const CLIENTS_MAX = 10_000

/**
 * For uWebSockets.js, which does not report the address of a connection that has closed. Counts
 * accepted connections only, so it is never too low. When a client seems to be at its limit, the
 * kernel is asked for the exact number, at most once per second.
 */
export class EstimatedCounts implements ClientCounts {
  readonly #port: () => number
  readonly #log: Logger
  /** The kernel's numbers, and the connections since: while the kernel was asked, and after. */
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
    // The next count of the kernel has it.
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
      // Without the kernel's list there is no limit by address; other limits hold.
      this.#counted = new Map()
      this.#log.warn({ err: error }, 'connections cannot be counted by address')
    }
    this.#meanwhile = new Map()
    this.#isPolling = false
  }
}
