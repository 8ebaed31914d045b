import type { IdRun } from '../../engine/store/seen-events.ts'
import type { Store } from '../../engine/store/store.ts'

/** A batch that a node has acknowledged, with the ids of its events. */
export interface AcknowledgedBatch extends IdRun {
  /** By the clock of the test, not of the node. */
  readonly acknowledgedAt: string
  readonly node: string
}

class Undone extends Error {}

/** The batches of which the store has not all events. Changes nothing. */
export function unstored(
  store: Store,
  organizationId: string,
  batches: readonly AcknowledgedBatch[],
): AcknowledgedBatch[] {
  let missing: AcknowledgedBatch[] = []
  try {
    store.environment.write(() => {
      missing = batches.filter(
        (batch) => store.seenEvents.keepUnseen(organizationId, [batch], Date.now()).unseen.length > 0,
      )
      throw new Undone()
    })
  } catch (error) {
    if (!(error instanceof Undone)) throw error
  }
  return missing
}
