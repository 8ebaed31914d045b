import type { Platform } from '../../registry/platform.ts'
import { scoreOf } from '../../registry/risk-sum.ts'
import { NO_CLIENT } from '../kernel/event/client.ts'
import { DAY_MS, dayOf } from '../kernel/process/clock.ts'
import { addressBytes, contains, type Network, networkOf } from '../kernel/process/network.ts'
import { groupsOf } from '../scan/group-use.ts'
import { type DayRange, lastDaysOf } from '../scan/periods.ts'
import type { AddressNames } from '../store/client-names.ts'
import { type ClientSummary, type DaysSum, nameOf, sumOfDays } from '../store/client-summaries.ts'
import type { NameSpan } from '../store/name-spans.ts'
import type { Organization } from '../store/organizations.ts'
import { retentionOf } from '../store/retention.ts'
import type { Store } from '../store/store.ts'
import { type PlatformUse, platformUse, storedClient } from './client-use.ts'

/** A platform with the score that lists show. */
interface RatedPlatform {
  readonly name: string
  readonly score: number
}

/** A client of the list: a user if a log names one, otherwise an address; or the pseudonym of either. */
export interface ListedClient extends DaysSum {
  readonly client: string
  readonly isUser: boolean
  /** The addresses that a user used last, the last one at the end. */
  readonly addresses: readonly string[]
  /** When the user used the last address. 0: it used none. */
  readonly addressSeenMs: number
  /** Platforms that the client used from the first day on, also after the last one. */
  readonly platforms: number
  /** Finds the platform with the highest risk among them, of those in the registry. */
  readonly riskiest: () => RatedPlatform | undefined
  readonly firstSeenMs: number
  readonly lastSeenMs: number
}

export interface ClientFilter {
  /** A part of a user, host name at any time, address or named network, or a network. '': all. */
  readonly search?: string
  /** Only clients of this platform, with their use of it alone. */
  readonly platformId?: string | undefined
  /** Only clients of this group or named network. */
  readonly group?: string | undefined
  /** Only clients that were first seen from this time on. */
  readonly sinceMs?: number
  /** Only the use in this range. Absent: of all days that are kept. */
  readonly range?: DayRange | undefined
}

export interface ClientList {
  readonly clients: readonly ListedClient[]
  /** Clients before the search. */
  readonly total: number
  /** The use by clients that are not listed, because there are too many. */
  readonly others: Pick<DaysSum, 'matches'>
  /** A scan has made the list. */
  readonly isMade: boolean
}

/**
 * The clients of the evidence window, as the last scan summed them. Call it inside
 * Environment.read; the callers record the reading in the audit log.
 *
 * @throws Fault SECRETS_KEY
 */
export function clientList(
  store: Store,
  organization: Organization,
  platforms: readonly Platform[],
  filter: ClientFilter,
  nowMs: number,
): ClientList {
  const { id } = organization
  const totals = store.clientSummaries.totals(id)
  if (totals === undefined || store.clientErasures.isErasing(id)) {
    return { clients: [], total: 0, others: { matches: 0 }, isMade: false }
  }
  const { search = '', platformId, sinceMs = 0, range, group } = filter
  const days = range ?? lastDaysOf(retentionOf(organization).clientDays, nowMs)
  const { plans } = store.decisions.inForce(id, nowMs)
  const catalog = new Map(
    platforms.map((platform) => [platform.id, { name: platform.name, score: scoreOf(platform, plans) }]),
  )
  const ofPlatform =
    platformId === undefined ? undefined : usesOf(platformUse(store, organization, platformId, nowMs, range))
  const finds = search === '' ? undefined : finder(store, organization, search)
  const groupOf = group === undefined ? undefined : groupsOf(store, organization).groupOf
  const riskiestOf = riskiestIn(store, id, catalog, days.firstDay)
  const clients: ListedClient[] = []
  let total = 0
  for (const summary of store.clientSummaries.all(id)) {
    if (dayOf(summary.lastSeenMs) < days.firstDay || dayOf(summary.firstSeenMs) > days.lastDay) continue
    const use = ofPlatform?.uses.get(nameOf(summary))
    if (ofPlatform !== undefined && use === undefined) continue
    const sum = sumOfDays(summary.days, days.firstDay, days.lastDay)
    // It was seen before and after the range.
    if (sum.matches === 0) continue
    total++
    if (summary.firstSeenMs < sinceMs || finds?.(summary) === false) continue
    if (groupOf !== undefined && groupOf(summary) !== group) continue
    clients.push(listed(summary, sum, use, riskiestOf, days.firstDay))
  }
  const others = ofPlatform ?? { otherMatches: sumOfDays(totals.others, days.firstDay, days.lastDay).matches }
  return { clients, total, others: { matches: others.otherMatches }, isMade: true }
}

/** Without a spread operator, which takes half of the time of a list of 5,000 clients. */
function listed(
  summary: ClientSummary,
  sum: DaysSum,
  use: UseOfPlatform | undefined,
  riskiestOf: (client: string, isUser: boolean) => RatedPlatform | undefined,
  firstDay: number,
): ListedClient {
  const { client, isUser, addresses, addressesSeenMs, platformDays } = summary
  let platforms = 0
  for (const day of platformDays) if (day >= firstDay) platforms++
  const riskiest = (): RatedPlatform | undefined => riskiestOf(client, isUser)
  const { firstSeenMs, lastSeenMs } = use ?? summary
  const { matches, blocked, bytesSent, bytesReceived } = use ?? sum
  return {
    client,
    isUser,
    addresses,
    addressSeenMs: addressesSeenMs.at(-1) ?? 0,
    platforms,
    riskiest,
    firstSeenMs,
    lastSeenMs,
    matches,
    blocked,
    bytesSent,
    bytesReceived,
  }
}

/**
 * Finds the platform with the highest risk of a client. Reads its summary again: to keep the
 * platforms of thousands of clients in memory takes longer than to read those that are shown.
 */
function riskiestIn(
  { clientSummaries }: Store,
  organizationId: string,
  catalog: ReadonlyMap<string, RatedPlatform>,
  firstDay: number,
): (client: string, isUser: boolean) => RatedPlatform | undefined {
  return (client, isUser) => {
    const { platformIds = '', platformDays = [] } = clientSummaries.get(organizationId, client, isUser) ?? {}
    let found: RatedPlatform | undefined
    for (const [at, platformId] of platformIds.split(' ').entries()) {
      const platform = (platformDays[at] ?? 0) < firstDay ? undefined : catalog.get(platformId)
      if (platform !== undefined && platform.score > (found?.score ?? -1)) found = platform
    }
    return found
  }
}

type UseOfPlatform = DaysSum & Pick<ListedClient, 'firstSeenMs' | 'lastSeenMs'>

/** The use of one platform by client: several addresses of a user together. */
function usesOf({ clients, otherMatches }: PlatformUse) {
  const uses = new Map<string, UseOfPlatform>()
  for (const { client, user, matches, blocked, bytesSent, bytesReceived, firstSeenMs, lastSeenMs } of clients) {
    const key = nameOf(user === '' ? { client, isUser: false } : { client: user, isUser: true })
    const before = uses.get(key)
    uses.set(key, {
      matches: matches + (before?.matches ?? 0),
      blocked: (Number.isNaN(blocked) ? 0 : blocked) + (before?.blocked ?? 0),
      bytesSent: bytesSent + (before?.bytesSent ?? 0),
      bytesReceived: bytesReceived + (before?.bytesReceived ?? 0),
      firstSeenMs: Math.min(firstSeenMs, before?.firstSeenMs ?? firstSeenMs),
      lastSeenMs: Math.max(lastSeenMs, before?.lastSeenMs ?? 0),
    })
  }
  return { uses, otherMatches }
}

/**
 * Whether a client has the text in its name, address, host name or named network, or has an address
 * in the network that the text is. An address is also found by its earlier names; a user only by the
 * name that an address had when the user used it. Of pseudonyms, a whole address or user name finds its own.
 *
 * @throws Fault SECRETS_KEY
 */
function finder(store: Store, organization: Organization, text: string): (summary: ClientSummary) => boolean {
  const words = text.toLowerCase()
  const stored = storedClient(store, organization, text)
  const network = networkIn(text)
  const { id } = organization
  const networkNameOf = store.clientNames.networkNames(id)
  const hasText = (each = ''): boolean => each.toLowerCase().includes(words)
  const isFound = (address: string, seenMs?: number): boolean => {
    if (network !== undefined) {
      const bytes = addressBytes(address)
      return bytes !== undefined && contains(network, bytes)
    }
    if (address === stored || hasText(address)) return true
    if (hasText(networkNameOf(address))) return true
    const spans = store.clientNames.spansOf(id, address)
    return spans.some(
      ({ name, fromMs, toMs }) => hasText(name) && (seenMs === undefined || (fromMs <= seenMs && seenMs < toMs)),
    )
  }
  return ({ client, isUser, addresses, addressesSeenMs }) => {
    if (!isUser) return isFound(client)
    const isFoundAt = (address: string, at: number): boolean =>
      address !== NO_CLIENT && isFound(address, addressesSeenMs[at])
    return client === stored || hasText(client) || addresses.some(isFoundAt)
  }
}

/** The names of a listed client, and the newest name that a search finds, unless that is `current`. */
export type ListedNames = AddressNames & { readonly found: NameSpan | undefined }

/**
 * Returns a function that reads the names of clients of the list: of an address in the time of its
 * use, and of a user's last address when the user used it. Call it inside Environment.read.
 */
export function listedNames(
  { clientNames }: Store,
  organizationId: string,
  search: string,
): (client: ListedClient) => ListedNames {
  const names = clientNames.names(organizationId)
  const words = search.toLowerCase()
  const hasText = (span: NameSpan | undefined): boolean => span?.name.toLowerCase().includes(words) ?? false
  return ({ client, isUser, addresses, addressSeenMs, firstSeenMs, lastSeenMs }) => {
    if (isUser) return { ...names(addresses.at(-1) ?? '', addressSeenMs, addressSeenMs), found: undefined }
    const shown = names(client, firstSeenMs, lastSeenMs)
    const isShown = words === '' || hasText(shown.current)
    return { ...shown, found: isShown ? undefined : clientNames.spansOf(organizationId, client).findLast(hasText) }
  }
}

/** The network of `10.23.0.0/16`, or of the first numbers of an IPv4 address: `10.23`. */
function networkIn(text: string): Network | undefined {
  const numbers = /^(\d{1,3}(?:\.\d{1,3}){1,2})\.?$/.exec(text)?.[1]?.split('.')
  if (numbers === undefined) return text.includes('/') ? networkOf(text) : undefined
  return networkOf(`${[...numbers, '0', '0'].slice(0, 4).join('.')}/${8 * numbers.length}`)
}

/** What a search looks through. */
export function searchedText(total: number): string {
  return `Searched the users, addresses, host names and named networks of ${total.toLocaleString('en-US')} clients`
}

/** The days of "new this week". */
const NEW_DAYS = 7

export function newSinceMs(nowMs: number): number {
  return nowMs - NEW_DAYS * DAY_MS
}
