import type { Environment } from '../kernel/lmdb/environment.ts'
import { DAY_MS, dayOf } from '../kernel/process/clock.ts'
import { CLIENT_SUMMARIES_CHANGED_MAX } from '../limits.ts'
import { Family } from './family.ts'
import { textKey, uuidBytes } from './keys.ts'

/**
 * Days in order, each in DAY_NUMBERS numbers: the day, its matches, blocked matches, bytes sent and
 * bytes received. As float64, little-endian, because the list of clients reads hundreds of
 * thousands of them, and numbers in msgpack take five times as long.
 */
export type SummaryDays = Uint8Array

export const DAY_NUMBERS = 5
const NUMBER_BYTES = 8
const DAY_BYTES = DAY_NUMBERS * NUMBER_BYTES

/** All that one client did with AI platforms, by day, so that a list of clients reads one record of each. */
export interface ClientSummary {
  /** The user's name if a log names one, otherwise an address; or the pseudonym of either. */
  readonly client: string
  readonly isUser: boolean
  /** The addresses that a user used last, the last one at the end; at most ADDRESSES_PER_USER_MAX. */
  readonly addresses: readonly string[]
  /** The last use of each. */
  readonly addressesSeenMs: readonly number[]
  readonly firstSeenMs: number
  readonly lastSeenMs: number
  /**
   * The ids of the platforms that the client used, separated by spaces: reading one text takes a
   * tenth of the time of many.
   */
  readonly platformIds: string
  /** The last day of use of each. */
  readonly platformDays: readonly number[]
  readonly days: SummaryDays
}

/** Changes with the form of a summary: the next scan makes all of them again. */
export const SUMMARY_FORM = 2

/** About all summaries of an organization. */
export interface SummaryTotals {
  /** SUMMARY_FORM. Not in the first form. */
  readonly form?: number
  /**
   * The generation of the scan state that the summaries belong to. The next scan makes all of them
   * again if another program or an erasure came in between.
   */
  readonly generation: number
  readonly clients: number
  /** No summary has an earlier day. */
  readonly firstDay: number
  /** The removal of earlier days, in key order. undefined: it has reached the last summary. */
  readonly removal?: SummaryRemoval | undefined
  /** The use by clients without a summary, because there are too many. */
  readonly others: SummaryDays
}

interface SummaryRemoval {
  /** The first day that is kept. */
  readonly firstDay: number
  /** The key, after the organization, of the next summary. */
  readonly next: string
}

export interface SummaryChange {
  readonly put: readonly ClientSummary[]
  readonly removed: readonly Pick<ClientSummary, 'client' | 'isUser'>[]
  /** Removes all others first. */
  readonly isRebuild: boolean
  readonly totals: SummaryTotals
}

/** A summary of one platform and day, with its key. */
const SUMMARY_BYTES_MIN = 1024
const ADDRESS_BYTES = 64
const PLATFORM_DAY_BYTES = 5

/** Bytes that a change writes, at most. */
export function bytesOfChange({ put, removed }: SummaryChange): number {
  const bytesOfEach = ({ addresses, platformIds, platformDays, days }: ClientSummary): number =>
    SUMMARY_BYTES_MIN +
    ADDRESS_BYTES * addresses.length +
    platformIds.length +
    PLATFORM_DAY_BYTES * platformDays.length +
    days.length
  return put.reduce((sum, summary) => sum + bytesOfEach(summary), SUMMARY_BYTES_MIN * removed.length)
}

/** The sum of some days. */
export interface DaysSum {
  readonly matches: number
  readonly blocked: number
  readonly bytesSent: number
  readonly bytesReceived: number
}

/** One summary for each client of an organization. */
export class ClientSummaries {
  readonly #summaries: Family<ClientSummary>
  readonly #totals: Family<SummaryTotals>

  constructor(environment: Environment) {
    this.#summaries = new Family(environment.table('client-summaries'), 'summary of a client')
    this.#totals = new Family(environment.table('client-summary-totals'), 'totals of clients')
  }

  get(organizationId: string, client: string, isUser: boolean): ClientSummary | undefined {
    return this.#summaries.get(keyOf(organizationId, { client, isUser }))
  }

  *all(organizationId: string): Generator<ClientSummary> {
    for (const { value } of this.#summaries.range(uuidBytes(organizationId))) yield value
  }

  /** undefined: no scan has made summaries of this form yet. */
  totals(organizationId: string): SummaryTotals | undefined {
    const totals = this.#totals.get(uuidBytes(organizationId))
    return totals?.form === SUMMARY_FORM ? totals : undefined
  }

  /** Requires the transaction of the scan. */
  write(organizationId: string, { put, removed, isRebuild, totals }: SummaryChange): void {
    if (isRebuild) this.removeAll(organizationId, Number.POSITIVE_INFINITY)
    for (const summary of removed) this.#summaries.remove(keyOf(organizationId, summary))
    for (const summary of put) this.#summaries.put(keyOf(organizationId, summary), summary)
    this.#totals.put(uuidBytes(organizationId), totals)
  }

  /**
   * Removes the days before `firstDay`, and clients without later ones; or continues the removal
   * that a call before has begun. Reads at most `countMax` summaries, and returns their number. 0:
   * nothing is left.
   */
  removeBefore(organizationId: string, firstDay: number, countMax = CLIENT_SUMMARIES_CHANGED_MAX): number {
    const totals = this.totals(organizationId)
    const removal = totals?.removal ?? { firstDay, next: '' }
    if (totals === undefined || removal.firstDay <= totals.firstDay) return 0
    const start = textKey(organizationId, removal.next)
    const read: ClientSummary[] = []
    let next: string | undefined
    for (const { value } of this.#summaries.range(uuidBytes(organizationId), start)) {
      if (read.length === countMax) {
        next = nameOf(value)
        break
      }
      read.push(value)
    }
    let { clients } = totals
    for (const summary of read) {
      if ((numbersOf(summary.days)[0] ?? 0) >= removal.firstDay) continue
      const key = keyOf(organizationId, summary)
      const kept = withoutDaysBefore(summary, removal.firstDay)
      if (kept !== undefined) this.#summaries.put(key, kept)
      else {
        this.#summaries.remove(key)
        clients--
      }
    }
    const others = daysFrom(totals.others, removal.firstDay)
    const progress =
      next === undefined
        ? { removal: undefined, firstDay: removal.firstDay }
        : { removal: { ...removal, next }, firstDay: totals.firstDay }
    this.#totals.put(uuidBytes(organizationId), { ...totals, clients, others, ...progress })
    return read.length
  }

  /** Removes up to `countMax` summaries, and returns their number. */
  removeAll(organizationId: string, countMax: number): number {
    const keys: Buffer[] = []
    for (const key of this.#summaries.keys(uuidBytes(organizationId))) {
      if (keys.length === countMax) break
      keys.push(Buffer.from(key))
    }
    for (const key of keys) this.#summaries.remove(key)
    this.#totals.remove(uuidBytes(organizationId))
    return keys.length
  }
}

function keyOf(organizationId: string, summary: Pick<ClientSummary, 'client' | 'isUser'>): Buffer {
  return textKey(organizationId, nameOf(summary))
}

/** A user can have the name of an address. */
export function nameOf({ client, isUser }: Pick<ClientSummary, 'client' | 'isUser'>): string {
  return `${isUser ? 'u' : 'a'}${client}`
}

function withoutDaysBefore(summary: ClientSummary, firstDay: number): ClientSummary | undefined {
  if (dayOf(summary.lastSeenMs) < firstDay) return undefined
  const { addresses, addressesSeenMs, platformIds, platformDays, days } = summary
  const isSeen = (_: unknown, at: number): boolean => dayOf(addressesSeenMs[at] ?? 0) >= firstDay
  const isKept = (_: unknown, at: number): boolean => (platformDays[at] ?? 0) >= firstDay
  return {
    ...summary,
    addresses: addresses.filter(isSeen),
    addressesSeenMs: addressesSeenMs.filter(isSeen),
    firstSeenMs: Math.max(summary.firstSeenMs, firstDay * DAY_MS),
    platformIds: platformIds.split(' ').filter(isKept).join(' '),
    platformDays: platformDays.filter(isKept),
    days: daysFrom(days, firstDay),
  }
}

function daysFrom(days: SummaryDays, firstDay: number): SummaryDays {
  const numbers = numbersOf(days)
  let at = 0
  while (at < numbers.length && (numbers[at] ?? 0) < firstDay) at += DAY_NUMBERS
  return bytesOf(numbers.slice(at))
}

export function numbersOf(days: SummaryDays): number[] {
  const view = viewOf(days)
  return Array.from({ length: days.length / NUMBER_BYTES }, (_, at) => view.getFloat64(at * NUMBER_BYTES, true))
}

export function bytesOf(numbers: readonly number[]): SummaryDays {
  return new Uint8Array(Float64Array.from(numbers).buffer)
}

function viewOf({ buffer, byteOffset, length }: SummaryDays): DataView {
  return new DataView(buffer, byteOffset, length)
}

/** Adds numbers to a day. */
export function addToDay(days: number[], day: number, sum: DaysSum): void {
  let at = days.length
  while (at > 0 && (days[at - DAY_NUMBERS] ?? 0) > day) at -= DAY_NUMBERS
  const { matches, blocked, bytesSent, bytesReceived } = sum
  if (at === 0 || days[at - DAY_NUMBERS] !== day) {
    days.splice(at, 0, day, matches, blocked, bytesSent, bytesReceived)
    return
  }
  for (const [index, number] of [matches, blocked, bytesSent, bytesReceived].entries()) {
    const place = at - DAY_NUMBERS + 1 + index
    days[place] = Math.min((days[place] ?? 0) + number, Number.MAX_SAFE_INTEGER)
  }
}

/** The sum of the days from `firstDay` on. */
export function sumOfDays(days: SummaryDays, firstDay: number, lastDay = Number.POSITIVE_INFINITY): DaysSum {
  const view = viewOf(days)
  let [matches, blocked, bytesSent, bytesReceived] = [0, 0, 0, 0]
  for (let at = 0; at + DAY_BYTES <= days.length; at += DAY_BYTES) {
    const day = view.getFloat64(at, true)
    if (day < firstDay || day > lastDay) continue
    matches += view.getFloat64(at + NUMBER_BYTES, true)
    blocked += view.getFloat64(at + 2 * NUMBER_BYTES, true)
    bytesSent += view.getFloat64(at + 3 * NUMBER_BYTES, true)
    bytesReceived += view.getFloat64(at + 4 * NUMBER_BYTES, true)
  }
  return { matches, blocked, bytesSent, bytesReceived }
}

/** Adds days to others. */
export function addDays(to: number[], days: readonly number[]): void {
  for (let at = 0; at < days.length; at += DAY_NUMBERS) {
    const [day = 0, matches = 0, blocked = 0, bytesSent = 0, bytesReceived = 0] = days.slice(at, at + DAY_NUMBERS)
    addToDay(to, day, { matches, blocked, bytesSent, bytesReceived })
  }
}
