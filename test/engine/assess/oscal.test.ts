import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import t from 'tap'
import { AssessmentFileFault } from '../../../engine/assess/file-fault.ts'
import { currentItems } from '../../../engine/assess/items.ts'
import { controlIdOf, OSCAL_NAMESPACE, uuidOf } from '../../../engine/assess/oscal.ts'
import { itemKey } from '../../../engine/assess/rules.ts'
import { itemsOf } from '../../../engine/assess/states.ts'
import { readAssessment, writeAssessment } from '../../../engine/assess/transfer.ts'
import {
  ASSESSMENT_FAULTS_NAMED_MAX,
  ASSESSMENT_FILE_BYTES_MAX,
  ASSESSMENT_ITEMS_MAX,
  ASSESSMENT_LINE_BYTES_MAX,
  ASSESSMENT_NOTE_BYTES_MAX,
} from '../../../engine/limits.ts'
import type { Answer, Assessment } from '../../../engine/store/assessments.ts'
import { FRAMEWORK_IDS } from '../../../engine/store/framework.ts'
import { anyContent } from '../../support/any-assessment.ts'
import { category, content, draft, item } from '../../support/assessments.ts'
import { REPOSITORY } from '../../support/programs.ts'
import * as fc from '../../support/property.ts'
import { cpuMsOf } from '../../support/wait.ts'

const SCHEMA = 'test/engine/assess/oscal/assessment-results-1.2.1.schema.json'
const ajv = new Ajv({ strict: false, allErrors: true })
addFormats.default(ajv)
const isValid = ajv.compile(JSON.parse(readFileSync(join(REPOSITORY, SCHEMA), 'utf8')))

/** An exported document that is valid by the schema of NIST. */
function exported(assessment: Assessment, categories: Parameters<typeof writeAssessment>[1]): string {
  const text = writeAssessment(assessment, categories, 'oscal')
  if (!isValid(JSON.parse(text))) throw new Error(ajv.errorsText(isValid.errors))
  return text
}

/** The lines of the fault that ends reading. */
function faultsOf(document: unknown): readonly string[] {
  try {
    readAssessment(Buffer.from(JSON.stringify(document)), { frameworkId: 'nist-800-53' })
  } catch (error) {
    if (error instanceof AssessmentFileFault) return error.lines
    throw error
  }
  return []
}

t.test('the schema rejects a document without its required fields', async (t) => {
  t.notOk(isValid({ 'assessment-results': { uuid: uuidOf('x'), metadata: {} } }))
})

t.test('an export is valid by the schema of NIST, and its import is the same assessment', async (t) => {
  const anyAssessment = fc.record({
    given: anyContent,
    template: fc.option(fc.stringMatching(/^[0-9a-f]{8}$/), { nil: undefined }),
    profile: fc.option(fc.array(fc.stringMatching(/^[a-z][a-z\u2028.-]{1,8}[a-z]$/), { minLength: 1, maxLength: 3 }), {
      nil: undefined,
    }),
    question: fc.boolean(),
  })
  fc.assert(
    fc.property(anyAssessment, ({ given, template, profile, question }) => {
      const more = { ...(template === undefined ? {} : { template }), ...(profile === undefined ? {} : { profile }) }
      const categories = given.categories.map((each) => ({
        ...each,
        items: each.items.map((one) => ({ ...one, ...(question ? { question: `${one.title}?` } : {}) })),
      }))
      const {
        skipped,
        errors: _,
        ...read
      } = readAssessment(Buffer.from(exported(draft({ ...given, ...more }), categories)))
      t.same(read, { ...given, ...more, categories })
      t.same(skipped, [])
    }),
    { numRuns: 300 },
  )
})

t.test('a completed assessment has its score, and each export has the same UUIDs', async (t) => {
  const { categories } = content('nist-800-53', { 'AC-2(1)': 'partial', 'AC-3': 'yes', 'AC-4': 'not_applicable' })
  const assessment = draft({
    ...{ frameworkId: 'nist-800-53', status: 'completed', startedAtMs: Date.parse('2026-03-01T08:00:00Z') },
    ...{ updatedAtMs: Date.parse('2026-03-31T08:00:00Z'), completedAtMs: Date.parse('2026-03-31T08:00:00Z') },
    result: { overallScore: 75, grade: 'C', categories: [{ name: 'All', weight: 1, score: 75 }] },
  })
  const text = exported(assessment, categories)
  t.equal(exported({ ...assessment, organizationId: '00000000-0000-4000-8000-0000000000ff' }, categories), text)
  const ns = OSCAL_NAMESPACE
  t.match(JSON.parse(text)['assessment-results'], {
    results: [
      {
        start: '2026-03-01T08:00:00Z',
        end: '2026-03-31T08:00:00Z',
        props: [
          { name: 'status', ns, value: 'completed' },
          { name: 'overall-score', ns, value: '75' },
          { name: 'grade', ns, value: 'C' },
        ],
        findings: [
          {
            title: 'Check AC-2(1)',
            props: [{}, { name: 'answer', ns, value: 'partial' }],
            target: { 'target-id': 'ac-2.1_obj', status: { state: 'not-satisfied', reason: 'fail' } },
          },
          { target: { 'target-id': 'ac-3_obj', status: { state: 'satisfied', reason: 'pass' } } },
          { target: { 'target-id': 'ac-4_obj', status: { state: 'satisfied', reason: 'other' } } },
        ],
      },
    ],
  })
})

t.test('what discovery showed about an item is kept', async (t) => {
  const facts = {
    topic: 'inventory',
    level: 'partial',
    text: '3 of 5 known',
    atMs: Date.parse('2026-03-31T08:00:00Z'),
  } as const
  const categories = [
    category('All', 1, [item('A', 'yes', { facts, note: 'seen' }), item('B', 'unanswered', { facts })]),
  ]
  const { categories: read, skipped } = readAssessment(Buffer.from(exported(draft(), categories)))
  t.same(read, categories)
  t.same(skipped, [])
})

t.test('every item of every framework has its own control id', async (t) => {
  for (const id of FRAMEWORK_IDS) {
    const items = itemsOf(currentItems(id).categories)
    const controls = new Set(items.map((each) => controlIdOf(id, each.id).toLowerCase()))
    t.equal(controls.size, items.length, id)
    exported(draft({ frameworkId: id }), currentItems(id).categories)
  }
  const ids = ['a/b', 'a_b', 'a:b', 'a(b', 'a)b', 'a.b', 'a-b', '1', '_1'].map((id) => controlIdOf('hipaa', id))
  t.equal(new Set(ids).size, ids.length)
})

t.test('a name-based UUID is as in RFC 9562', async (t) => {
  t.match(uuidOf('a'), /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  t.equal(uuidOf('a'), uuidOf('a'))
  t.not(uuidOf('a'), uuidOf('b'))
})

interface Finding {
  readonly target: string
  readonly state: string
  readonly observations?: readonly string[]
}

/** A document as other programs write it. */
function foreign(findings: readonly Finding[], more: Readonly<Record<string, unknown>> = {}) {
  const observations = [
    { uuid: uuidOf('one'), description: 'Seen in the list\r\nof accounts', methods: ['EXAMINE'], collected: 'x' },
    { uuid: uuidOf('two'), description: 'Asked', methods: ['INTERVIEW'], collected: 'x' },
    { uuid: uuidOf('other'), description: 'Of nothing', methods: ['TEST'], collected: 'x' },
  ]
  return {
    'assessment-results': {
      uuid: uuidOf('foreign'),
      metadata: { title: 'Annual assessment', 'oscal-version': '1.1.2' },
      results: [
        {
          start: '2026-03-01T08:00:00Z',
          observations,
          findings: findings.map(({ target, state, observations = [] }) => ({
            title: 'Finding',
            target: { type: 'objective-id', 'target-id': target, status: { state } },
            'related-observations': observations.map((each) => ({ 'observation-uuid': uuidOf(each) })),
          })),
          ...more,
        },
      ],
    },
  }
}

const FOREIGN: Readonly<Record<string, readonly [findings: readonly Finding[], answers: Record<string, Answer>]>> = {
  'a control that is satisfied': [[{ target: 'ac-2', state: 'satisfied' }], { 'AC-2': 'yes' }],
  'an objective that is not satisfied': [[{ target: 'ac-2_obj.a-1', state: 'not-satisfied' }], { 'AC-2': 'no' }],
  'objectives of which one is not satisfied': [
    [
      { target: 'ac-2_obj.a', state: 'satisfied' },
      { target: 'ac-2_obj.b', state: 'not-satisfied' },
    ],
    { 'AC-2': 'partial' },
  ],
  'a statement, in upper case': [[{ target: 'AC-3_smt.a', state: 'satisfied' }], { 'AC-3': 'yes' }],
  'no known control': [[{ target: 'zz-9_obj', state: 'satisfied' }], {}],
}
for (const [name, [findings, answers]] of Object.entries(FOREIGN)) {
  t.test(`a foreign document with ${name} answers the items of these controls`, async (t) => {
    const bytes = Buffer.from(JSON.stringify(foreign(findings)))
    const { title, categories } = readAssessment(bytes, { frameworkId: 'nist-800-53' })
    const given = itemsOf(categories).filter(({ answer }) => answer !== 'unanswered')
    t.same(Object.fromEntries(given.map(({ id, answer }) => [id, answer])), answers)
    t.equal(title, 'Annual assessment')
    t.equal(itemsOf(categories).length, itemsOf(currentItems('nist-800-53').categories).length)
  })
}

t.test('observations become notes, and what is not understood is listed', async (t) => {
  const document = foreign(
    [
      { target: 'ac-2_obj.a', state: 'satisfied', observations: ['one', 'two'] },
      { target: 'zz-9_obj', state: 'satisfied', observations: ['two'] },
    ],
    { start: '2026-03-31T08:00:00+02:00' },
  )
  document['assessment-results'].results.push({ start: '2020-01-01T00:00:00Z', observations: [], findings: [] })
  const { categories, skipped } = readAssessment(Buffer.from(JSON.stringify(document)), { frameworkId: 'nist-800-53' })
  t.equal(itemsOf(categories).find(({ id }) => itemKey(id) === 'ac-2')?.note, 'Seen in the list\nof accounts\n\nAsked')
  t.match(skipped, [
    /^1 earlier results: only the last one is read$/,
    /^findings\[1\]: the assessment has no item for "zz-9_obj"$/,
    /^observations\[2\]: no finding of the assessment has it$/,
    /^AC-2: its observations are not a note of up to 2000 bytes/,
  ])
})

t.test('an edited export keeps the answers that can be read', async (t) => {
  const { categories } = content('hipaa', { A: 37, B: 'yes' })
  const text = exported(draft(), categories).replace('"value": "37"', '"value": "maybe"')
  const { categories: read, skipped } = readAssessment(Buffer.from(text))
  t.same(
    itemsOf(read).map(({ answer }) => answer),
    ['no', 'yes'],
  )
  t.match(skipped, [/^findings\[0\], answer: found "maybe", expected yes, .*; used its status$/])
})

t.test('a foreign document needs a framework, and an unknown one is an error', async (t) => {
  const bytes = Buffer.from(JSON.stringify(foreign([])))
  t.throws(() => readAssessment(bytes), { code: 'USAGE', message: /--framework is required/ })
  const text = exported(draft(), content('hipaa', { A: 'yes' }).categories)
  t.throws(() => readAssessment(Buffer.from(text), { frameworkId: 'soc-2' }), { code: 'USAGE', message: /is soc-2/ })
  t.throws(() => readAssessment(Buffer.from(text.replaceAll('"hipaa"', '"cis"'))), {
    code: 'ASSESSMENT_FILE',
    message: /found the framework "cis", expected one of ai-security/,
  })
})

const REFUSED: readonly { name: string; document: unknown; line: RegExp }[] = [
  {
    name: 'another OSCAL model',
    document: { 'assessment-results': [] },
    line: /^assessment-results: found a list of 0, expected object/,
  },
  {
    name: 'no result',
    document: { 'assessment-results': { metadata: { title: 'T' }, results: [] } },
    line: /results: found a list of 0, expected at least one result$/,
  },
  {
    name: 'an unknown state',
    document: foreign([{ target: 'ac-2', state: 'maybe' }]),
    line: /findings\[0\]\.target\.status\.state: found "maybe", expected satisfied or not-satisfied$/,
  },
  {
    name: 'a result without a time',
    document: foreign([], { start: 'yesterday' }),
    line: /results\[0\]\.start: found "yesterday", expected a time such as/,
  },
  {
    name: 'very many values',
    document: foreign([], { findings: Array(300_000).fill({}) }),
    line: /^found more than 200000 values in lists/,
  },
]
for (const { name, document, line } of REFUSED) {
  t.test(`OSCAL: ${name} is rejected`, async (t) => {
    const lines = faultsOf(document)
    t.match(lines[0], line)
    t.ok(lines.length <= ASSESSMENT_FAULTS_NAMED_MAX + 1)
  })
}

t.test('the largest assessment can be exported and imported', async (t) => {
  const longest = '"'.repeat(ASSESSMENT_LINE_BYTES_MAX)
  const items = Array.from({ length: ASSESSMENT_ITEMS_MAX }, (_, at) =>
    item(`A${at}${'('.repeat(59)}`, 'partial', {
      ...{ title: longest, question: longest, recommendation: longest },
      note: '"'.repeat(ASSESSMENT_NOTE_BYTES_MAX),
    }),
  )
  const text = writeAssessment(draft(), [category('C', 1, items)], 'oscal')
  t.ok(Buffer.byteLength(text) <= ASSESSMENT_FILE_BYTES_MAX, `${Buffer.byteLength(text)} bytes`)
  t.same(itemsOf(readAssessment(Buffer.from(text)).categories), items)
})

t.test('any change of a document gives a fault or an assessment, in linear time', async (t) => {
  const good = Buffer.from(exported(draft(), content('hipaa', { A: 'partial', B: 37 }).categories))
  const changes = fc.array(fc.tuple(fc.nat(good.length - 1), fc.integer({ min: 32, max: 126 })), { maxLength: 4 })
  fc.assert(
    fc.property(changes, (given) => {
      const copy = Buffer.from(good)
      for (const [at, byte] of given) copy[at] = byte
      try {
        t.ok(readAssessment(copy, { frameworkId: 'hipaa' }).categories.length > 0)
      } catch (error) {
        if (!(error instanceof Error && 'code' in error)) throw error
      }
    }),
    { numRuns: 500 },
  )
  const findings = Array.from({ length: 60_000 }, () => ({ target: 'ac-2', state: 'satisfied', observations: ['one'] }))
  const bytes = Buffer.from(JSON.stringify(foreign(findings)))
  t.ok(cpuMsOf(() => readAssessment(bytes, { frameworkId: 'nist-800-53' })) < 5000)
})
