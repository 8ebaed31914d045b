/** Slices of one measurement: a collection of garbage hides the allocations of one slice only. */
const SLICES = 200

/**
 * Measurements at most. V8 interprets a function, which allocates, until a thread in the
 * background has compiled it, and a busy machine can keep that thread waiting.
 */
const MEASUREMENTS = 100

/**
 * Bytes that compiled `work` allocates on the JavaScript heap when it runs `SLICES` times: the
 * least of several measurements, of which the first one at or below `enough` bytes is the last.
 */
export function allocatedBytes(work: () => unknown, enough: number): number {
  let least = Number.POSITIVE_INFINITY
  for (let measurement = 0; least > enough && measurement < MEASUREMENTS; measurement++) {
    least = Math.min(least, grownBytes(work) - grownBytes(() => undefined))
  }
  return least
}

/** A collection makes the heap smaller than before; its slice counts as nothing. */
function grownBytes(work: () => unknown): number {
  let bytes = 0
  for (let slice = 0; slice < SLICES; slice++) {
    const before = process.memoryUsage().heapUsed
    work()
    bytes += Math.max(0, process.memoryUsage().heapUsed - before)
  }
  return bytes
}
