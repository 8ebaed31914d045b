import * as check from 'fast-check'

export * from 'fast-check'

/**
 * fast-check with one seed for all. Every property test imports it from here. `npm test` always
 * tries the same examples. `npm run test:full` chooses a seed and prints it; PROPERTY_SEED repeats
 * a run. An example that ever failed is kept as a row of the test or in its `examples`.
 */
export const PROPERTY_SEED = Number(process.env['PROPERTY_SEED'] ?? 20_261_122)

check.configureGlobal({ ...check.readConfigureGlobal(), seed: PROPERTY_SEED })

/**
 * The share of the examples that `npm test` tries. The full suite, a single file and a run with
 * PROPERTY_SEED try all.
 */
export const PROPERTY_SHARE = Number(process.env['PROPERTY_SHARE'] ?? 1)
const RUNS_DEFAULT = 100

/** The assert of fast-check, with that share. */
export const assert = ((property: check.IRawProperty<unknown>, options: check.Parameters<unknown> = {}) => {
  const { numRuns = RUNS_DEFAULT } = options
  return check.assert(property, { ...options, numRuns: Math.ceil(numRuns * PROPERTY_SHARE) })
}) as typeof check.assert
