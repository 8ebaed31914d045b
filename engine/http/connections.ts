import { BoundedMap } from '../kernel/process/bounded-map.ts'
import { ConnectionLimitLog } from '../kernel/process/connection-limit-log.ts'
import type { Logger } from '../kernel/process/log.ts'
import type { MetricRow } from '../kernel/process/metrics.ts'
import { DISCONNECTED_MS, PIPELINED_REFUSALS, REFUSALS_PER_MINUTE_MAX, REFUSED_CLIENTS_MAX } from '../limits.ts'
import type { ClientCounts } from './client-counts.ts'

/**
 * Why a connection was closed when it was accepted: the limit of the listener, the limit of the
 * client, or the client is disconnected.
 */
const REFUSED_FOR = ['total', 'address', 'refusals'] as const
type RefusedFor = (typeof REFUSED_FOR)[number]

/**
 * Columns of a row of counters: open connections, all connections, refused connections by reason,
 * idle connections that were closed for new ones.
 */
const OPEN = 0
const ACCEPTED = 1
const REFUSED = 2
const CLOSED_IDLE = REFUSED + REFUSED_FOR.length
const COLUMNS = CLOSED_IDLE + 1

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

/**
 * Closes an idle connection of the client with the highest rank that has one, and reports it by
 * `close`. Clients with rank 0 keep theirs. Returns whether there was one.
 */
export type CloseIdle = (rankOf: (client: string) => number) => boolean

/**
 * Decides which connections of a listener to accept. At a limit, an idle connection is closed for
 * the new one: of the client, or of the client with most connections among those that have one. So
 * a client with many idle connections does not keep others out.
 */
export class Connections {
  readonly #limits: ConnectionLimits
  readonly #counts: ClientCounts
  readonly #counters: Float64Array
  readonly #refusals: RefusalLimit | undefined
  readonly #log: Logger
  readonly #limitLog: ConnectionLimitLog
  readonly #closeIdle: CloseIdle | undefined

  /** @param closeIdle undefined: at a limit, new connections are refused */
  constructor(
    limits: ConnectionLimits,
    counts: ClientCounts,
    counters: Float64Array | undefined,
    log: Logger,
    closeIdle?: CloseIdle,
  ) {
    this.#limits = limits
    this.#counts = counts
    this.#counters = counters ?? new Float64Array(COLUMNS)
    this.#refusals = limits.perClientMax === 0 ? undefined : new RefusalLimit()
    this.#log = log
    this.#limitLog = new ConnectionLimitLog(log)
    this.#closeIdle = closeIdle
  }

  get openCount(): number {
    return this.#counters[OPEN] ?? 0
  }

  /** Counts a new connection, which is open until `close`. Returns whether to accept it. */
  open(client: string): boolean {
    const { perClientMax, connectionsMax } = this.#limits
    this.#add(ACCEPTED, 1)
    this.#add(OPEN, 1)
    if (this.#refusals?.isDisconnected(client)) return this.#refuse('refusals')
    if (perClientMax > 0 && this.#counts.isAtLimit(client, perClientMax) && !this.#makeRoom('address', client)) {
      return this.#refuse('address')
    }
    if (this.openCount > connectionsMax && !this.#makeRoom('total')) return this.#refuse('total')
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
    if (client !== undefined) this.#counts.remove(client)
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

  #makeRoom(limit: 'total' | 'address', client?: string): boolean {
    const { perClientMax, connectionsMax } = this.#limits
    this.#limitLog.note(limit, limit === 'total' ? connectionsMax : perClientMax, () => this.#counts.byClient())
    if (this.#closeIdle === undefined) return false
    const counts = this.#counts.byClient()
    const rankOf = (each: string): number => (client === undefined ? (counts.get(each) ?? 0) : Number(each === client))
    if (!this.#closeIdle(rankOf)) return false
    this.#add(CLOSED_IDLE, 1)
    return true
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
    [
      'posture_http_connections_closed_idle_total',
      'counter',
      'Idle HTTP connections closed at a limit, to accept new ones, by listener',
      values(CLOSED_IDLE),
      'listener',
    ],
  ]
}

function sumsOf(memory: SharedArrayBuffer): number[] {
  const all = new Float64Array(memory)
  const sums = new Array<number>(COLUMNS).fill(0)
  for (const [at, count] of all.entries()) sums[at % COLUMNS] = (sums[at % COLUMNS] ?? 0) + count
  return sums
}

const WINDOW_MS = 60_000

interface RefusedClient {
  readonly sinceMs: number
  refusals: number
  /** When the client may connect again; 0 if it is not disconnected. */
  untilMs: number
}

/** Counts refused requests by client. Beyond REFUSALS_PER_MINUTE_MAX a client is disconnected. */
export class RefusalLimit {
  readonly #clients = new BoundedMap<string, RefusedClient>(REFUSED_CLIENTS_MAX)
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
    return begun
  }
}
