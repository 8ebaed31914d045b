import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { COVERAGE_COUNTER_NAMES, HIDDEN_COUNTER_NAMES } from '../../../engine/kernel/event/coverage-report.ts'
import { confidence, domainStrength, METHOD_WEIGHT } from '../../../engine/scan/confidence.ts'
import { coverageJson } from '../../../engine/scan/coverage.ts'
import { overallRiskScore } from '../../../engine/scan/risk.ts'
import { counters } from '../../support/coverage.ts'
import { REPOSITORY } from '../../support/programs.ts'
import * as fc from '../../support/property.ts'

const COUNTERS = COVERAGE_COUNTER_NAMES.length

const page = readFileSync(join(REPOSITORY, 'docs/reference/scoring.md'), 'utf8')
const counts = { clients: 10, matches: 100, days: 5 }
const seenAndHidden = counters({
  ...{ packets: 120_000, packets_lost: 1200, packets_truncated: 300, packets_undecodable: 900, names: 9000 },
  ...{ hellos_ech: 600, hellos_unnamed: 100, hellos_incomplete: 20, hellos_unknown_version: 30 },
  ...{ dot_sessions: 50, doh_sessions: 200 },
})

t.test('the code computes the worked examples in docs/reference/scoring.md', async (t) => {
  t.equal(confidence({ domainStrength: domainStrength(0.95), ...counts }), 0.8757)
  const platforms = [
    { risk: 55, confidence: 0.9, approved: false },
    { risk: 35, confidence: 0.8, approved: false },
    { risk: 50, confidence: 0.8, approved: true },
  ]
  t.equal(overallRiskScore(platforms), 53)
  t.equal(overallRiskScore(platforms.map((platform) => ({ ...platform, approved: false }))), 56)
  t.equal(coverageJson({ sensors: 3, days: 30, counters: seenAndHidden }).visible_share, 0.8759)
  for (const figure of ['0.8757', '= 53', ': 56', '= 0.8759']) t.ok(page.includes(figure), figure)
  const ofMethods = (['dns', 'tls_inferred', 'dns_alias'] as const).map((method) => METHOD_WEIGHT[method])
  t.same(
    page.split('\n').filter((line) => line.startsWith('| Weight')),
    [`| Weight | ${ofMethods.join(' | ')} |`],
  )
})

const evidence = fc.record({
  domainStrength: fc.double({ min: 0, max: 1, noNaN: true }),
  clients: fc.integer({ min: 1, max: 1e7 }),
  matches: fc.integer({ min: 1, max: 1e9 }),
  days: fc.integer({ min: 1, max: 365 }),
})

t.test('confidence is between 0 and 1, and more evidence of any kind never lowers it', async (t) => {
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
  t.equal(domainStrength(0), 0)
})

const platforms = fc.array(
  fc.record({
    risk: fc.integer({ min: 0, max: 100 }),
    confidence: fc.double({ min: 0, max: 1, noNaN: true }),
    approved: fc.boolean(),
  }),
  { maxLength: 50 },
)

t.test('risk is from 0 to 100; approving never raises it, and another finding never lowers it', async (t) => {
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
})

t.test('coverage is published in the documented form', async (t) => {
  t.same(coverageJson({ sensors: 3, days: 30, counters: seenAndHidden }), {
    sensors: 3,
    names_seen: 9000,
    hidden: {
      ...{ ech: 600, encrypted_dns: 250, no_name: 100, incomplete: 50, undecodable: 1200, packets_lost: 1200 },
      tunnels: 0,
    },
    kinds: Object.fromEntries(HIDDEN_COUNTER_NAMES.map((name) => [name, 0])),
    visible_share: 0.8759,
  })
})

const SHARES: readonly (readonly [
  name: string,
  sensors: number,
  words: Parameters<typeof counters>[0],
  share: number | null,
])[] = [
  ['no sensor has reported', 0, {}, null],
  ['none is left of the window but its days', 0, { packets: 10, names: 5 }, null],
  ['a sensor that got no packet', 1, {}, null],
  ['all was seen', 1, { packets: 10, names: 5, hellos_named: 2 }, 1],
  ['packets of which none carried a name', 1, { packets: 10 }, 1],
  ['every hello has ECH', 1, { packets: 10, names: 4, hellos_ech: 4 }, 0],
  ['nothing but DNS over TLS', 1, { packets: 10, dot_sessions: 3 }, 0],
  ['a tunnel for each name', 1, { packets: 10, names: 4, wireguard_sessions: 3, esp_sessions: 1 }, 0.5],
  ['calls and authentication headers hide no names', 1, { packets: 10, names: 4, dtls_sessions: 3, ah_packets: 3 }, 1],
  ['all packets were lost', 1, { packets_lost: 10 }, 0],
  ['all packets are of an unknown link type', 1, { packets: 10, packets_undecodable: 10 }, 0],
  ['half of the packets were lost', 1, { packets: 10, packets_lost: 10, names: 5 }, 0.5],
  ['more cut than there are', 1, { packets: 10, packets_truncated: 20, names: 5 }, 0],
  ['more outer names than names', 1, { packets: 10, names: 1, hellos_ech: 2 }, 0],
]
for (const [name, sensors, words, share] of SHARES) {
  t.test(`visible share: ${name}`, async (t) => {
    t.equal(coverageJson({ sensors, days: 1, counters: counters(words) }).visible_share, share)
  })
}

t.test('the visible share is between 0 and 1, and hidden or lost traffic never raises it', async (t) => {
  const most = 2 ** 50
  const all = fc.array(fc.integer({ min: 0, max: most }), { minLength: COUNTERS, maxLength: COUNTERS })
  const hiding = [
    ...(['packets_lost', 'hellos_unnamed', 'hellos_incomplete', 'dot_sessions', 'doh_sessions'] as const),
    ...(['dnscrypt_sessions', 'esp_sessions', 'wireguard_sessions', 'openvpn_sessions', 'tor_sessions'] as const),
  ]
  fc.assert(
    fc.property(all, fc.constantFrom(...hiding), fc.integer({ min: 0, max: most }), (values, name, more) => {
      const words = counters(Object.fromEntries(COVERAGE_COUNTER_NAMES.map((each, index) => [each, values[index]])))
      const share = coverageJson({ sensors: 1, days: 1, counters: words }).visible_share ?? 1
      const after = coverageJson({ sensors: 1, days: 1, counters: { ...words, [name]: words[name] + more } })
      return share >= 0 && share <= 1 && (after.visible_share ?? 0) <= share
    }),
    { numRuns: 2000 },
  )
  t.pass()
})
