import t from 'tap'
import { type History, Model, type Mutation } from '../../support/rate-model.ts'

/*
 * Random histories of three nodes: no key is ever used more often than its limit in any 60 s, and
 * without faults no refusal is wrong for longer than a second. RATE_HISTORIES=N and RATE_SEED=N
 * change their number and the first seed.
 */
const HISTORIES = Number(process.env['RATE_HISTORIES'] ?? 2000)
const SEED = Number(process.env['RATE_SEED'] ?? 1)
/** Until a mutation is found. */
const MUTATED_HISTORIES = 20_000

function firstViolation(seed: number, mutation: Mutation): { readonly tried: number; readonly why: string } {
  for (let tried = 0; tried < MUTATED_HISTORIES; tried++) {
    const { hasFaults, violations } = new Model(seed + tried, mutation).run()
    if (hasFaults && violations[0] !== undefined) return { tried, why: violations[0] }
  }
  return { tried: MUTATED_HISTORIES, why: '' }
}

t.test(`${HISTORIES} histories from seed ${SEED}`, async (t) => {
  const sum = { withFaults: 0, uses: 0, allowed: 0, takeovers: 0, collected: 0 }
  const wrong: string[] = []
  for (let seed = SEED; seed < SEED + HISTORIES; seed++) {
    const history: History = new Model(seed).run()
    if (history.violations.length > 0) wrong.push(`seed ${seed}: ${history.violations[0]}`)
    if (history.hasFaults) sum.withFaults++
    sum.uses += history.uses
    sum.allowed += history.allowed
    sum.takeovers += history.takeovers
    sum.collected += history.collected
  }
  t.comment(sum)
  t.same(wrong.slice(0, 10), [])
  t.ok(sum.takeovers > HISTORIES * 1.5, 'homes changed')
  t.ok(sum.allowed > sum.uses * 0.1, 'allowances were used')
  t.ok(sum.allowed < sum.uses * 0.9, 'the home granted')
  t.ok(sum.collected > HISTORIES * 0.2, 'new homes collected')
})

/** Each with a seed that shows it soon. */
const MUTATIONS: Readonly<Record<string, readonly [seed: number, mutation: Mutation]>> = {
  'grants of the home without a witness': [16, { witness: false }],
  'a grant counts for 60 s': [335, { permitTime: false }],
  'a late verdict is used': [3880, { permitCheck: false }],
  'a new home does not collect': [1, { collection: false }],
  'a node takes grants of a home after the next one has collected': [554, { fence: false }],
  'a home grants without acknowledgments': [1421, { pause: false }],
  'the last home is exempt at once': [45, { reign: false }],
  'a node that was killed counts as complete': [1, { completeness: false }],
  'a home without a witness notes nothing': [2265, { note: false }],
}

for (const [name, [seed, mutation]] of Object.entries(MUTATIONS)) {
  t.test(`the model notices: ${name}`, async (t) => {
    const { tried, why } = firstViolation(seed, mutation)
    t.not(why, '', `history ${tried}: ${why}`)
  })
}
