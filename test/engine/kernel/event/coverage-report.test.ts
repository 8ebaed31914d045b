import t from 'tap'
import { coverageFromMessage, coverageFromPacked } from '../../../../engine/ingest/read-coverage.ts'
import {
  COVERAGE_COUNT_MAX,
  COVERAGE_COUNTER_NAMES,
  type CoverageReport,
  HIDDEN_COUNTERS,
  REQUIRED_COUNTER_NAMES,
} from '../../../../engine/kernel/event/coverage-report.ts'
import { packBatch, TIME_MS_MAX, unpackBatch } from '../../../../engine/kernel/event/event.ts'
import { counters, coverageMessage, report } from '../../../support/coverage.ts'
import * as fc from '../../../support/property.ts'

const COUNTERS = COVERAGE_COUNTER_NAMES.length

const good = report({ madeMs: Date.parse('2026-11-20T09:15:02.123Z'), counters: { packets: 120_000, names: 300 } })

/** The report after encoding in a msgpack batch. */
function packed(each: CoverageReport) {
  const batch = unpackBatch(packBatch([], each), 0)
  return typeof batch === 'string' ? batch : coverageFromPacked(batch.coverage ?? Buffer.alloc(0))
}

t.test('a report is unchanged after encoding in a message and in a batch', async (t) => {
  const time = fc.integer({ min: 0, max: TIME_MS_MAX })
  const any: fc.Arbitrary<CoverageReport> = fc
    .record({
      instance: fc.stringMatching(/^[0-9a-f]{16}$/),
      sinceMs: time,
      madeMs: time,
      ended: fc.boolean(),
      counts: fc.array(fc.integer({ min: 0, max: COVERAGE_COUNT_MAX }), { minLength: COUNTERS, maxLength: COUNTERS }),
    })
    .map(({ counts, sinceMs, madeMs, ...rest }) => ({
      ...rest,
      sinceMs: Math.min(sinceMs, madeMs),
      madeMs: Math.max(sinceMs, madeMs),
      counters: counters(Object.fromEntries(COVERAGE_COUNTER_NAMES.map((name, index) => [name, counts[index]]))),
    }))
  fc.assert(
    fc.property(any, (each) => {
      t.strictSame(coverageFromMessage(coverageMessage(each)), each)
      t.strictSame(packed(each), each)
    }),
  )
})

const plain = JSON.parse(coverageMessage(good)) as { coverage: Record<string, unknown> }
const changed = (members: Record<string, unknown>): string =>
  JSON.stringify({ coverage: { ...plain.coverage, ...members } })
const counted = (members: Record<string, unknown>): string => changed({ counters: { ...good.counters, ...members } })

t.test('members of later releases are ignored', async (t) => {
  t.same(coverageFromMessage(changed({ counters: { ...good.counters, later: 1 }, hosts: ['x'] })), good)
  t.same(coverageFromMessage(JSON.stringify({ ...plain, version: 2 })), good)
})

t.test('a report of an earlier program has no counters by kind, and one that is 0 is not sent', async (t) => {
  t.notOk(
    Object.keys((plain.coverage['counters'] ?? {}) as object).some((name) => Object.hasOwn(HIDDEN_COUNTERS, name)),
  )
  t.same(coverageFromMessage(coverageMessage(good)), good)
  const some = { ...good, counters: { ...good.counters, wireguard_sessions: 3 } }
  t.same(coverageFromMessage(coverageMessage(some)), some)
})

const WRONG: readonly (readonly [name: string, text: string, found: RegExp])[] = [
  ['nothing', '', /^coverage: expected JSON: /],
  ['no JSON', '{"coverage":', /^coverage: expected JSON: /],
  ['a number', '7', /^coverage: expected a report$/],
  ['null', 'null', /^coverage: expected a report$/],
  ['no report', '{"coverage":null}', /^coverage: expected a report$/],
  ['an array', '[]', /^coverage: /],
  ['another message', '{"events":[]}', /^coverage: /],
  ['coverage of another kind', '{"coverage":"all"}', /^coverage: /],
  ['no instance', changed({ instance: undefined }), /^coverage\.instance: /],
  [
    'an instance in upper case',
    changed({ instance: '5C28DC30EF9D3CA8' }),
    /^coverage\.instance: expected 16 lower-case/,
  ],
  ['a short instance', changed({ instance: '5c28' }), /^coverage\.instance: /],
  ['an instance with more behind', changed({ instance: '5c28dc30ef9d3ca8\n' }), /^coverage\.instance: /],
  ['no beginning', changed({ since: undefined }), /^coverage\.since: /],
  ['a beginning in milliseconds', changed({ since: 1_795_162_502_000 }), /^coverage\.since: /],
  ['a beginning without zone', changed({ since: '2026-11-20T09:15:02' }), /^coverage\.since: /],
  ['a beginning on a day that is not', changed({ since: '2026-02-30T00:00:00Z' }), /^coverage\.since: /],
  ['a beginning before 1970', changed({ since: '0001-01-01T00:00:00Z' }), /^coverage\.since: /],
  [
    'made before it began',
    changed({ made: '2026-11-19T00:00:00.000Z' }),
    /^coverage\.made: expected a time not before/,
  ],
  ['an end that is no truth value', changed({ ended: 'yes' }), /^coverage\.ended: /],
  ['no end', changed({ ended: undefined }), /^coverage\.ended: /],
  ['no counters', changed({ counters: undefined }), /^coverage\.counters: /],
  ['counters as an array', changed({ counters: [1, 2, 3] }), /^coverage\.counters: /],
  ['a negative counter', counted({ packets: -1 }), /^coverage\.counters\.packets: /],
  ['a fraction', counted({ names: 1.5 }), /^coverage\.counters\.names: /],
  ['a huge counter', counted({ names: COVERAGE_COUNT_MAX + 1 }), /^coverage\.counters\.names: /],
  ['more than a number can be', changed({}).replace('120000', '1e999'), /^coverage\.counters\.packets: /],
  ['a counter as text', counted({ doh_sessions: '7' }), /^coverage\.counters\.doh_sessions: /],
  ['a counter that is null', counted({ doh_sessions: null }), /^coverage\.counters\.doh_sessions: /],
  ...REQUIRED_COUNTER_NAMES.map(
    (name) =>
      [`without ${name}`, counted({ [name]: undefined }), new RegExp(`^coverage\\.counters\\.${name}: `)] as const,
  ),
]
for (const [name, text, found] of WRONG) {
  t.test(`rejected: ${name}`, async (t) => {
    t.match(coverageFromMessage(text), found)
  })
}

t.test('any text is a report or one error line', async (t) => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      const found = coverageFromMessage(text)
      return typeof found === 'string' && !found.includes('\n    ')
    }),
    { numRuns: 2000 },
  )
  t.pass()
})
