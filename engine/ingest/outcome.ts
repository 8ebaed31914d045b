/**
 * What became of a message that came with a token. Every message is in exactly one of them, or it is unauthorized: so
 * messages = stored + duplicate + unmatched + noDomain + skipped + rejected + unknown + unauthorized + ambiguous +
 * tooLate.
 *
 *   stored      it names a platform, and is in the durable buffer
 *   duplicate   the same event was stored before
 *   unmatched   it names a host that is no platform's; counted and forgotten
 *   noDomain    well-formed traffic that names no host
 *   skipped     well-formed, but no client's request: a device's own news, a collector's report of its coverage
 *   rejected    its format is known, and a field of it cannot be
 *   unknown     no format was recognised
 *   tooLate     an event older than what is remembered of its sender, so that it may have been stored before
 *   ambiguous   names a host, but has no positive evidence that a client requested the host
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
  'tooLate',
] as const
export type OutcomeName = (typeof OUTCOMES)[number]

/** The places of the outcomes in a row of counts. */
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
  tooLate: 9,
} as const satisfies Record<OutcomeName, number>

export function newCounts(): Float64Array {
  return new Float64Array(OUTCOMES.length)
}

/** How many messages a row of counts stands for. */
export function totalOf(counts: Iterable<number>): number {
  let total = 0
  for (const count of counts) total += count
  return total
}
