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
  readonly addresses: string[]
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
  readonly #isComplete: boolean
  /** No earlier day is added. */
  readonly #firstDay: number
  #sums = new Map<string, Sum>()
  readonly #others: number[]

  constructor(scope: SummaryScope) {
    const { store, organizationId, generation, firstDay } = scope
    const before = store.clientSummaries.totals(organizationId)
    this.#scope = scope
    this.#isComplete = before?.generation !== generation
    this.#before =
      this.#isComplete || before === undefined ? { generation, clients: 0, firstDay, others: bytesOf([]) } : before
    this.#firstDay = Math.max(firstDay, this.#before.removal?.firstDay ?? this.#before.firstDay)
    this.#others = numbersOf(this.#before.others)
    if (this.#isComplete) this.#addStored()
  }

  /** Adds the matches of a client of a platform on a day. */
  add(day: number, platformId: string, client: string, user: string, numbers: ClientNumbers): void {
    if ((client === NO_CLIENT && user === '') || day < this.#firstDay) return
    const isUser = user !== ''
    const key = nameOf({ client: isUser ? user : client, isUser })
    let sum = this.#sums.get(key)
    if (sum === undefined) {
      sum = this.#sumOf(isUser ? user : client, isUser)
      this.#sums.set(key, sum)
    }
    if (isUser && client !== NO_CLIENT && !sum.addresses.includes(client)) {
      sum.addresses.push(client)
      if (sum.addresses.length > ADDRESSES_PER_USER_MAX) sum.addresses.shift()
    }
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
    const excess = this.#before.clients + added - CLIENT_SUMMARIES_MAX
    const removed: ClientSummary[] = []
    let kept = put
    if (excess > 0) {
      const unchanged = this.#isComplete ? [] : [...store.clientSummaries.all(organizationId)].filter(this.#isUnchanged)
      const all = [...unchanged, ...put].sort((a, b) => rankOf(a) - rankOf(b))
      const left = new Set(all.slice(0, excess))
      for (const summary of left) addDays(this.#others, numbersOf(summary.days))
      kept = put.filter((summary) => !left.has(summary))
      removed.push(...left)
    }
    const clients = Math.min(this.#before.clients + added, CLIENT_SUMMARIES_MAX)
    const totals = { ...this.#before, generation: generation + 1, clients, others: bytesOf(this.#others) }
    return { put: kept, removed, isComplete: this.#isComplete, totals }
  }

  readonly #isUnchanged = (summary: ClientSummary): boolean => !this.#sums.has(nameOf(summary))

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
    const stored = this.#isComplete ? undefined : store.clientSummaries.get(organizationId, client, isUser)
    const times = { firstSeenMs: Number.MAX_SAFE_INTEGER, lastSeenMs: 0 }
    if (stored === undefined) {
      return { client, isUser, addresses: [], ...times, platforms: new Map(), days: [], isStored: false }
    }
    const { addresses, platformIds, platformDays, days, firstSeenMs, lastSeenMs } = stored
    const ids = platformIds.split(' ')
    const platforms = new Map(platformDays.map((day, at) => [ids[at] ?? '', day]))
    return {
      ...{ client, isUser, addresses: [...addresses], firstSeenMs, lastSeenMs, platforms, days: numbersOf(days) },
      isStored: true,
    }
  }

  /** Leaves out new clients with the fewest matches, so that memory is bounded. */
  #shrink(): void {
    const ranked = [...this.#sums].sort(([, a], [, b]) => rankOf(summaryOf(b)) - rankOf(summaryOf(a)))
    const [kept, left] = [ranked.slice(0, CLIENT_SUMMARIES_MAX), ranked.slice(CLIENT_SUMMARIES_MAX)]
    for (const [, { days, isStored }] of left) if (!isStored) addDays(this.#others, days)
    this.#sums = new Map([...kept, ...left.filter(([, { isStored }]) => isStored)])
  }
}

function summaryOf({ client, isUser, addresses, firstSeenMs, lastSeenMs, platforms, days }: Sum): ClientSummary {
  const [platformIds, platformDays] = [[...platforms.keys()].join(' '), [...platforms.values()]]
  return { client, isUser, addresses, firstSeenMs, lastSeenMs, platformIds, platformDays, days: bytesOf(days) }
}

/** Greater for the clients to keep. */
function rankOf({ platformDays, days }: Pick<ClientSummary, 'platformDays' | 'days'>): number {
  const { matches } = sumOfDays(days, 0)
  return platformDays.length > 0 ? matches : matches / 2 ** 53
}
