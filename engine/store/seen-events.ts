import { eventIdParts } from '../event.ts'
import { SequenceSet } from '../ingest/sequence-set.ts'
import type { Environment } from './environment.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'

/** Which sequences of one collector instance were counted: pairs of first and last, ascending. */
type StoredRanges = readonly number[]

/** The events that each organization has counted, so that none counts twice. One record a collector instance. */
export class SeenEvents {
  readonly #instances: Family<StoredRanges>

  constructor(environment: Environment) {
    this.#instances = new Family(environment.table('seen'), 'seen events')
  }

  /**
   * Keeps those of `events` that were not counted before, and remembers them as counted. Inside a transaction of the
   * caller, which also stores the events kept: so an event is remembered exactly if it is stored.
   */
  keepUnseen<E extends { readonly id: string }>(organizationId: string, events: readonly E[]): E[] {
    const sets = new Map<string, SequenceSet>()
    const unseen = events.filter((event) => {
      const { instance, sequence } = eventIdParts(event.id)
      let set = sets.get(instance)
      if (set === undefined) {
        set = new SequenceSet(this.#instances.get(this.#key(organizationId, instance)))
        sets.set(instance, set)
      }
      return set.add(sequence)
    })
    if (unseen.length > 0) {
      for (const [instance, set] of sets) this.#instances.put(this.#key(organizationId, instance), set.ranges)
    }
    return unseen
  }

  #key(organizationId: string, instance: string): Buffer {
    return Buffer.concat([uuidBytes(organizationId), Buffer.from(instance, 'hex')])
  }
}
