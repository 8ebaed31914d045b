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
const MUTATED_HISTORIES = 2000

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
  'grants of the home without a witness': [26, { witness: false }],
  'a grant counts for 60 s': [21, { permitTime: false }],
  'a late verdict is used': [2309, { permitCheck: false }],
  'a new home does not collect': [1, { collection: false }],
  'a node takes grants of a home after the next one has collected': [86_888, { fence: false }],
  'a home grants without acknowledgments': [201_039, { pause: false }],
  'the last home is exempt at once': [200_242, { reign: false }],
  'a node that was killed counts as complete': [1, { completeness: false }],
  'a home without a witness notes nothing': [18_793, { note: false }],
  'a node with a new lease does not wait': [2, { freeAfter: false }],
  'the home does not bind keys': [2, { binding: false }],
  'a node reports its uses, and does not hold the key': [2, { hold: false }],
  'a binding is used for longer than nodes hold the key': [10, { holdTime: false }],
  'the home ignores uses of a node with a faster clock': [2882, { countTime: false }],
  'a lease does not end': [200_354, { leaseTime: false }],
  'a node that does not answer counts as one without uses': [2, { reserve: false }],
  'a node that was killed reports no uses': [200_144, { allowanceCompleteness: false }],
  'a new home does not know leases of the last one': [30, { inheritance: false }],
  'a node that was restarted keeps its lease': [200_052, { instance: false }],
}

for (const [name, [seed, mutation]] of Object.entries(MUTATIONS)) {
  t.test(`the model notices: ${name}`, async (t) => {
    const { tried, why } = firstViolation(seed, mutation)
    t.not(why, '', `history ${tried}: ${why}`)
  })
}
