/** Slices of one measurement: a collection of garbage hides the allocations of one slice only. */
const SLICES = 200

/**
 * Bytes that `work` allocates on the JavaScript heap when it runs `SLICES` times. A collection
 * makes the heap smaller than before; the slice in which it fell counts as nothing. What the
 * measurement allocates itself is subtracted.
 */
export function allocatedBytes(work: () => unknown): number {
  return grownBytes(work) - grownBytes(() => undefined)
}

function grownBytes(work: () => unknown): number {
  let bytes = 0
  for (let slice = 0; slice < SLICES; slice++) {
    const before = process.memoryUsage().heapUsed
    work()
    bytes += Math.max(0, process.memoryUsage().heapUsed - before)
  }
  return bytes
}
