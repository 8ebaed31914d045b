import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Validator } from '@seriousme/openapi-schema-validator'
import t from 'tap'
import { ANSWERS, type AnswerName } from '../../api/answers.ts'
import { openApiDocument } from '../../api/openapi.ts'
import { EXAMPLES } from '../../api/openapi-examples.ts'
import { refusals } from '../../api/openapi-responses.ts'
import { ROUTES } from '../../api/routes.ts'
import { schemaErrors } from '../support/contract.ts'

const DOCUMENT = openApiDocument(ROUTES, 'sales@vendor.example')

/** All rules of the linter's strict set are on, plus these. No rule of the strict set is off. */
const FURTHER_RULES = [
  ...['info-contact', 'operation-description', 'operation-tag-defined', 'operation-singular-tag'],
  ...[
    'parameter-description',
    'path-params-defined',
    'no-http-verbs-in-paths',
    'component-name-unique',
    'spec-strict-refs',
  ],
]

async function lint(document: object): Promise<string[]> {
  const config = await createConfig({
    extends: ['recommended-strict'],
    rules: Object.fromEntries(FURTHER_RULES.map((rule) => [rule, 'error' as const])),
  })
  const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: '/openapi.json', config })
  return problems.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer}: ${message}`)
}

t.test('a public linter reports neither errors nor warnings', async (t) => {
  t.same(await lint(DOCUMENT), [])
  const { license: _, ...info } = DOCUMENT['info'] as { license: unknown }
  t.match(await lint({ ...DOCUMENT, info }), [/^info-license /], 'the linter reports a missing license')
})

t.test('the document conforms to the JSON Schema of OpenAPI 3.1', async (t) => {
  const check = async (document: object) => new Validator().validate(JSON.parse(JSON.stringify(document)))
  t.match(await check(DOCUMENT), { valid: true })
  t.match(await check({ ...DOCUMENT, paths: { 'no-slash': {} } }), { valid: false })
  t.match(await check({ ...DOCUMENT, servers: 'here' }), { valid: false })
})

t.test('each example conforms to its schema, in the document and in zod', async (t) => {
  t.same(Object.keys(EXAMPLES).sort(), Object.keys(ROUTES).sort())
  for (const path of Object.keys(ROUTES)) {
    const name = answerOf(path)
    const examples = Object.values(EXAMPLES[path] ?? {})
    t.ok(examples.length >= 2, `${path}: one with data, one without`)
    for (const { summary, value } of examples) {
      t.same(schemaErrors(DOCUMENT, name, value), [], `${path}: ${summary}`)
      t.equal(ANSWERS[name].safeParse(value).success, true, `${path}: ${summary}`)
    }
  }
  for (const { message } of refusals('sales@vendor.example')) {
    t.same(schemaErrors(DOCUMENT, 'Error', { error: message }), [])
  }
})

t.test('both schemas reject invalid answers', async (t) => {
  const [score] = exampleOf('/api/v1/scores', 'scores')['scores'] as object[]
  const [platform] = exampleOf('/api/v1/discovery', 'scan')['platforms'] as { metadata: object }[]
  const [recommendation] = exampleOf('/api/v1/recommendations', 'recommendations')['recommendations'] as object[]
  const rows: { name: string; answer: AnswerName; value: unknown; fits?: boolean }[] = [
    { name: 'an unknown framework', answer: 'Score', value: { ...score, framework_id: 'gdpr' } },
    { name: 'a grade E', answer: 'Score', value: { ...score, grade: 'E' } },
    { name: 'a score of 101', answer: 'Score', value: { ...score, overall_score: 101 } },
    { name: 'a score of 71.5', answer: 'Score', value: { ...score, overall_score: 71.5 } },
    {
      name: 'a time with milliseconds',
      answer: 'Score',
      value: { ...score, completed_at: '2026-11-20T12:00:00.000Z' },
    },
    { name: 'a time with an offset', answer: 'Score', value: { ...score, completed_at: '2026-11-20T12:00:00+01:00' } },
    { name: 'a month 13', answer: 'Score', value: { ...score, completed_at: '2026-13-20T12:00:00Z' } },
    { name: 'an additional field', answer: 'Score', value: { ...score, organization_id: 'x' } },
    { name: 'a priority 0', answer: 'Recommendation', value: { ...recommendation, priority: 0 } },
    { name: 'a priority 6', answer: 'Recommendation', value: { ...recommendation, priority: 6 } },
    {
      name: 'an unknown status of an assessment',
      answer: 'Recommendation',
      value: { ...recommendation, status: 'draft' },
    },
    { name: 'an ID that is not a UUID', answer: 'Recommendation', value: { ...recommendation, id: '12' } },
    { name: 'a confidence above 1', answer: 'Platform', value: { ...platform, confidence: 1.01 } },
    { name: 'an unknown type', answer: 'Platform', value: { ...platform, platform_type: 'toaster' } },
    { name: 'no metadata', answer: 'Platform', value: { ...platform, metadata: undefined } },
    { name: 'metadata without a vendor', answer: 'Platform', value: { ...platform, metadata: { category: 'x' } } },
    {
      name: 'metadata of a later version',
      answer: 'Platform',
      value: { ...platform, metadata: { ...platform?.metadata, later: { more: 1 } } },
      fits: true,
    },
    { name: 'a list that is not a list', answer: 'Scores', value: { scores: null } },
    { name: 'a missing scan', answer: 'Discovery', value: { platforms: [] } },
    { name: 'an error without text', answer: 'Error', value: { error: '' } },
  ]
  for (const { name, answer, value, fits = false } of rows) {
    const sent: unknown = JSON.parse(JSON.stringify(value))
    t.equal(schemaErrors(DOCUMENT, answer, sent).length === 0, fits, `${name}: in the document`)
    t.equal(ANSWERS[answer].safeParse(sent).success, fits, `${name}: in zod`)
  }
})

t.test('a contact that is not an address becomes a name', async (t) => {
  for (const [contact, reported] of [
    ['sales@vendor.example', { name: 'Sales', email: 'sales@vendor.example' }],
    ['https://vendor.example/sales', { name: 'https://vendor.example/sales' }],
  ] as const) {
    const document = openApiDocument(ROUTES, contact)
    t.same((document['info'] as { contact: unknown }).contact, reported)
    t.same(await lint(document), [])
  }
})

t.test('the check detects an undocumented route', async (t) => {
  t.throws(() => openApiDocument({ '/api/v1/more': { scope: 'scores:read', paged: false } }, 'x'), /\/api\/v1\/more/)
})

function exampleOf(path: string, example: string): Readonly<Record<string, unknown>> {
  return EXAMPLES[path]?.[example]?.value ?? {}
}

/** The schema of a path's answer, by its name in the document. */
function answerOf(path: string): AnswerName {
  const item = (DOCUMENT['paths'] as Record<string, { get: { tags: string[] } }>)[path]
  return item?.get.tags[0] as AnswerName
}
