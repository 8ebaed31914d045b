import { dayOf } from '../kernel/process/clock.ts'
import { namableGroupsOf } from '../scan/group-use.ts'
import { firstDayOfWindow } from '../scan/prepare.ts'
import { ClientSum } from '../store/client-sum.ts'
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
  readonly #firstDay: number
  readonly #lastDay: number
  readonly #isErasing: boolean
  /** The last day of use of each platform by each group. */
  #groups: ReadonlyMap<string, ReadonlyMap<string, number>> | undefined

  constructor(store: Store, organization: Organization, nowMs: number) {
    this.#store = store
    this.#organization = organization
    this.#firstDay = firstDayOfWindow(organization, nowMs)
    // The clock of a sender may be ahead.
    this.#lastDay = dayOf(nowMs) + 1
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

  #groupsOf({ platformId, day = this.#firstDay, groupsFrom = day }: ConditionUse): string[] {
    this.#groups ??= this.#lastDays()
    const lastDays = [...(this.#groups.get(platformId) ?? [])]
    return lastDays.filter(([, lastDay]) => lastDay >= groupsFrom).map(([name]) => name)
  }

  #lastDays(): ReadonlyMap<string, ReadonlyMap<string, number>> {
    const groupOf = namableGroupsOf(this.#store, this.#organization)
    const lastDays = new Map<string, Map<string, number>>()
    for (const summary of this.#store.clientSummaries.all(this.#organization.id)) {
      const group = groupOf(summary)
      if (group === undefined) continue
      for (const [at, platformId] of summary.platformIds.split(' ').entries()) {
        const ofPlatform = lastDays.get(platformId) ?? new Map<string, number>()
        ofPlatform.set(group, Math.max(ofPlatform.get(group) ?? 0, summary.platformDays[at] ?? 0))
        lastDays.set(platformId, ofPlatform)
      }
    }
    return lastDays
  }

  #peopleOf({ platformId, day, isMeant = () => true }: ConditionUse): string[] {
    const sum = new ClientSum()
    for (let at = day ?? this.#firstDay; at <= (day ?? this.#lastDay); at++) {
      const bytes = this.#store.clientDays.get(this.#organization.id, at, platformId)
      // Of early records it is not known who used the platform.
      if (bytes !== undefined) sum.add({ day: at, platformId, bytes }, (each) => each.used > 0 && isMeant(each))
    }
    const people = sum.clients().map(personText)
    return [...new Set(people.filter((each) => each !== ''))].slice(0, NAMED_PEOPLE_MAX)
  }
}
