import { dayOf } from '../kernel/process/clock.ts'
import { GROUP_PEOPLE_MIN } from '../limits.ts'
import { type ClientSummary, type DaysSum, sumOfDays } from '../store/client-summaries.ts'
import { clientModeOf, type Organization } from '../store/organizations.ts'
import { retentionOf } from '../store/retention.ts'
import type { Store } from '../store/store.ts'
import { type DayRange, lastDaysOf } from './periods.ts'

/** The group of a client: that of its name or address, or the named network of its address. */
export type GroupOf = (client: Pick<ClientSummary, 'client' | 'isUser' | 'addresses'>) => string | undefined

interface Groups {
  readonly groupOf: GroupOf
  /** All that may be shown, in the order of their names. */
  readonly all: readonly Pick<GroupUse, 'name' | 'members' | 'isNetwork' | 'manager'>[]
}

/** The use of AI platforms by one group. */
export interface GroupUse extends DaysSum {
  readonly name: string
  readonly isNetwork: boolean
  /** People and addresses in the group; of a network, those among its clients. */
  readonly members: number
  /** The mail address of the manager; '' if none is known. */
  readonly manager: string
  readonly clients: number
  readonly platformIds: ReadonlySet<string>
}

/**
 * The groups of an organization. With pseudonyms, a group of fewer than GROUP_PEOPLE_MIN is not
 * shown, because it would say who its people are. Call it inside Environment.read.
 */
export function groupsOf({ clientGroups, clientNames }: Store, organization: Organization): Groups {
  const { id } = organization
  const isPseudonymous = clientModeOf(organization) === 'pseudonym'
  const groups = clientGroups
    .ofOrganization(id)
    .map(({ people, manager = '', ...group }) => ({ ...group, people: people ?? group.members.length, manager }))
    .filter(({ people }) => !isPseudonymous || people >= GROUP_PEOPLE_MIN)
  let ofMember: ReadonlyMap<string, string> | undefined
  const networkOf = clientNames.networkNames(id)
  const networks = isPseudonymous ? [] : clientNames.networks(id).map(({ name }) => name)
  const known = new Set(groups.map(({ name }) => name))
  return {
    groupOf: ({ client, isUser, addresses }) => {
      // Many lists need only the names.
      ofMember ??= new Map(groups.flatMap(({ name, members }) => members.map((member) => [member, name] as const)))
      const last = isUser ? addresses.at(-1) : client
      return ofMember.get(client) ?? (last === undefined ? undefined : (ofMember.get(last) ?? networkOf(last)))
    },
    all: [
      ...groups.map(({ name, people, manager }) => ({ name, members: people, isNetwork: false, manager })),
      ...[...new Set(networks)]
        .filter((name) => !known.has(name))
        .sort()
        .map((name) => ({ name, members: 0, isNetwork: true, manager: '' })),
    ],
  }
}

/** The names of all groups that may be shown. Call it inside Environment.read. */
export function groupNamesOf(store: Store, organization: Organization): string[] {
  return groupsOf(store, organization).all.map(({ name }) => name)
}

/**
 * Finds the group of a client, if a message may name it: a group with few people names these.
 * Call it inside Environment.read.
 */
export function namableGroupsOf(store: Store, organization: Organization): GroupOf {
  const { all, groupOf } = groupsOf(store, organization)
  if (all.length === 0) return () => undefined
  const people = new Map(all.map(({ name }) => [name, new Set<string>()]))
  for (const summary of store.clientSummaries.all(organization.id))
    people.get(groupOf(summary) ?? '')?.add(personKey(summary.client))
  const isLarge = ({ name, members }: (typeof all)[number]): boolean =>
    Math.max(members, people.get(name)?.size ?? 0) >= GROUP_PEOPLE_MIN
  const namable = new Set(all.filter(isLarge).map(({ name }) => name))
  return (client) => {
    const name = groupOf(client)
    return name !== undefined && namable.has(name) ? name : undefined
  }
}

/** A client without regard to case: logs spell the name of one user in several ways. */
export function personKey(client: string): string {
  return client.toLowerCase()
}

/**
 * The use of each group in the evidence window or a range of it, most matches first. The platforms
 * are those of the first day or later, also after the last one. Call it inside Environment.read.
 */
export function groupUse(
  store: Store,
  organization: Organization,
  nowMs: number,
  { firstDay, lastDay }: DayRange = lastDaysOf(retentionOf(organization).clientDays, nowMs),
): GroupUse[] {
  const { id } = organization
  const { all, groupOf } = groupsOf(store, organization)
  if (all.length === 0 || store.clientErasures.isErasing(id)) return []
  const none = { matches: 0, blocked: 0, bytesSent: 0, bytesReceived: 0, clients: 0 }
  const sums = new Map(
    all.map((group) => [
      group.name,
      { ...group, ...none, platformIds: new Set<string>(), peopleOfNetwork: new Set<string>() },
    ]),
  )
  for (const summary of store.clientSummaries.all(id)) {
    if (dayOf(summary.lastSeenMs) < firstDay || dayOf(summary.firstSeenMs) > lastDay) continue
    const sum = sums.get(groupOf(summary) ?? '')
    if (sum === undefined) continue
    const { matches, blocked, bytesSent, bytesReceived } = sumOfDays(summary.days, firstDay, lastDay)
    if (matches === 0) continue
    sum.matches += matches
    sum.blocked += blocked
    sum.bytesSent += bytesSent
    sum.bytesReceived += bytesReceived
    sum.clients++
    if (sum.isNetwork) sum.members = sum.peopleOfNetwork.add(personKey(summary.client)).size
    for (const [at, platformId] of summary.platformIds.split(' ').entries())
      if ((summary.platformDays[at] ?? 0) >= firstDay) sum.platformIds.add(platformId)
  }
  return Array.from(sums.values(), ({ peopleOfNetwork: _, ...use }) => use).sort(
    (a, b) => b.matches - a.matches || (a.name < b.name ? -1 : 1),
  )
}
