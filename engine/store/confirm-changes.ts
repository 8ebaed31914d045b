import { setTimeout as later } from 'node:timers/promises'
import { SECOND_MS } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import type { Store } from './store.ts'

/** Brokers elect another leader in 4 to 9 seconds. */
const CONFIRM_MS = 20 * SECOND_MS
const POLL_MS = 5

/**
 * Waits until the brokers have the changes that this instance of the store has made. Only then do
 * they survive the loss of this node. Does not wait if the store is not replicated.
 *
 * @throws Fault NOT_REPLICATED
 */
export async function confirmChanges({ environment }: Store): Promise<void> {
  const { replication } = environment
  const { lastRecorded } = replication
  if (lastRecorded === 0) return
  const endMs = performance.now() + CONFIRM_MS
  // A service that stops closes the store while others wait.
  while (!environment.isClosed) {
    const first = environment.read(() => replication.firstUnpublished)
    if (first === undefined || first > lastRecorded) return
    if (performance.now() > endMs) break
    await later(POLL_MS)
  }
  throw new Fault(
    'NOT_REPLICATED',
    'the change is stored here, but not on the brokers: check that the service runs and reaches them; if another node becomes the primary, the change is lost',
  )
}
