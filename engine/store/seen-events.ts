import { SEEN_INSTANCES_MAX } from '../limits.ts'
import type { Environment } from '../lmdb/environment.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'
import { SequenceSet } from './sequence-set.ts'

/**
 * The counted sequences of one collector instance: pairs of first and last, ascending. `usedMs`:
 * time of the last event, in milliseconds since 1970.
 */
export interface StoredSeen {
  readonly ranges: readonly number[]
  readonly usedMs: number
}
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
 * The events that each organization has counted, so that none counts twice. One record per
 * collector instance, that is, per start of a collector. Beyond SEEN_INSTANCES_MAX, the instances
 * that were inactive the longest are removed; their events would count again if they were resent.
 */
export class SeenEvents {
  readonly #instances: Family<StoredSeen>
  readonly #instancesMax: number
  /** Number of instances by organization, once counted. */
  readonly #counts = new Map<string, number>()

  constructor(environment: Environment, instancesMax = SEEN_INSTANCES_MAX) {
    this.#instances = new Family(environment.table('seen'), 'seen events')
    this.#instancesMax = instancesMax
  }

  /**
   * Returns the places of the events that were not counted before, ascending, and marks them as
   * counted. Requires the write transaction that stores these events, so that both are committed
   * together.
   */
  keepUnseen(organizationId: string, runs: readonly IdRun[], nowMs: number): Places[] {
    const sets = new Map<string, SequenceSet>()
    let added = 0
    let place = 0
    const unseen: Places[] = []
    for (const { instance, first, count } of runs) {
      let set = sets.get(instance)
      if (set === undefined) {
        const stored = this.#instances.get(this.#key(organizationId, instance))
        if (stored === undefined) added++
        set = new SequenceSet(stored?.ranges)
        sets.set(instance, set)
      }
      if (set.addRange(first, first + count - 1)) keep(unseen, place, place + count)
      else for (let at = 0; at < count; at++) if (set.add(first + at)) keep(unseen, place + at, place + at + 1)
      place += count
    }
    if (unseen.length > 0) {
      for (const [instance, { ranges }] of sets) {
        this.#instances.put(this.#key(organizationId, instance), { ranges, usedMs: nowMs })
      }
    }
    if (added > 0) this.#bound(organizationId, added)
    return unseen
  }

  #bound(organizationId: string, added: number): void {
    const before = this.#counts.get(organizationId)
    let count = before === undefined ? this.#all(organizationId).length : before + added
    if (count > this.#instancesMax) {
      const all = this.#all(organizationId).sort((a, b) => a.usedMs - b.usedMs)
      // Remove a tenth at once, so that not every start of a collector causes a scan of all
      // records.
      const expired = all.slice(0, all.length - Math.floor(this.#instancesMax * 0.9))
      for (const { key } of expired) this.#instances.remove(key)
      count = all.length - expired.length
    }
    this.#counts.set(organizationId, count)
  }

  #all(organizationId: string): { key: Buffer; usedMs: number }[] {
    const all = this.#instances.range(uuidBytes(organizationId))
    return Array.from(all, ({ key, value }) => ({ key, usedMs: value.usedMs }))
  }

  #key(organizationId: string, instance: string): Buffer {
    return Buffer.concat([uuidBytes(organizationId), Buffer.from(instance, 'hex')])
  }
}

function keep(kept: Places[], from: number, to: number): void {
  const last = kept.at(-1)
  if (last?.to === from) last.to = to
  else kept.push({ from, to })
}
