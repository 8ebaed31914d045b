import { testCaptures } from './captures.ts'

/** Runs the same captures with decode workers. */
for (const lanes of [1, 2]) {
  // Small pools: default-size pools of all captures add up to 4 GB before the first is
  // garbage-collected.
  testCaptures({ lanes, pool: { batches: 3, frameBytes: 1_000_000, rowBytes: 1_000_000 } })
}
