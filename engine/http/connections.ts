import { DISCONNECTED_MS, PIPELINED_REFUSALS } from '../limits.ts'
import type { Logger } from '../process/log.ts'
import type { MetricRow } from '../process/metrics.ts'
import type { ClientCounts } from './client-counts.ts'
import { RefusalLimit } from './refusal-limit.ts'

/**
 * Why a connection was closed when it was accepted: the limit of the listener, the limit of the
 * client, or the client is disconnected.
 */
const REFUSED_FOR = ['total', 'address', 'refusals'] as const
type RefusedFor = (typeof REFUSED_FOR)[number]

/**
 * Columns of a row of counters: open connections, all connections, refused connections by reason.
 */
const OPEN = 0
const ACCEPTED = 1
const REFUSED = 2
const COLUMNS = REFUSED + REFUSED_FOR.length

/** One row for each thread of a listener. Only that thread writes its row. */
export function makeConnectionCounters(threads: number): SharedArrayBuffer {
  return new SharedArrayBuffer(threads * COLUMNS * Float64Array.BYTES_PER_ELEMENT)
}

/** The row of one thread. */
export function connectionCountersOf(memory: SharedArrayBuffer, thread = 0): Float64Array {
  return new Float64Array(memory, thread * COLUMNS * Float64Array.BYTES_PER_ELEMENT, COLUMNS)
}

export interface ConnectionLimits {
  /** Maximum number of open connections of the listener. Further ones are closed when accepted. */
  readonly connectionsMax: number
  /**
   * Maximum number of open connections of one client: an IPv4 address or an IPv6 /64. 0 if all
   * clients share an address, as behind a proxy: no limit applies per address, and no client is
   * disconnected.
   */
  readonly perClientMax: number
}

export const UNLIMITED: ConnectionLimits = { connectionsMax: Number.MAX_SAFE_INTEGER, perClientMax: 0 }

/** Decides which connections of a listener to accept. */
export class Connections {
  readonly #limits: ConnectionLimits
  readonly #counts: ClientCounts
  readonly #counters: Float64Array
  readonly #refusals: RefusalLimit | undefined
  readonly #log: Logger

  constructor(limits: ConnectionLimits, counts: ClientCounts, counters: Float64Array | undefined, log: Logger) {
    this.#limits = limits
    this.#counts = counts
    this.#counters = counters ?? new Float64Array(COLUMNS)
    this.#refusals = limits.perClientMax === 0 ? undefined : new RefusalLimit()
    this.#log = log
  }

  get openCount(): number {
    return this.#counters[OPEN] ?? 0
  }

  /** Counts a new connection, which is open until `close`. Returns whether to accept it. */
  open(client: string): boolean {
    const { perClientMax, connectionsMax } = this.#limits
    this.#add(ACCEPTED, 1)
    this.#add(OPEN, 1)
    if ((this.#counters[OPEN] ?? 0) > connectionsMax) return this.#refuse('total')
    if (perClientMax === 0) return true
    if (this.#refusals?.isDisconnected(client)) return this.#refuse('refusals')
    if (this.#counts.isAtLimit(client, perClientMax)) return this.#refuse('address')
    this.#counts.add(client)
    return true
  }

  /**
   * Counts a closed connection.
   *
   * @param client of an accepted connection, if known
   */
  close(client?: string): void {
    this.#add(OPEN, -1)
    if (client !== undefined && this.#limits.perClientMax > 0) this.#counts.remove(client)
  }

  /** Counts a refused request. Returns whether to close its connection without an answer. */
  isPastRefusals(client: string): boolean {
    return this.#note(client, 1)
  }

  /** Counts a connection that was closed because the client pipelined too many requests. */
  notePipelined(client: string): void {
    this.#note(client, PIPELINED_REFUSALS)
  }

  #note(client: string, refusals: number): boolean {
    const disconnected = this.#refusals?.note(client, refusals) ?? 'no'
    if (disconnected === 'now') {
      this.#log.warn(
        { client, seconds: DISCONNECTED_MS / 1000 },
        'disconnected: too many refused or pipelined requests',
      )
    }
    return disconnected !== 'no'
  }

  #refuse(reason: RefusedFor): false {
    this.#add(REFUSED + REFUSED_FOR.indexOf(reason), 1)
    return false
  }

  #add(column: number, count: number): void {
    this.#counters[column] = (this.#counters[column] ?? 0) + count
  }
}

/** Metrics of HTTP listeners by name, for Prometheus. */
export function connectionRows(listeners: Readonly<Record<string, SharedArrayBuffer>>): MetricRow[] {
  const sums = Object.entries(listeners).map(([listener, memory]) => ({ listener, sums: sumsOf(memory) }))
  const values = (column: number): Record<string, number> =>
    Object.fromEntries(sums.map(({ listener, sums }) => [listener, sums[column] ?? 0]))
  return [
    ['posture_http_connections', 'gauge', 'Open HTTP connections by listener', values(OPEN), 'listener'],
    [
      'posture_http_connections_total',
      'counter',
      'Accepted HTTP connections by listener',
      values(ACCEPTED),
      'listener',
    ],
    [
      'posture_http_connections_refused_total',
      'counter',
      'HTTP connections closed when accepted, by listener and reason: limit of the listener, limit of the address, or too many refused requests of the address',
      sums.flatMap(({ listener, sums }) =>
        REFUSED_FOR.map((reason, index) => ({ labels: { listener, reason }, value: sums[REFUSED + index] ?? 0 })),
      ),
    ],
  ]
}

function sumsOf(memory: SharedArrayBuffer): number[] {
  const all = new Float64Array(memory)
  const sums = new Array<number>(COLUMNS).fill(0)
  for (const [at, count] of all.entries()) sums[at % COLUMNS] = (sums[at % COLUMNS] ?? 0) + count
  return sums
}
