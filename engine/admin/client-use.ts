import { isPseudonym } from '../kernel/event/client.ts'
import { Pseudonyms } from '../kernel/process/client-key.ts'
import { dayOf } from '../kernel/process/clock.ts'
import { addressBytes, canonicalAddress } from '../kernel/process/network.ts'
import { DistinctClients } from '../scan/distinct-clients.ts'
import { type DayRange, lastDaysOf } from '../scan/periods.ts'
import { firstDayOfWindow } from '../scan/prepare.ts'
import { ClientReader } from '../store/client-records.ts'
import { ClientSum, type ClientUse } from '../store/client-sum.ts'
import { isTokenMark } from '../store/event-source.ts'
import { clientModeOf, type Organization } from '../store/organizations.ts'
import type { Store } from '../store/store.ts'

/*
 * Who uses which platform, over the evidence window. The callers record the reading in the audit
 * log, and read in one snapshot of the store.
 */

/** The matches of one platform on one day, by contact (registry/contact.ts). */
export interface PlatformDay {
  readonly day: number
  readonly used: number
  readonly blocked: number
  readonly touched: number
  /** Distinct clients that used the platform, an estimate above 256. */
  readonly clients: number
}

/** Matches that came from one source. */
export interface SourceUse {
  readonly kind: 'log' | 'sensor'
  /** The label of a token, or the instance of a sensor. */
  readonly name: string
  readonly matches: number
}

/** Who uses a platform. */
export interface PlatformUse {
  /** When a scan first found the platform. 0: none has found it. */
  readonly detectedAtMs: number
  /** When it was used. 0: nobody used it. */
  readonly firstSeenMs: number
  readonly lastSeenMs: number
  readonly matches: number
  /** Days with matches. */
  readonly days: readonly PlatformDay[]
  /** Matches by name, most first. */
  readonly names: readonly (readonly [name: string, matches: number])[]
  /** Matches by source, most first. */
  readonly sources: readonly SourceUse[]
  readonly clients: readonly ClientUse[]
  /** Distinct clients over all days, an estimate above 256. */
  readonly clientsTotal: number
  /** Matches of clients that are not among `clients`. */
  readonly otherMatches: number
}

/** The contacts of one client with a platform: the sum over its users. */
export interface PlatformOfClient extends ClientUse {
  readonly platformId: string
}

/** The platforms that a client used on one day. */
interface DayOfClient {
  readonly day: number
  readonly platformIds: readonly string[]
}

/** What one client uses. */
export interface UseOfClient {
  /** Those that it used first, and the most matches first. */
  readonly platforms: readonly PlatformOfClient[]
  /** Days with use, in order. */
  readonly days: readonly DayOfClient[]
  /** The users that logs name at this address, with the days in order. */
  readonly users: ReadonlyMap<string, readonly number[]>
}

/**
 * An address or a user name as it is stored: an address in its canonical form, or the pseudonym.
 *
 * @throws Fault SECRETS_KEY
 */
export function storedClient(store: Store, organization: Organization, text: string): string {
  return storedClients(store, organization)(text)
}

/** The same for many texts: reads the key of pseudonyms once. */
export function storedClients({ dataDirectory }: Store, organization: Organization): (text: string) => string {
  if (clientModeOf(organization) !== 'pseudonym') return canonicalAddress
  const pseudonyms = new Pseudonyms(dataDirectory, organization.id, organization.clientKeyId ?? '')
  return (text) => {
    const canonical = canonicalAddress(text)
    if (isPseudonym(canonical)) return canonical
    return addressBytes(canonical) === undefined ? pseudonyms.ofUser(text) : pseudonyms.ofClient(canonical)
  }
}

/** Reads who uses a platform, in the evidence window or a range of it. */
export function platformUse(
  store: Store,
  organization: Organization,
  platformId: string,
  nowMs: number,
  { firstDay, lastDay }: DayRange = lastDaysOf(organization.evidenceWindowDays, nowMs),
): PlatformUse {
  const { evidence, clientDays } = store
  const { id } = organization
  const keepsClients = !store.clientErasures.isErasing(id)
  const distinct = new DistinctClients()
  const names = new Map<string, number>()
  const sources = new Map<string, number>()
  const sum = new ClientSum()
  const days: PlatformDay[] = []
  let [firstSeenMs, lastSeenMs, matches] = [0, 0, 0]
  for (let day = firstDay; day <= lastDay; day++) {
    const use = evidence.day(id, day, platformId)
    if (use === undefined) continue
    for (const [name, count] of Object.entries(use.byName)) names.set(name, (names.get(name) ?? 0) + count)
    for (const [source, count] of Object.entries(use.bySource ?? {})) {
      sources.set(source, (sources.get(source) ?? 0) + count)
    }
    matches += use.matches
    const { used, blocked } = use
    const isUsed = used > 0
    days.push({
      ...{ day, used, blocked, touched: use.matches - used - blocked },
      clients: isUsed ? DistinctClients.fromBytes(use.clients).estimate : 0,
    })
    if (isUsed) {
      distinct.mergeBytes(use.clients)
      firstSeenMs = firstSeenMs === 0 ? use.firstSeenMs : Math.min(firstSeenMs, use.firstSeenMs)
      lastSeenMs = Math.max(lastSeenMs, use.lastSeenMs)
    }
    const bytes = keepsClients ? clientDays.get(id, day, platformId) : undefined
    if (bytes !== undefined) sum.add({ day, platformId, bytes })
  }
  // Counts those that it leaves out as others.
  const clients = sum.clients()
  return {
    detectedAtMs: evidence.detection(id, platformId)?.createdAtMs ?? 0,
    firstSeenMs,
    lastSeenMs,
    matches,
    days,
    names: [...names].sort((a, b) => b[1] - a[1]),
    sources: sourcesOf(store, id, sources),
    clients,
    clientsTotal: distinct.estimate,
    otherMatches: sum.otherMatches,
  }
}

function sourcesOf(
  { monitoringTokens }: Store,
  organizationId: string,
  matches: ReadonlyMap<string, number>,
): SourceUse[] {
  const tokens = monitoringTokens.ofOrganization(organizationId)
  const labelOf = (mark: string): string => tokens.find(({ id }) => id.startsWith(mark))?.label ?? mark
  return [...matches]
    .sort((a, b) => b[1] - a[1])
    .map(([source, count]) =>
      isTokenMark(source)
        ? { kind: 'log', name: labelOf(source), matches: count }
        : { kind: 'sensor', name: source, matches: count },
    )
}

/** Reads what a client or user uses. `client` is the text that is stored. */
export function useOfClient(store: Store, organization: Organization, client: string, nowMs: number): UseOfClient {
  if (store.clientErasures.isErasing(organization.id)) return { platforms: [], days: [], users: new Map() }
  const users = new Map<string, number[]>()
  const sums = new Map<string, ClientSum>()
  const days = new Map<number, string[]>()
  for (const record of store.clientDays.since(organization.id, firstDayOfWindow(organization, nowMs))) {
    const { day, platformId } = record
    const sum = sums.get(platformId) ?? new ClientSum()
    let isKnown = false
    let isUsed = false
    sum.add(record, (reader) => {
      const isWanted = reader.client === client || reader.user === client
      isKnown ||= isWanted
      isUsed ||= isWanted && reader.used !== 0
      if (reader.client === client && reader.user !== '') {
        const daysOfUser = users.get(reader.user) ?? []
        if (daysOfUser.at(-1) !== day) users.set(reader.user, [...daysOfUser, day])
      }
      return isWanted
    })
    if (!isKnown) continue
    sums.set(platformId, sum)
    if (!isUsed) continue
    days.set(day, [...(days.get(day) ?? []), platformId])
  }
  const platforms = [...sums].flatMap(([platformId, sum]) => sum.clients().map((use) => ({ ...use, platformId })))
  return {
    platforms: platforms.sort((a, b) => Number(b.used !== 0) - Number(a.used !== 0) || b.matches - a.matches),
    days: Array.from(days, ([day, platformIds]) => ({ day, platformIds })),
    users,
  }
}

/** Whether there is use by a client or user. Stops at the first, and reads the last days first. */
export function isClientKnown(store: Store, organization: Organization, client: string, nowMs: number): boolean {
  if (store.clientErasures.isErasing(organization.id)) return false
  const first = firstDayOfWindow(organization, nowMs)
  for (let day = dayOf(nowMs) + 1; day >= first; day--) {
    for (const { bytes } of store.clientDays.since(organization.id, day, day + 1)) {
      const reader = new ClientReader(bytes, day)
      while (reader.next()) if (reader.client === client || reader.user === client) return true
    }
  }
  return false
}
