import stringWidth from 'string-width'
import t from 'tap'
import {
  type Column,
  type ColumnFit,
  jsonLine,
  secretText,
  tableOf,
  terminalWidth,
} from '../../../../engine/kernel/process/table.ts'
import * as fc from '../../../support/property.ts'

const NAMES: readonly Column[] = [
  ['Name', 'name', { wrap: true }],
  ['Plan', 'plan', { hide: 1 }],
  ['Created', 'created_at', { hide: 3 }],
  ['Id', 'id', { hide: 2 }],
]
const acme = {
  name: 'Acme Widgets International',
  plan: 'enterprise',
  created_at: '2026-11-20T09:15:02Z',
  id: '0190b3c1-1111-7000-8000-000000000000',
}
const other = { ...acme, name: 'Other', plan: 'free' }

t.test('a wide terminal shows every column', async (t) => {
  const lines = tableOf({ columns: NAMES, rows: [acme, other] }, 200).split('\n')
  t.equal(lines.length, 6)
  t.match(lines[1], /^│ Name +│ Plan +│ Created +│ Id +│$/)
  t.match(lines[3], /^│ Acme Widgets International │ enterprise │ 2026-11-20T09:15:02Z │ 0190b3c1-\S+ │$/)
})

t.test('a narrow terminal hides the column with the highest number first, and the last line names it', async (t) => {
  const lines = tableOf({ columns: NAMES, rows: [acme, other] }, 80).split('\n')
  t.match(lines[1], /^│ Name +│ Plan +│ Id +│$/)
  t.equal(lines.at(-1), 'Hidden to fit 80 columns: Created')
  t.match(tableOf({ columns: NAMES, rows: [acme, other] }, 40), /│ Name +│ Plan +│\n.*Created, Id$/s)
})

t.test('if one row does not fit, each field has a line and nothing is hidden', async (t) => {
  t.equal(
    tableOf({ columns: NAMES, rows: [acme] }, 80),
    [
      'Name     Acme Widgets International',
      'Plan     enterprise',
      'Created  2026-11-20T09:15:02Z',
      'Id       0190b3c1-1111-7000-8000-000000000000',
    ].join('\n'),
  )
  t.match(tableOf({ columns: NAMES, rows: [{ ...acme, id: null }] }, 30), /^Name {5}Acme Widgets\n {9}International\n/)
})

t.test('if the required columns do not fit, every row is shown as lines', async (t) => {
  t.match(tableOf({ columns: NAMES, rows: [acme, other] }, 20), /^Name {5}Acme\n {9}Widgets\n.*\n\nName {5}Other\n/s)
})

t.test('a wrapped column breaks at spaces, and a long word anywhere', async (t) => {
  const columns: readonly Column[] = [
    ['Check', 'check'],
    ['Found', 'found', { wrap: true }],
  ]
  const rows = [{ check: 'tls', found: `the fingerprint is ${'AB:'.repeat(31)}AB` }, { check: 'outbox' }]
  const lines = tableOf({ columns, rows }, 60).split('\n')
  t.same(new Set(lines.map((line) => line.length)), new Set([60]))
  const joined = lines.map((line) => line.split('│')[2]?.trim() ?? '').join('')
  t.ok(joined.includes('AB:'.repeat(31)), 'nothing is left out')
})

t.test('cells show yes and no, lists, parts of objects, and custom texts', async (t) => {
  const text = tableOf(
    {
      columns: [
        ['On', 'on'],
        ['List', 'list'],
        ['Score', 'risk.score'],
        ['All', 'risk'],
        ['Share', 'share', { text: (share) => `${Number(share) * 100} %` }],
        ['Missing', 'no.such.field'],
      ],
      rows: [{ on: true, list: ['a', 'b'], risk: { score: 3, why: 'x' }, share: 0.5 }, { on: false }],
    },
    200,
  )
  t.match(text, /│ yes │ a, b │ 3 +│ score 3; why x │ 50 % +│ +│/)
  t.match(text, /│ no +│/)
})

t.test('external text cannot control the terminal', async (t) => {
  const table = tableOf({ columns: [['A', 'a']], rows: [{ a: 'x\u001b[31m\n\u202e' }, { a: null }] }, 80)
  t.notOk(table.includes('\u001b') || table.includes('\u202e'))
  t.match(table, /│ x.\[31m.. │/)
})

t.test('wide characters count twice, so that columns stay aligned', async (t) => {
  const table = tableOf({ columns: [['Name', 'name', { wrap: true }]], rows: [{ name: '人工知能'.repeat(9) }, {}] }, 40)
  t.same(new Set(table.split('\n').map((line) => stringWidth(line))), new Set([40]))
})

const cell = fc.oneof(
  fc.string({ maxLength: 60 }),
  fc.lorem({ maxCount: 12 }),
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
)
const fit: fc.Arbitrary<ColumnFit> = fc.record(
  { hide: fc.integer({ min: 1, max: 5 }), wrap: fc.boolean() },
  { requiredKeys: [] },
)
const shown = fc
  .array(fc.tuple(fc.stringMatching(/^[A-Z][a-z ]{0,11}$/), fit), { minLength: 1, maxLength: 8 })
  .chain((columns) =>
    fc.record({
      columns: fc.constant(columns.map(([heading, fit], at): Column => [heading, `f${at}`, fit])),
      rows: fc.array(fc.dictionary(fc.constantFrom(...columns.map((_, at) => `f${at}`)), cell), {
        minLength: 1,
        maxLength: 5,
      }),
      vertical: fc.boolean(),
    }),
  )

t.test('no table is wider than its terminal', async () => {
  fc.assert(
    fc.property(shown, fc.integer({ min: 30, max: 220 }), (table, width) => {
      return tableOf(table, width)
        .split('\n')
        .every((line) => stringWidth(line) <= width)
    }),
    { numRuns: 500 },
  )
})

t.test('JSON has typed values, and null for an empty string', async (t) => {
  t.equal(
    jsonLine({ a: '', b: 0, c: false, d: null, e: { f: '' } }),
    '{"a":null,"b":0,"c":false,"d":null,"e":{"f":null}}',
  )
})

t.test('a secret has its own line', async (t) => {
  const secret = `svc_pk_${'a'.repeat(64)}`
  t.same(secretText('API key', secret).split('\n'), [
    ...['API key:', '', secret, ''],
    ...['Save it now; it will not be shown again', ''],
  ])
})

for (const [COLUMNS, columns, expected] of [
  [undefined, 120, 120],
  [undefined, undefined, 80],
  [undefined, 0, 80],
  ['40', 120, 40],
  ['0', 120, 120],
  ['wide', 120, 120],
] as const) {
  t.test(`COLUMNS ${COLUMNS}, a terminal of ${columns}: ${expected}`, async (t) => {
    const { COLUMNS: _before, ...environment } = process.env
    t.intercept(process, 'env', { value: COLUMNS === undefined ? environment : { ...environment, COLUMNS } })
    t.equal(terminalWidth(columns === undefined ? {} : { columns }), expected)
  })
}
