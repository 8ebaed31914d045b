import { SEEN_INSTANCES_MAX, SEEN_PAGES_MAX } from '../limits.ts'
import type { Environment } from '../lmdb/environment.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'
import { SeenInstance, type StoredSeen, type StoredSeenPage } from './seen-instance.ts'

/** Events that follow each other in a batch and in their sequences: count of them, from first on, of an instance (16 hex digits). */
export interface IdRun {
  readonly instance: string
  readonly first: number
  readonly count: number
}

/** Places [from, to) of events in their batch. */
export interface Places {
  readonly from: number
  to: number
}

/** Which events of a batch are new, and which are older than what is remembered of their instance. The others are duplicates. */
export interface SeenPlaces {
  readonly unseen: readonly Places[]
  readonly late: readonly Places[]
}

/**
 * The events that each organization has counted, so that none counts twice. A collector makes an instance at each start; beyond
 * SEEN_INSTANCES_MAX those go that were silent the longest. What such a one sends again would count again.
 */
export class SeenEvents {
  /** What went because of a bound, since the start: instances, and pages of old sequences, whose events are late from then on. */
  readonly forgotten = { instances: 0, pages: 0 }
  readonly #instances: Family<StoredSeen>
  readonly #pages: Family<StoredSeenPage>
  readonly #instancesMax: number
  readonly #pagesMax: number
  /** By organization, where it was asked for. */
  readonly #counts = new Map<string, number>()
  /** At least as many as there are: counted again at the bound. */
  readonly #pageCounts = new Map<string, number>()

  constructor(environment: Environment, instancesMax = SEEN_INSTANCES_MAX, pagesMax = SEEN_PAGES_MAX) {
    this.#instances = new Family(environment.table('seen'), 'seen events')
    this.#pages = new Family(environment.table('seen-pages'), 'page of seen events')
    this.#instancesMax = instancesMax
    this.#pagesMax = pagesMax
  }

  /**
   * The places of those events that were not counted before, ascending; they are remembered as counted. Inside a transaction of the
   * caller, which also stores these events: so an event is remembered exactly if it is stored.
   */
  keepUnseen(organizationId: string, runs: readonly IdRun[], nowMs: number): SeenPlaces {
    const instances = new Map<string, SeenInstance>()
    let added = 0
    let place = 0
    const places: { unseen: Places[]; late: Places[] } = { unseen: [], late: [] }
    for (const { instance, first, count } of runs) {
      let seen = instances.get(instance)
      if (seen === undefined) {
        const key = keyOf(organizationId, instance)
        seen = new SeenInstance(key, this.#instances.get(key), this.#pages)
        if (seen.isNew) added++
        instances.set(instance, seen)
      }
      seen.add(first, first + count - 1, (answer, events) => {
        if (answer === 'new') keep(places.unseen, place, place + events)
        else if (answer === 'late') keep(places.late, place, place + events)
        place += events
      })
    }
    for (const [instance, seen] of instances) {
      const head = seen.write(nowMs, (pagesAdded) => this.#excessPages(organizationId, pagesAdded))
      if (head !== undefined) this.#instances.put(keyOf(organizationId, instance), head)
      this.forgotten.pages += seen.pagesForgotten
    }
    if (added > 0) this.#bound(organizationId, added)
    return places
  }

  #bound(organizationId: string, added: number): void {
    const before = this.#counts.get(organizationId)
    let count = before === undefined ? this.#all(organizationId).length : before + added
    if (count > this.#instancesMax) {
      const all = this.#all(organizationId).sort((a, b) => a.usedMs - b.usedMs)
      // A tenth at once, so that it is not looked through at each start of a collector.
      const leaving = all.slice(0, all.length - Math.floor(this.#instancesMax * 0.9))
      for (const { key } of leaving) {
        this.#instances.remove(key)
        for (const page of [...this.#pages.keys(key)]) this.#pages.remove(page)
      }
      this.forgotten.instances += leaving.length
      count = all.length - leaving.length
    }
    this.#counts.set(organizationId, count)
  }

  #all(organizationId: string): { key: Buffer; usedMs: number }[] {
    const all = this.#instances.range(uuidBytes(organizationId))
    return Array.from(all, ({ key, value }) => ({ key, usedMs: value.usedMs }))
  }

  #excessPages(organizationId: string, added: number): number {
    if (added === 0) return 0
    const before = this.#pageCounts.get(organizationId)
    let count = (before ?? 0) + added
    if (before === undefined || count > this.#pagesMax) count = [...this.#pages.keys(uuidBytes(organizationId))].length
    this.#pageCounts.set(organizationId, count)
    return count - this.#pagesMax
  }
}

function keyOf(organizationId: string, instance: string): Buffer {
  return Buffer.concat([uuidBytes(organizationId), Buffer.from(instance, 'hex')])
}

function keep(kept: Places[], from: number, to: number): void {
  const last = kept.at(-1)
  if (last?.to === from) last.to = to
  else kept.push({ from, to })
}
