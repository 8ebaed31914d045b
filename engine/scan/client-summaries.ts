import { NO_CLIENT } from '../kernel/event/client.ts'
import { ADDRESSES_PER_USER_MAX, CLIENT_SUMMARIES_BYTES_READ_MAX, CLIENT_SUMMARIES_MAX } from '../limits.ts'
import { type ClientNumbers, ClientReader } from '../store/client-records.ts'
import {
  addDays,
  addToDay,
  bytesOf,
  type ClientSummary,
  nameOf,
  numbersOf,
  SUMMARY_FORM,
  type SummaryChange,
  type SummaryTotals,
  sumOfDays,
} from '../store/client-summaries.ts'
import type { Store } from '../store/store.ts'
import type { ScanBudget } from './scan-budget.ts'

/** A summary that changes. */
interface Sum {
  readonly client: string
  readonly isUser: boolean
  /** The last use of each. */
  readonly addresses: Map<string, number>
  firstSeenMs: number
  lastSeenMs: number
  readonly platforms: Map<string, number>
  readonly days: number[]
  /** The store has a summary of the client. */
  readonly isStored: boolean
}

export interface SummaryScope {
  readonly store: Store
  readonly organizationId: string
  /** The generation of the scan state before the scan. */
  readonly generation: number
  readonly firstDay: number
  readonly lastDay: number
  readonly budget: ScanBudget
}

/**
 * Adds the events of a scan to the summary of each client. Makes the summaries from the client
 * records if there are none of the last scan, as in a store of an earlier release.
 *
 * A scan keeps CLIENT_SUMMARIES_MAX clients: those that used a platform before those that did not,
 * and of these those with the most matches. The use by others is summed by day. A client that was
 * left out begins with 0 matches if it returns.
 */
export class SummaryUpdate {
  readonly #scope: SummaryScope
  readonly #before: SummaryTotals
  readonly #isRebuild: boolean
  /** No earlier day is added. */
  readonly #firstDay: number
  #sums = new Map<string, Sum>()
  readonly #others: number[]
  /** Stored summaries that were left out, by name. */
  readonly #removed = new Map<string, Pick<ClientSummary, 'client' | 'isUser'>>()

  constructor(scope: SummaryScope) {
    const { store, organizationId, generation, firstDay } = scope
    const before = store.clientSummaries.totals(organizationId)
    this.#scope = scope
    this.#isRebuild = before?.generation !== generation
    this.#before =
      this.#isRebuild || before === undefined
        ? { form: SUMMARY_FORM, generation, clients: 0, firstDay, others: bytesOf([]) }
        : before
    this.#firstDay = Math.max(firstDay, this.#before.removal?.firstDay ?? this.#before.firstDay)
    this.#others = numbersOf(this.#before.others)
    if (this.#isRebuild) this.#addStored()
  }

  /** Adds the matches of a client of a platform on a day. */
  add(day: number, platformId: string, client: string, user: string, numbers: ClientNumbers): void {
    if ((client === NO_CLIENT && user === '') || day < this.#firstDay) return
    const isUser = user !== ''
    const key = nameOf({ client: isUser ? user : client, isUser })
    let sum = this.#sums.get(key)
    if (sum === undefined) {
      this.#scope.budget.check()
      sum = this.#sumOf(isUser ? user : client, isUser)
      this.#sums.set(key, sum)
    }
    if (isUser && client !== NO_CLIENT) addAddress(sum.addresses, client, numbers.lastSeenMs)
    sum.firstSeenMs = Math.min(sum.firstSeenMs, numbers.firstSeenMs)
    sum.lastSeenMs = Math.max(sum.lastSeenMs, numbers.lastSeenMs)
    // Not known of records of schema 1.
    const blocked = Number.isNaN(numbers.blocked) ? 0 : numbers.blocked
    addToDay(sum.days, day, { ...numbers, blocked })
    if (numbers.access !== 0) sum.platforms.set(platformId, Math.max(day, sum.platforms.get(platformId) ?? 0))
    if (this.#sums.size > 2 * CLIENT_SUMMARIES_MAX) this.#shrink()
  }

  change(): SummaryChange {
    const { store, organizationId, generation } = this.#scope
    const put = [...this.#sums.values()].map(summaryOf)
    const added = [...this.#sums.values()].filter(({ isStored }) => !isStored).length
    const all = this.#before.clients + added - this.#removed.size
    const excess = all - CLIENT_SUMMARIES_MAX
    let kept = put
    if (excess > 0) {
      const unchanged = this.#isRebuild ? [] : [...store.clientSummaries.all(organizationId)].filter(this.#isUnchanged)
      const left = new Set(leastFirst([...unchanged, ...put], rankOf).slice(0, excess))
      for (const summary of left) {
        addDays(this.#others, numbersOf(summary.days))
        this.#removed.set(nameOf(summary), summary)
      }
      kept = put.filter((summary) => !left.has(summary))
    }
    const clients = Math.min(all, CLIENT_SUMMARIES_MAX)
    const totals = { ...this.#before, generation: generation + 1, clients, others: bytesOf(this.#others) }
    return { put: kept, removed: [...this.#removed.values()], isRebuild: this.#isRebuild, totals }
  }

  readonly #isUnchanged = (summary: ClientSummary): boolean => {
    const name = nameOf(summary)
    return !this.#sums.has(name) && !this.#removed.has(name)
  }

  /** Adds the stored client records of the window, of the last days if there are too many. */
  #addStored(): void {
    const { store, organizationId, firstDay, lastDay, budget } = this.#scope
    let left = CLIENT_SUMMARIES_BYTES_READ_MAX
    for (let day = lastDay; day >= firstDay && left > 0; day--) {
      for (const { platformId, bytes } of store.clientDays.since(organizationId, day, day + 1)) {
        budget.check()
        left -= bytes.length
        const reader = new ClientReader(bytes, day)
        while (reader.next()) this.add(day, platformId, reader.client, reader.user, reader)
      }
    }
  }

  #sumOf(client: string, isUser: boolean): Sum {
    const { store, organizationId } = this.#scope
    const name = nameOf({ client, isUser })
    const times = { firstSeenMs: Number.MAX_SAFE_INTEGER, lastSeenMs: 0 }
    const isRemoved = this.#removed.delete(name)
    const stored = this.#isRebuild || isRemoved ? undefined : store.clientSummaries.get(organizationId, client, isUser)
    if (stored === undefined) {
      return { client, isUser, addresses: new Map(), ...times, platforms: new Map(), days: [], isStored: isRemoved }
    }
    const { addresses, addressesSeenMs, platformIds, platformDays, days, firstSeenMs, lastSeenMs } = stored
    const ids = platformIds.split(' ')
    return {
      ...{ client, isUser, firstSeenMs, lastSeenMs, days: numbersOf(days), isStored: true },
      addresses: new Map(addressesSeenMs.map((seenMs, at) => [addresses[at] ?? '', seenMs])),
      platforms: new Map(platformDays.map((day, at) => [ids[at] ?? '', day])),
    }
  }

  /** Leaves out half of the clients, those with the fewest matches, so that memory is bounded. */
  #shrink(): void {
    const ranked = leastFirst([...this.#sums], ([, sum]) => rankOf(summaryOf(sum)))
    const kept = ranked.splice(-CLIENT_SUMMARIES_MAX)
    for (const [name, { client, isUser, days, isStored }] of ranked) {
      addDays(this.#others, days)
      if (isStored) this.#removed.set(name, { client, isUser })
    }
    this.#sums = new Map(kept)
  }
}

function addAddress(addresses: Map<string, number>, address: string, seenMs: number): void {
  addresses.set(address, Math.max(seenMs, addresses.get(address) ?? 0))
  if (addresses.size <= ADDRESSES_PER_USER_MAX) return
  const [[first] = ['']] = lastUseLast(addresses)
  addresses.delete(first)
}

function lastUseLast(addresses: ReadonlyMap<string, number>): [string, number][] {
  return [...addresses].sort(([, a], [, b]) => a - b)
}

function summaryOf({ client, isUser, addresses, firstSeenMs, lastSeenMs, platforms, days }: Sum): ClientSummary {
  const used = lastUseLast(addresses)
  return {
    ...{ client, isUser, firstSeenMs, lastSeenMs, days: bytesOf(days) },
    addresses: used.map(([address]) => address),
    addressesSeenMs: used.map(([, seenMs]) => seenMs),
    platformIds: [...platforms.keys()].join(' '),
    platformDays: [...platforms.values()],
  }
}

/** Greater for the clients to keep. */
function rankOf({ platformDays, days }: Pick<ClientSummary, 'platformDays' | 'days'>): number {
  const { matches } = sumOfDays(days, 0)
  return platformDays.length > 0 ? matches : matches / 2 ** 53
}

function leastFirst<T>(all: readonly T[], rank: (each: T) => number): T[] {
  return all
    .map((each) => ({ each, rank: rank(each) }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ each }) => each)
}
