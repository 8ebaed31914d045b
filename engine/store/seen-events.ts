import type { Environment } from '../kernel/lmdb/environment.ts'
import { SEEN_INSTANCES_MAX, SEEN_PAGES_MAX } from '../limits.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'
import { SeenInstance, type StoredSeen, type StoredSeenPage } from './seen-instance.ts'

/**
 * Consecutive events of a batch with consecutive sequences: `count` of them, beginning with
 * `first`, of an instance (16 hex digits).
 */
export interface IdRun {
  readonly instance: string
  readonly first: number
  readonly count: number
}

/** The events [from, to) of a batch, by index. */
export interface Places {
  readonly from: number
  to: number
}

/**
 * Which events of a batch are new, and which are older than what is remembered of their instance.
 * The others are duplicates.
 */
export interface SeenPlaces {
  readonly unseen: readonly Places[]
  readonly late: readonly Places[]
}

/**
 * The events that each organization has counted, so that none counts twice. Each start of a
 * collector is an instance. Beyond SEEN_INSTANCES_MAX, the instances that were inactive the longest
 * are removed; their events would count again if they were resent.
 */
export class SeenEvents {
  /**
   * What went because of a bound, since the start: instances, and pages of old sequences, whose
   * events are late from then on.
   */
  readonly forgotten = { instances: 0, pages: 0 }
  readonly #instances: Family<StoredSeen>
  readonly #pages: Family<StoredSeenPage>
  readonly #instancesMax: number
  readonly #pagesMax: number
  /** Number of instances by organization, once counted. */
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
   * Returns the places of the events that were not counted before, ascending, and marks them as
   * counted. Requires the write transaction that stores these events, so that both are committed
   * together.
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
      // Remove a tenth at once, so that not every start of a collector causes a scan of all
      // records.
      const expired = all.slice(0, all.length - Math.floor(this.#instancesMax * 0.9))
      for (const { key } of expired) {
        this.#instances.remove(key)
        for (const page of [...this.#pages.keys(key)]) this.#pages.remove(page)
      }
      this.forgotten.instances += expired.length
      count = all.length - expired.length
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
