import fc from 'fast-check'

/**
 * fast-check with one seed for all. Every property test imports it from here. `npm test` always
 * tries the same examples. `npm run test:full` chooses a seed and prints it; PROPERTY_SEED repeats
 * a run. An example that ever failed is kept as a row of the test or in its `examples`.
 */
export const PROPERTY_SEED = Number(process.env['PROPERTY_SEED'] ?? 20_261_122)

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: PROPERTY_SEED })

export default fc
