import { METHODS, type Method } from '../event/event.ts'
import type { ClientDay } from './client-days.ts'
import { type ClientNumbers, ClientReader } from './client-records.ts'

/** The use of a platform by one client, over one or more days. */
export interface ClientUse {
  /** An address or a pseudonym; NO_CLIENT if only the user is known. */
  readonly client: string
  /** '' if no log names a user. */
  readonly user: string
  readonly methods: readonly Method[]
  readonly matches: number
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

/** Adds up client records of different days, in memory for each client. */
export class ClientSum {
  /** Matches of clients that are not in the records. */
  otherMatches = 0
  readonly #clients = new Map<string, Sum>()

  /** Adds the clients of a record for which `wanted` returns true. */
  add({ day, bytes }: ClientDay, wanted: (reader: ClientReader) => boolean = () => true): void {
    const reader = new ClientReader(bytes, day)
    this.otherMatches += reader.otherMatches
    while (reader.next()) if (wanted(reader)) this.#add(reader)
  }

  /** Those with the most matches first. */
  clients(countMax = Number.POSITIVE_INFINITY): ClientUse[] {
    const sums = [...this.#clients.values()].sort((a, b) => b.matches - a.matches || (a.client < b.client ? -1 : 1))
    return sums.slice(0, countMax).map(({ methods, ...sum }) => ({
      ...sum,
      methods: METHODS.filter((_, bit) => (methods & (1 << bit)) !== 0),
    }))
  }

  #add(reader: ClientReader): void {
    const { client, user, methods, matches, firstSeenMs, lastSeenMs, bytesSent, bytesReceived } = reader
    const key = `${client} ${user}`
    const sum = this.#clients.get(key)
    if (sum === undefined) {
      const numbers = { methods, matches, firstSeenMs, lastSeenMs, bytesSent, bytesReceived }
      this.#clients.set(key, { client, user, ...numbers, days: 1 })
      return
    }
    sum.methods |= methods
    sum.matches += matches
    sum.firstSeenMs = Math.min(sum.firstSeenMs, firstSeenMs)
    sum.lastSeenMs = Math.max(sum.lastSeenMs, lastSeenMs)
    sum.bytesSent += bytesSent
    sum.bytesReceived += bytesReceived
    sum.days++
  }
}
