import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { confidence, domainStrength, ROLE_WEIGHT } from '../../../engine/scan/confidence.ts'
import { overallRiskScore } from '../../../engine/scan/risk.ts'
import type { Role } from '../../../registry/platform.ts'
import { REPOSITORY } from '../../support/programs.ts'

const page = readFileSync(join(REPOSITORY, 'docs/scoring.md'), 'utf8')
const counts = { clients: 10, matches: 100, days: 5 }

t.test('the worked examples of docs/scoring.md are what the code computes', async (t) => {
  t.equal(confidence({ domainStrength: domainStrength(0.95, 'web'), ...counts }), 0.8757)
  t.equal(confidence({ domainStrength: domainStrength(0.6, 'docs'), ...counts }), 0.3319)
  const platforms = [
    { risk: 55, confidence: 0.9, approved: false },
    { risk: 35, confidence: 0.8, approved: false },
    { risk: 50, confidence: 0.8, approved: true },
  ]
  t.equal(overallRiskScore(platforms), 53)
  t.equal(overallRiskScore(platforms.map((platform) => ({ ...platform, approved: false }))), 56)
  for (const figure of ['0.8757', '0.3319', '= 53', ': 56']) t.ok(page.includes(figure), figure)
  const weights = page.split('\n').find((line) => line.startsWith('| Weight'))
  t.equal(
    weights,
    `| Weight | ${(['web', 'api', 'auth', 'telemetry', 'cdn', 'docs'] as const).map((role) => ROLE_WEIGHT[role]).join(' | ')} |`,
  )
})

const evidence = fc.record({
  domainStrength: fc.double({ min: 0, max: 1, noNaN: true }),
  clients: fc.integer({ min: 1, max: 1e7 }),
  matches: fc.integer({ min: 1, max: 1e9 }),
  days: fc.integer({ min: 1, max: 365 }),
})

t.test('confidence lies in 0 to 1, and more evidence of any kind never lowers it', async (t) => {
  fc.assert(
    fc.property(evidence, fc.integer({ min: 0, max: 1e6 }), (before, more) => {
      const was = confidence(before)
      if (was < 0 || was > 1) return false
      return (['clients', 'matches', 'days'] as const).every(
        (kind) => confidence({ ...before, [kind]: before[kind] + more }) >= was,
      )
    }),
    { numRuns: 2000 },
  )
  fc.assert(
    fc.property(evidence, fc.double({ min: 0, max: 1, noNaN: true }), (before, share) => {
      const stronger = before.domainStrength + (1 - before.domainStrength) * share
      return confidence({ ...before, domainStrength: stronger }) >= confidence(before)
    }),
    { numRuns: 2000 },
  )
  t.ok(Object.values(ROLE_WEIGHT).every((weight) => weight > 0 && weight <= 1))
  t.equal(domainStrength(0, 'web' as Role), 0)
})

const platforms = fc.array(
  fc.record({
    risk: fc.integer({ min: 0, max: 100 }),
    confidence: fc.double({ min: 0, max: 1, noNaN: true }),
    approved: fc.boolean(),
  }),
  { maxLength: 50 },
)

t.test(
  'risk is a whole number from 0 to 100; approving never raises it, finding one more never lowers it',
  async (t) => {
    fc.assert(
      fc.property(platforms, fc.nat(), (found, at) => {
        const was = overallRiskScore(found)
        if (!Number.isInteger(was) || was < 0 || was > 100) return false
        const approved = found.map((platform, index) =>
          index === at % Math.max(1, found.length) ? { ...platform, approved: true } : platform,
        )
        return overallRiskScore(approved) <= was && overallRiskScore(found.slice(1)) <= was
      }),
      { numRuns: 2000 },
    )
    t.equal(overallRiskScore([]), 0)
  },
)
