import type { AccessKind } from '../../registry/contact.ts'
import { type Method, READ_METHODS } from '../kernel/event/event.ts'
import { CLIENTS_LISTED_MAX } from '../limits.ts'
import type { ClientDay } from './client-days.ts'
import { type ClientNumbers, ClientReader, kindsOf } from './client-records.ts'

/** The use of a platform by one client, over one or more days. */
export interface ClientUse {
  /** An address or a pseudonym; NO_CLIENT if only the user is known. */
  readonly client: string
  /** '' if no log names a user. */
  readonly user: string
  readonly methods: readonly Method[]
  /** How the client used the platform, as far as its hosts show that. */
  readonly access: readonly AccessKind[]
  /** All: those that used the platform, were blocked or only touched it. */
  readonly matches: number
  /** NaN: not known, because schema 1 did not store it. */
  readonly used: number
  readonly blocked: number
  readonly touched: number
  readonly firstSeenMs: number
  readonly lastSeenMs: number
  readonly bytesSent: number
  readonly bytesReceived: number
  readonly days: number
}

type Sum = { -readonly [name in keyof ClientNumbers]: number } & {
  readonly client: string
  readonly user: string
  days: number
}

/**
 * Adds up client records of different days. Keeps up to twice `countMax` clients in memory; above
 * that, those with the fewest matches are left out. A client that was left out starts again from
 * zero, so its numbers may be too low.
 */
export class ClientSum {
  /** Matches of clients that are not in the records, or that were left out. */
  otherMatches = 0
  readonly #countMax: number
  #clients = new Map<string, Sum>()

  constructor(countMax = CLIENTS_LISTED_MAX) {
    this.#countMax = countMax
  }

  /** Adds the clients of a record for which `wanted` returns true. */
  add({ day, bytes }: ClientDay, wanted: (reader: ClientReader) => boolean = () => true): void {
    const reader = new ClientReader(bytes, day)
    this.otherMatches += reader.otherMatches
    while (reader.next()) if (wanted(reader)) this.#add(reader)
    // A record has at most CLIENTS_PER_DAY_MAX clients.
    if (this.#clients.size > 2 * this.#countMax) this.#shrink()
  }

  /** Those that used the platform first, and the most matches first. */
  clients(countMax = this.#countMax): ClientUse[] {
    if (this.#clients.size > this.#countMax) this.#shrink()
    return this.#sorted()
      .slice(0, countMax)
      .map(({ methods, access, ...sum }) => ({
        ...sum,
        used: sum.matches - sum.blocked - sum.touched,
        methods: READ_METHODS.filter((_, bit) => (methods & (1 << bit)) !== 0),
        access: kindsOf(access),
      }))
  }

  #sorted(): Sum[] {
    const isUser = (sum: Sum): number => Number(sum.matches - sum.blocked - sum.touched !== 0)
    return [...this.#clients.values()].sort(
      (a, b) => isUser(b) - isUser(a) || b.matches - a.matches || (a.client < b.client ? -1 : 1),
    )
  }

  #shrink(): void {
    const sums = this.#sorted()
    for (const { matches } of sums.splice(this.#countMax)) this.otherMatches += matches
    this.#clients = new Map(sums.map((sum) => [keyOf(sum), sum]))
  }

  #add(reader: ClientReader): void {
    const { client, user, methods, access, matches, firstSeenMs, lastSeenMs } = reader
    const { bytesSent, bytesReceived, blocked, touched } = reader
    const key = keyOf({ client, user })
    const sum = this.#clients.get(key)
    if (sum === undefined) {
      const bytes = { bytesSent, bytesReceived }
      const numbers = { methods, access, matches, firstSeenMs, lastSeenMs, blocked, touched, ...bytes }
      this.#clients.set(key, { client, user, ...numbers, days: 1 })
      return
    }
    sum.methods |= methods
    sum.access |= access
    sum.matches += matches
    sum.firstSeenMs = Math.min(sum.firstSeenMs, firstSeenMs)
    sum.lastSeenMs = Math.max(sum.lastSeenMs, lastSeenMs)
    sum.bytesSent += bytesSent
    sum.bytesReceived += bytesReceived
    sum.blocked += blocked
    sum.touched += touched
    sum.days++
  }
}

function keyOf({ client, user }: Pick<Sum, 'client' | 'user'>): string {
  return `${client} ${user}`
}
