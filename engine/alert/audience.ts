import { type DayRange, lastDaysOf } from '../scan/day-range.ts'
import { type GroupOf, namableGroupsOf } from '../scan/group-use.ts'
import { ClientSum, type ClientUse } from '../store/client-sum.ts'
import { mayNamePeople, type Organization } from '../store/organizations.ts'
import type { Store } from '../store/store.ts'
import { type Condition, type ConditionUse, NAMED_PEOPLE_MAX, personText } from './condition.ts'

/**
 * Adds to conditions whose use they are about: groups, and people if the organization allows it.
 * Call it inside Environment.read.
 */
export class Audience {
  readonly #store: Store
  readonly #organization: Organization
  readonly #window: DayRange
  readonly #isErasing: boolean
  #groupOf: GroupOf | undefined
  /** The groups that used each platform in the evidence window. */
  #groups: ReadonlyMap<string, ReadonlySet<string>> | undefined

  constructor(store: Store, organization: Organization, nowMs: number) {
    this.#store = store
    this.#organization = organization
    this.#window = lastDaysOf(organization.evidenceWindowDays, nowMs)
    this.#isErasing = store.clientErasures.isErasing(organization.id)
  }

  of(condition: Condition): Condition {
    const { use, people = [] } = condition
    if (this.#isErasing) return { ...condition, people: [] }
    const mayName = mayNamePeople(this.#organization)
    return {
      ...condition,
      ...(use && { groups: this.#groupsOf(use) }),
      people: mayName ? (use ? this.#peopleOf(use) : people) : [],
    }
  }

  #groupsOf(use: ConditionUse): string[] {
    this.#groupOf ??= namableGroupsOf(this.#store, this.#organization)
    const groupOf = this.#groupOf
    this.#groups ??= this.#groupsOfWindow(groupOf)
    const ofWindow = [...(this.#groups.get(use.platformId) ?? [])]
    if (use.day === undefined || ofWindow.length === 0) return ofWindow
    const ofDay = this.#clientsOf(use).map(({ client, user }) =>
      groupOf({ client: user === '' ? client : user, isUser: user !== '', addresses: [client] }),
    )
    return [...new Set(ofDay)].filter((name) => name !== undefined)
  }

  /** From summaries, because the records of days have only the clients with the most matches. */
  #groupsOfWindow(groupOf: GroupOf): ReadonlyMap<string, ReadonlySet<string>> {
    const groups = new Map<string, Set<string>>()
    for (const summary of this.#store.clientSummaries.all(this.#organization.id)) {
      const group = groupOf(summary)
      if (group === undefined) continue
      for (const [at, platformId] of summary.platformIds.split(' ').entries()) {
        if ((summary.platformDays[at] ?? 0) < this.#window.firstDay) continue
        const ofPlatform = groups.get(platformId) ?? new Set<string>()
        groups.set(platformId, ofPlatform.add(group))
      }
    }
    return groups
  }

  #peopleOf(use: ConditionUse): string[] {
    const clients = this.#clientsOf(use)
    if (use.isByBytes) clients.sort((a, b) => b.bytesSent - a.bytesSent)
    const people = clients.map(personText)
    return [...new Set(people.filter((each) => each !== ''))].slice(0, NAMED_PEOPLE_MAX)
  }

  #clientsOf({ platformId, day, isMeant = () => true }: ConditionUse): ClientUse[] {
    const sum = new ClientSum()
    const { firstDay, lastDay } = this.#window
    for (let at = day ?? firstDay; at <= (day ?? lastDay); at++) {
      const bytes = this.#store.clientDays.get(this.#organization.id, at, platformId)
      // Of early records it is not known who used the platform.
      if (bytes !== undefined) sum.add({ day: at, platformId, bytes }, (each) => each.used > 0 && isMeant(each))
    }
    return sum.clients()
  }
}
