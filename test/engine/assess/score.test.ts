import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { GRADES, gradeOf, resultOf } from '../../../engine/assess/grade.ts'
import { currentItems } from '../../../engine/assess/items.ts'
import { recommendationsAfter } from '../../../engine/assess/recommendation.ts'
import { scaleOf, scoreOf } from '../../../engine/assess/score.ts'
import { readAssessment } from '../../../engine/assess/transfer.ts'
import type { Answer, AssessmentCategory } from '../../../engine/store/assessments.ts'
import type { FrameworkId } from '../../../engine/store/framework.ts'
import { category, draft, item } from '../../support/assessments.ts'
import { REPOSITORY } from '../../support/programs.ts'
import * as fc from '../../support/property.ts'

/** Categories by weight, with weight and answer of each item. */
function assessed(
  ...given: readonly (readonly [number, readonly (readonly [number, Answer])[]])[]
): AssessmentCategory[] {
  return given.map(([weight, items], at) =>
    category(
      `C${at}`,
      weight,
      items.map(([itemWeight, answer], index) => item(`${at}.${index}`, answer, { weight: itemWeight })),
    ),
  )
}

const SCORES: Readonly<
  Record<string, readonly [given: AssessmentCategory[], overall: number | null, categories: (number | null)[]]>
> = {
  'everything is implemented': [assessed([1, [[1, 'yes']]]), 100, [100]],
  'nothing is implemented': [assessed([1, [[1, 'no']]]), 0, [0]],
  'half is implemented': [assessed([1, [[1, 'partial']]]), 50, [50]],
  'a number counts as it is': [assessed([1, [[1, 37]]]), 37, [37]],
  'items have weights within their category': [
    assessed([
      1,
      [
        [3, 'yes'],
        [1, 'no'],
      ],
    ]),
    75,
    [75],
  ],
  'categories have weights regardless of their number of items': [
    assessed(
      [3, [[1, 'yes']]],
      [
        1,
        [
          [1, 'no'],
          [1, 'no'],
          [1, 'no'],
        ],
      ],
    ),
    75,
    [100, 0],
  ],
  'items that are not applicable or unanswered are left out': [
    assessed([
      1,
      [
        [1, 'yes'],
        [9, 'not_applicable'],
        [9, 'unanswered'],
      ],
    ]),
    100,
    [100],
  ],
  'a category without applicable items is left out': [
    assessed([1, [[1, 80]]], [100, [[1, 'not_applicable']]]),
    80,
    [80, null],
  ],
  'nothing is applicable': [assessed([1, [[1, 'not_applicable']]], [1, [[1, 'unanswered']]]), null, [null, null]],
  '89.5 exactly becomes 90': [assessed([1, [[1, 89]]], [1, [[1, 90]]]), 90, [89, 90]],
  'just below a half is rounded down: 89.4995': [assessed([500.5, [[1, 89]]], [499.5, [[1, 90]]]), 89, [89, 90]],
  'weights that give exactly 89.5, which is 89.49999999999999 in binary': [
    assessed([0.3, [[1, 88]]], [0.1, [[1, 88]]], [0.2, [[1, 91]]], [0.6, [[1, 90]]]),
    90,
    [88, 88, 91, 90],
  ],
  'the overall score uses the unrounded categories: 49.5 and 49, not 50 and 49': [
    assessed(
      [
        1,
        [
          [1, 49],
          [1, 50],
        ],
      ],
      [1, [[1, 49]]],
    ),
    49,
    [50, 49],
  ],
}
for (const [name, [given, overall, categories]] of Object.entries(SCORES)) {
  t.test(name, async (t) => {
    const score = scoreOf(given)
    t.equal(score.overallScore, overall)
    t.same(
      score.categories.map((each) => each.score),
      categories,
    )
  })
}

t.test('a category that mostly does not apply loses its weight in proportion', async (t) => {
  const mostly = assessed(
    [1, [[1, 'no']]],
    [
      1,
      [
        [1, 'yes'],
        [9, 'not_applicable'],
      ],
    ],
  )
  t.equal(scoreOf(mostly).overallScore, 9, '1 x 0 and 0.1 x 100')
  t.same(
    scoreOf(mostly).categories.map(({ weight }) => weight),
    [1, 0.1],
  )
})

const MET: readonly (readonly [FrameworkId, Answer, number])[] = [
  ['pci-dss', 'partial', 0],
  ['hipaa', 'partial', 0],
  ['pci-dss', 99, 0],
  ['pci-dss', 100, 100],
  ['hipaa', 'yes', 100],
  ['iso-27001', 'partial', 50],
]
for (const [framework, answer, expected] of MET) {
  t.test(`${framework}: ${answer} counts as ${expected}`, async (t) => {
    t.equal(scoreOf(assessed([1, [[1, answer]]]), scaleOf(framework)).overallScore, expected)
  })
}

/** All items `yes` and without a note, except for these. */
const CAPPED: readonly (readonly [FrameworkId, Readonly<Record<string, Answer>>, string, string?])[] = [
  ['ai-security', {}, 'A'],
  ['ai-security', { 'PRO-1': 'no', 'PRO-2': 'no', 'PRO-3': 'no', 'PRO-4': 'no', 'PRO-5': 'no', 'PRO-6': 'no' }, 'D'],
  ['ai-security', { 'INV-3': 'no' }, 'D'],
  ['ai-security', { 'INV-3': 'partial' }, 'A'],
  ['ai-security', { 'INV-3': 'not_applicable' }, 'D'],
  ['ai-security', { 'INV-3': 'not_applicable' }, 'A', 'No network of our own'],
  ['ai-security', { 'INV-3': 'unanswered', 'INV-4': 'not_applicable' }, 'A'],
  ['nist-csf-2', { 'PR.AA-03': 'no' }, 'D'],
  ['nist-800-53', { 'IA-2(1)': 0 }, 'D'],
  ['cis-v8', { '6.5': 'no' }, 'D'],
  ['iso-27001', { 'A.8.5': 'no' }, 'D'],
  ['hipaa', { '164.312(d)': 'partial' }, 'D'],
  ['pci-dss', { '8.4.1': 'partial' }, 'D'],
  ['soc-2', { 'CC6.1': 'no' }, 'D'],
]
for (const [framework, others, expected, note = ''] of CAPPED) {
  t.test(`${framework}, ${JSON.stringify(others)} ${note}: grade ${expected}`, async (t) => {
    const categories = currentItems(framework).categories.map(({ items, ...each }) => ({
      ...each,
      items: items.map((one) => ({ ...one, answer: others[one.id] ?? ('yes' as const), note })),
    }))
    const result = resultOf(framework, categories, Date.parse('2026-12-01'))
    t.equal(result?.grade, expected)
    t.equal(gradeOf(result?.overallScore ?? 0) <= 'B', true, 'without the must-pass items')
  })
}

t.test('an item that is not in force yet does not limit the grade', async (t) => {
  const categories = currentItems('ai-security').categories.map(({ items, ...each }) => ({
    ...each,
    items: items.map((one) => ({ ...one, answer: one.id === 'PRO-7' ? ('no' as const) : ('yes' as const) })),
  }))
  t.equal(resultOf('ai-security', categories, Date.parse('2026-12-01'))?.grade, 'A')
  t.equal(resultOf('ai-security', categories, Date.parse('2026-12-02'))?.grade, 'D')
})

t.test('the code computes the worked example in docs/reference/assessments.md', async (t) => {
  const page = readFileSync(join(REPOSITORY, 'docs/reference/assessments.md'), 'utf8')
  const csv = /```csv\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
  const { categories } = readAssessment(Buffer.from(csv), { frameworkId: 'nist-csf-2' })
  t.same(scoreOf(categories), {
    overallScore: 69,
    categories: [
      { name: 'Govern', weight: 3, score: 83 },
      { name: 'Detect', weight: 1.333, score: 37 },
      { name: 'Recover', weight: 0, score: null },
    ],
  })
  t.equal(gradeOf(69), 'D')
  t.match(page, /\(3 x 83\.33 \+ 1\.33 x 37\) \/ 4\.33 = 69\.1, rounded\s+69, grade D/)
  t.match(page, 'Grades: A from 90, B from 80, C from 70, D from 60, F below')
  const recommended = recommendationsAfter(draft(), categories, new Map(), 1)
  const [output = ''] = /recommendation list --org Acme\n```\n\n<!-- printed -->[\s\S]*?<!-- end -->/.exec(page) ?? []
  for (const { title } of recommended) t.ok(output.includes(title), title)
  t.equal(recommended.length, 2)
  const json = /```json\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
  const { question, facts, work, ...item } = readAssessment(Buffer.from(json)).categories[0]?.items[0] ?? {}
  t.same(item, categories[0]?.items[0], 'and the JSON is the same item, with its question')
  t.match(question, /\?$/)
  t.match([facts, work], [{ topic: 'inventory', level: 'partial' }, { owner: 'grace@acme.example' }])
})

const anyAnswer: fc.Arbitrary<Answer> = fc.oneof(
  fc.constantFrom<Answer>('yes', 'partial', 'no', 'not_applicable', 'unanswered'),
  fc.integer({ min: 0, max: 100 }),
)
const anyWeight = fc.integer({ min: 1, max: 1_000_000 }).map((thousandths) => thousandths / 1000)
const anyCategories = fc
  .array(fc.tuple(anyWeight, fc.array(fc.tuple(anyWeight, anyAnswer), { minLength: 1, maxLength: 6 })), {
    minLength: 1,
    maxLength: 6,
  })
  .map((given) => assessed(...given))

t.test('any answers give the reference score, within floating-point precision', async () => {
  const points = (answer: Answer): number =>
    typeof answer === 'number' ? answer : answer === 'yes' ? 100 : answer === 'partial' ? 50 : answer === 'no' ? 0 : NaN
  fc.assert(
    fc.property(anyCategories, (categories) => {
      let sum = 0
      let weights = 0
      for (const { weight, items } of categories) {
        const counted = items.filter(({ answer }) => !Number.isNaN(points(answer)))
        if (counted.length === 0) continue
        const total = counted.reduce((all, each) => all + each.weight, 0)
        const weightOf = (some: typeof items) => some.reduce((all, each) => all + each.weight, 0)
        const applicable = items.filter(({ answer }) => answer !== 'not_applicable')
        const proportional = (weight * weightOf(applicable)) / weightOf(items)
        sum += (proportional * counted.reduce((all, each) => all + each.weight * points(each.answer), 0)) / total
        weights += proportional
      }
      const { overallScore } = scoreOf(categories)
      if (weights === 0) return overallScore === null
      return overallScore !== null && Math.abs(overallScore - sum / weights) <= 0.5 + 1e-9
    }),
  )
})

t.test('doubling the weights or improving an answer never lowers a score', async (t) => {
  fc.assert(
    fc.property(anyCategories, (categories) => {
      const score = scoreOf(categories).overallScore
      const withHigherWeight = categories.map((each) => ({ ...each, weight: each.weight * 2 }))
      t.equal(scoreOf(withHigherWeight).overallScore, score, 'only the ratio of the weights matters')
      const better = categories.map((each) => ({
        ...each,
        items: each.items.map((one) =>
          one.answer === 'no' || one.answer === 0 ? { ...one, answer: 'yes' as const } : one,
        ),
      }))
      const after = scoreOf(better).overallScore
      return (score === null && after === null) || (score !== null && after !== null && after >= score)
    }),
  )
})

t.test('each whole score has one grade', async (t) => {
  const rows = [
    [100, 'A'],
    [90, 'A'],
    [89, 'B'],
    [80, 'B'],
    [79, 'C'],
    [70, 'C'],
    [69, 'D'],
    [60, 'D'],
    [59, 'F'],
    [0, 'F'],
  ] as const
  for (const [score, grade] of rows) t.equal(gradeOf(score), grade, `${score}`)
  const inOrder = Array.from({ length: 101 }, (_, score) => GRADES.indexOf(gradeOf(100 - score)))
  t.same(
    inOrder,
    [...inOrder].sort((a, b) => a - b),
    'a higher score never has a lower grade',
  )
})
