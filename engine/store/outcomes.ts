/**
 * The outcome of a message. Each message has exactly one outcome, so messages = stored + duplicate
 * + unmatched + noDomain + skipped + rejected + unknown + unauthorized + ambiguous +
 * outsideDedupWindow.
 *
 *   stored        names a platform and is in the durable buffer
 *   duplicate     the same event was stored before
 *   unmatched     names a host that belongs to no platform; counted and discarded
 *   noDomain      well-formed traffic that names no host
 *   skipped       well-formed, but not a client's request: device status, coverage reports
 *   rejected      the format is known, but a field is invalid
 *   unknown       no format recognized
 *   unauthorized  no valid monitoring token
 *   outsideDedupWindow
 *                 an event older than what is remembered of its sender, which may have been stored
 *   ambiguous     names a host without positive evidence that a client requested it
 */
export const OUTCOMES = [
  'stored',
  'duplicate',
  'unmatched',
  'noDomain',
  'skipped',
  'rejected',
  'unknown',
  'unauthorized',
  'ambiguous',
  'outsideDedupWindow',
] as const
export type OutcomeName = (typeof OUTCOMES)[number]

/** Indexes of the outcomes in a row of counts. */
export const Outcome = {
  stored: 0,
  duplicate: 1,
  unmatched: 2,
  noDomain: 3,
  skipped: 4,
  rejected: 5,
  unknown: 6,
  unauthorized: 7,
  ambiguous: 8,
  outsideDedupWindow: 9,
} as const satisfies Record<OutcomeName, number>

export function newCounts(): Float64Array {
  return new Float64Array(OUTCOMES.length)
}

/** The sum of a row of counts. */
export function totalOf(counts: Iterable<number>): number {
  let total = 0
  for (const count of counts) total += count
  return total
}
