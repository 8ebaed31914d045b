import t from 'tap'
import { compareAssessments, scoreChanges, trendOf } from '../../../engine/assess/compare.ts'
import { DAY_MS } from '../../../engine/kernel/process/clock.ts'
import type { AssessmentCategory } from '../../../engine/store/assessments.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { category, content, item } from '../../support/assessments.ts'
import { NOON } from '../../support/store.ts'

interface Case {
  readonly name: string
  readonly before: readonly AssessmentCategory[]
  readonly after: readonly AssessmentCategory[]
  readonly scores: readonly [before: number | null, after: number | null]
  /** Item, answers and effect. */
  readonly changed: readonly (readonly unknown[])[]
  readonly unchanged: number
  readonly other: number
}

const CASES: readonly Case[] = [
  {
    name: 'nothing changed',
    before: [category('All', 1, [item('A', 'yes'), item('B', 'no')])],
    after: [category('All', 1, [item('A', 'yes'), item('B', 'no')])],
    scores: [50, 50],
    changed: [],
    unchanged: 2,
    other: 0,
  },
  {
    name: 'weights of items and categories count',
    before: [
      category('One', 3, [item('A', 'no', { weight: 3 }), item('B', 'no')]),
      category('Two', 1, [item('C', 'yes')]),
    ],
    after: [
      category('One', 3, [item('A', 'yes', { weight: 3 }), item('B', 'partial')]),
      category('Two', 1, [item('C', 'no')]),
    ],
    // 3/4 x 3/4 x 100 = 56.25, 3/4 x 1/4 x 50 = 9.375, 1/4 x -100 = -25.
    scores: [25, 66],
    changed: [
      ['A', 'no', 'yes', 56.3],
      ['C', 'yes', 'no', -25],
      ['B', 'no', 'partial', 9.4],
    ],
    unchanged: 0,
    other: 0,
  },
  {
    name: 'an item that no longer applies, and ids in another case',
    before: [category('All', 1, [item('a', 'yes'), item('B', 'no')])],
    after: [category('All', 1, [item('A', 'yes'), item('B', 'not_applicable')])],
    scores: [50, 100],
    changed: [['B', 'no', 'not_applicable', undefined]],
    unchanged: 1,
    other: 50,
  },
  {
    name: 'added and removed items',
    before: [category('All', 1, [item('A', 'yes'), item('B', 'yes')])],
    after: [category('All', 1, [item('A', 'partial'), item('C', 'no')])],
    // A: 1/2 x -50; the rest of -75 is C instead of B.
    scores: [100, 25],
    changed: [
      ['A', 'yes', 'partial', -25],
      ['C', undefined, 'no', undefined],
      ['B', 'yes', undefined, undefined],
    ],
    unchanged: 0,
    other: -50,
  },
  {
    name: 'nothing is answered yet',
    before: [category('All', 1, [item('A', 'yes')])],
    after: [category('All', 1, [item('A', 'unanswered')])],
    scores: [100, null],
    changed: [['A', 'yes', 'unanswered', undefined]],
    unchanged: 0,
    other: -100,
  },
]

for (const { name, before, after, scores, changed, unchanged, other } of CASES) {
  t.test(`a comparison explains the change of the score: ${name}`, async (t) => {
    const found = compareAssessments(before, after)
    t.same([found.scoreBefore, found.score], scores)
    t.same(
      found.items.map(({ itemId, was, now, effect }) => [itemId, was, now, effect]),
      changed,
    )
    t.equal(found.unchanged, unchanged)
    t.equal(found.otherEffects, other)
  })
}

t.test('trends and changes are of one framework, in the order of completion', async (t) => {
  const opened = acmeSite(t)
  const { organization: acme, administration } = opened
  const { assessments } = administration
  const complete = (framework: 'cis-v8' | 'hipaa', answer: number, completedAtMs: number) =>
    assessments.import(acme, content(framework, { '1.1': answer }), { complete: true, completedAtMs }).id
  const first = complete('cis-v8', 40, NOON - 20 * DAY_MS)
  const last = complete('cis-v8', 50, NOON - 5 * DAY_MS)
  const other = complete('hipaa', 90, NOON - 10 * DAY_MS)
  const between = complete('cis-v8', 70, NOON - 10 * DAY_MS)
  const completed = opened.store.assessments.completed(acme.id)
  t.same(trendOf(completed, 'cis-v8'), [
    { atMs: NOON - 20 * DAY_MS, score: 40 },
    { atMs: NOON - 10 * DAY_MS, score: 70 },
    { atMs: NOON - 5 * DAY_MS, score: 50 },
  ])
  t.same(trendOf(completed, 'soc-2'), [])
  const changes = scoreChanges(completed)
  t.same(
    [first, between, last, other].map((id) => changes.get(id)),
    [undefined, 30, -20, undefined],
  )
})
