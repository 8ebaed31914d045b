import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { IdRun } from '../../engine/store/seen-events.ts'
import type { Store } from '../../engine/store/store.ts'

/*
 * Where acknowledged batches were lost: before the store had them, or after it.
 */

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

/** Keeps what the programs logged, because the folder of the test is removed. */
export function keepLogs(folder: string, logs: ReadonlyMap<string, string>): void {
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of logs) writeFileSync(join(folder, `${name}.log`), text)
}
