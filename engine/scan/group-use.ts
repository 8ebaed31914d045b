import { dayOf } from '../kernel/process/clock.ts'
import { GROUP_PEOPLE_MIN } from '../limits.ts'
import { type ClientSummary, type DaysSum, sumOfDays } from '../store/client-summaries.ts'
import { clientModeOf, type Organization } from '../store/organizations.ts'
import { retentionOf } from '../store/retention.ts'
import type { Store } from '../store/store.ts'
import { firstDayOfWindow } from './prepare.ts'

/** The group of a client: that of its name or address, or the named network of its address. */
export type GroupOf = (client: Pick<ClientSummary, 'client' | 'isUser' | 'addresses'>) => string | undefined

interface Groups {
  readonly groupOf: GroupOf
  /** All that may be shown, in the order of their names. */
  readonly all: readonly (Pick<GroupUse, 'name' | 'manager' | 'members'> & { readonly isNetwork: boolean })[]
}

/** The use of AI platforms by one group. */
export interface GroupUse extends DaysSum {
  readonly name: string
  readonly isNetwork: boolean
  /** '' if none is known. */
  readonly manager: string
  /** People and addresses in the group; of a network, its clients. */
  readonly members: number
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
    .filter(({ members }) => !isPseudonymous || members.length >= GROUP_PEOPLE_MIN)
  const ofMember = new Map(groups.flatMap(({ name, members }) => members.map((member) => [member, name] as const)))
  const networkOf = clientNames.networkNames(id)
  const networks = isPseudonymous ? [] : clientNames.networks(id).map(({ name }) => name)
  const known = new Set(groups.map(({ name }) => name))
  return {
    groupOf: ({ client, isUser, addresses }) => {
      const last = isUser ? addresses.at(-1) : client
      return ofMember.get(client) ?? (last === undefined ? undefined : (ofMember.get(last) ?? networkOf(last)))
    },
    all: [
      ...groups.map(({ name, manager, members }) => ({ name, manager, members: members.length, isNetwork: false })),
      ...[...new Set(networks)]
        .filter((name) => !known.has(name))
        .sort()
        .map((name) => ({ name, manager: '', members: 0, isNetwork: true })),
    ],
  }
}

/** The use of each group in the evidence window, most matches first. Call it inside Environment.read. */
export function groupUse(store: Store, organization: Organization, nowMs: number): GroupUse[] {
  const { id } = organization
  const { all, groupOf } = groupsOf(store, organization)
  if (all.length === 0 || store.clientErasures.isErasing(id)) return []
  const firstDay = firstDayOfWindow(
    { ...organization, evidenceWindowDays: retentionOf(organization).clientDays },
    nowMs,
  )
  const none = { matches: 0, blocked: 0, bytesSent: 0, bytesReceived: 0, clients: 0 }
  const sums = new Map(all.map((group) => [group.name, { ...group, ...none, platformIds: new Set<string>() }]))
  for (const summary of store.clientSummaries.all(id)) {
    if (dayOf(summary.lastSeenMs) < firstDay) continue
    const sum = sums.get(groupOf(summary) ?? '')
    if (sum === undefined) continue
    const { matches, blocked, bytesSent, bytesReceived } = sumOfDays(summary.days, firstDay)
    sum.matches += matches
    sum.blocked += blocked
    sum.bytesSent += bytesSent
    sum.bytesReceived += bytesReceived
    sum.clients++
    if (sum.isNetwork) sum.members++
    for (const [at, platformId] of summary.platformIds.split(' ').entries())
      if ((summary.platformDays[at] ?? 0) >= firstDay) sum.platformIds.add(platformId)
  }
  return [...sums.values()].sort((a, b) => b.matches - a.matches || (a.name < b.name ? -1 : 1))
}
