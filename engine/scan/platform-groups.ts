import { ClientSum, type ClientUse } from '../store/client-sum.ts'
import type { Organization } from '../store/organizations.ts'
import type { Store } from '../store/store.ts'
import { groupsOf, personKey } from './group-use.ts'
import type { DayRange } from './periods.ts'

/** The use of one platform by one group. */
export interface PlatformGroup {
  readonly name: string
  /** The mail address of the manager; '' if none is known. */
  readonly manager: string
  /** Those that used the platform, the most matches first: user names, addresses, or pseudonyms. */
  readonly people: readonly string[]
  /** People and addresses with any match, also if it was blocked. */
  readonly clients: number
  readonly used: number
  readonly blocked: number
  readonly bytesSent: number
}

/**
 * The groups of the clients of a platform, the most clients first. Groups that may not be shown are
 * left out. Call it inside Environment.read.
 */
export function platformGroups(
  store: Store,
  organization: Organization,
  platformId: string,
  range: DayRange,
): PlatformGroup[] {
  const { all, groupOf } = groupsOf(store, organization)
  const managers = new Map(all.map(({ name, manager }) => [name, manager]))
  const sums = new Map<string, Sum>()
  for (const use of managers.size === 0 ? [] : clientsOf(store, organization.id, platformId, range)) {
    const { client: address, user, matches, used, blocked, bytesSent } = use
    const client = user === '' ? address : user
    const name = groupOf({ client, isUser: user !== '', addresses: [address] })
    if (name === undefined) continue
    const sum = sums.get(name) ?? { clients: new Set(), people: new Map(), used: 0, blocked: 0, bytesSent: 0 }
    sums.set(name, sum)
    sum.clients.add(client)
    if (used !== 0 && !sum.people.has(personKey(client))) sum.people.set(personKey(client), client)
    // Not known of records of schema 1.
    sum.used += Number.isNaN(used) ? matches : used
    sum.blocked += Number.isNaN(blocked) ? 0 : blocked
    sum.bytesSent += bytesSent
  }
  return Array.from(sums, ([name, { clients, people, ...sum }]) => ({
    name,
    manager: managers.get(name) ?? '',
    people: [...people.values()],
    clients: clients.size,
    ...sum,
  })).sort((a, b) => b.clients - a.clients || (a.name < b.name ? -1 : 1))
}

interface Sum {
  readonly clients: Set<string>
  /** By personKey. */
  readonly people: Map<string, string>
  used: number
  blocked: number
  bytesSent: number
}

function clientsOf(
  { clientDays, clientErasures }: Store,
  organizationId: string,
  platformId: string,
  { firstDay, lastDay }: DayRange,
): ClientUse[] {
  if (clientErasures.isErasing(organizationId)) return []
  const sum = new ClientSum()
  for (let day = firstDay; day <= lastDay; day++) {
    const bytes = clientDays.get(organizationId, day, platformId)
    if (bytes !== undefined) sum.add({ day, platformId, bytes })
  }
  return sum.clients()
}
