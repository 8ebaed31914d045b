import { testCaptures } from './captures.ts'

/** The same captures through decode workers. */
for (const lanes of [1, 2]) {
  // A pool of the default size for each capture adds up to 4 GB before the first is collected.
  testCaptures({ lanes, pool: { batches: 3, frameBytes: 1_000_000, rowBytes: 1_000_000 } })
}
