import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { publishRecommendations } from '../../../engine/assess/publish.ts'
import { pointsOf } from '../../../engine/assess/score.ts'
import { ASSESSMENTS_MAX, RECOMMENDATIONS_MAX } from '../../../engine/limits.ts'
import type { Answer } from '../../../engine/store/assessments.ts'
import type { FrameworkId } from '../../../engine/store/framework.ts'
import { newUuid } from '../../../engine/store/keys.ts'
import type { Role } from '../../../engine/store/members.ts'
import type { Organization } from '../../../engine/store/organizations.ts'
import {
  RECOMMENDATION_STATUSES,
  type Recommendation,
  type RecommendationStatus,
} from '../../../engine/store/recommendations.ts'
import { category, content, draft, item, publishedList } from '../../support/assessments.ts'
import * as fc from '../../support/property.ts'
import { makeOrganization, NOON, openStore, type TestStore } from '../../support/store.ts'
import { cpuMsOf } from '../../support/wait.ts'

interface Opened extends TestStore {
  readonly administration: Administration
  readonly acme: Organization
}

function open(t: Parameters<typeof openStore>[0]): Opened {
  const opened = openStore(t)
  return {
    ...opened,
    administration: new Administration(opened.store, opened.clock),
    acme: makeOrganization(opened, 'Acme'),
  }
}

/** Completes an assessment of one category with these answers. */
function assess({ administration, acme }: Opened, framework: FrameworkId, answers: Record<string, Answer>) {
  return administration.assessments.import(acme, content(framework, answers), { complete: true })
}

t.test('an assessment goes from its draft to the API', async (t) => {
  const opened = open(t)
  const { store, clock, administration, acme } = opened
  const made = administration.assessments.import(acme, {
    frameworkId: 'nist-csf-2',
    title: 'Spring',
    categories: [
      category('Govern', 3, [item('G1', 'unanswered', { weight: 2, priority: 1 }), item('G2', 'unanswered')]),
      category('Detect', 1, [item('D1', 'unanswered', { priority: 2 })]),
    ],
  })
  t.equal(made.status, 'draft')
  const id = made.id.slice(0, 8)
  t.equal(administration.assessments.answer(acme, id, 'g1', 'partial', 'as seen').status, 'in_progress')
  administration.assessments.answer(acme, id.toUpperCase(), 'G1', 'no')
  t.equal(store.assessments.categories(made)[0]?.items[0]?.note, 'as seen', 'another answer keeps the note')
  administration.assessments.answer(acme, id, 'G2', 'yes')
  t.throws(() => administration.assessments.complete(acme, id), {
    code: 'CONFLICT',
    message: '1 item is unanswered: D1',
  })
  t.same(publishedList(store, acme.id, 'assessments'), [], 'what is in progress is not shown')
  administration.assessments.answer(acme, id, 'D1', 40)
  clock.add(61_000)
  const completed = administration.assessments.complete(acme, id)
  t.match(completed, { status: 'completed', result: { overallScore: 35, grade: 'F' } })
  t.same(publishedList(store, acme.id, 'scores'), [
    { framework_id: 'nist-csf-2', overall_score: 35, grade: 'F', completed_at: '2026-11-20T12:01:01Z' },
  ])
  t.same(publishedList(store, acme.id, 'assessments'), [
    {
      id: made.id,
      framework_id: 'nist-csf-2',
      status: 'completed',
      overall_score: 35,
      grade: 'F',
      started_at: '2026-11-20T12:00:00Z',
      completed_at: '2026-11-20T12:01:01Z',
      categories: [
        { name: 'Govern', weight: 3, score: 33 },
        { name: 'Detect', weight: 1, score: 40 },
      ],
    },
  ])
  const recommendations = publishedList(store, acme.id, 'recommendations')
  t.same(
    recommendations.map(({ id: _, ...shown }) => shown),
    [
      { title: 'Do G1.', priority: 1, status: 'open', framework_id: 'nist-csf-2', category: 'Govern' },
      { title: 'Do D1.', priority: 2, status: 'open', framework_id: 'nist-csf-2', category: 'Detect' },
    ],
  )
  t.match(recommendations[0], { id: /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/ })
  for (const change of [
    () => administration.assessments.answer(acme, id, 'G1', 'yes'),
    () => administration.assessments.complete(acme, id),
    () => administration.assessments.remove(acme, id),
  ])
    t.throws(change, { code: 'CONFLICT', message: /the assessment is completed: / })
})

t.test('a draft has the items of its framework and can be deleted', async (t) => {
  const { store, administration, acme } = open(t)
  const made = administration.assessments.create(acme, 'cis-v8')
  t.match(made, { title: 'CIS Controls v8', status: 'draft', startedAtMs: NOON, completedAtMs: 0 })
  const categories = store.assessments.categories(made)
  t.equal(categories.length, 18)
  t.ok(categories.every(({ items }) => items.every(({ answer, note }) => answer === 'unanswered' && note === '')))
  administration.assessments.remove(acme, made.id)
  t.same(store.assessments.ofOrganization(acme.id), [])
  t.throws(() => store.assessments.categories(made), /has no record/, 'both its records are gone')
})

t.test("each framework's score is that of the last completed assessment, in the specification's order", async (t) => {
  const opened = open(t)
  const { store, clock, acme } = opened
  assess(opened, 'pci-dss', { A: 'yes' })
  assess(opened, 'cis-v8', { A: 10 })
  // In the same millisecond, and with a clock that was set back. The assessment completed last
  // counts.
  assess(opened, 'cis-v8', { A: 20 })
  clock.add(-5000)
  assess(opened, 'cis-v8', { A: 30 })
  assess(opened, 'ai-security', { A: 75 })
  t.same(
    publishedList(store, acme.id, 'scores').map(({ framework_id, overall_score, grade }) => [
      framework_id,
      overall_score,
      grade,
    ]),
    [
      ['ai-security', 75, 'C'],
      ['cis-v8', 30, 'F'],
      ['pci-dss', 100, 'A'],
    ],
  )
  t.same(
    publishedList(store, acme.id, 'assessments').map(({ overall_score }) => overall_score),
    [75, 30, 20, 10, 100],
    'all completed ones, the last one first',
  )
})

t.test('recommendations are sorted by priority, then newest first, then by weight and item', async (t) => {
  const opened = open(t)
  const { store, clock, administration, acme } = opened
  for (const framework of ['hipaa', 'soc-2', 'cis-v8'] as const) {
    const items = [5, 1, 3, 1, 1].map((priority, at) => {
      const weight = at === 4 ? 3 : 1
      return item(`${framework}${at}`, 'no', { priority, weight })
    })
    administration.assessments.import(
      acme,
      { frameworkId: framework, title: 'T', categories: [category('C', 1, items)] },
      { complete: true },
    )
    clock.add(1000)
  }
  const shown = publishedList(store, acme.id, 'recommendations')
  t.same(
    shown.map(({ priority, framework_id }) => `${priority} ${framework_id}`),
    [1, 3, 5].flatMap((priority) =>
      ['cis-v8', 'soc-2', 'hipaa'].flatMap((framework) =>
        Array.from({ length: priority === 1 ? 3 : 1 }, () => `${priority} ${framework}`),
      ),
    ),
  )
  t.same(
    shown.slice(0, 3).map(({ title }) => title),
    ['Do cis-v84.', 'Do cis-v81.', 'Do cis-v83.'],
  )
})

t.test('a status change is visible at once and survives the next assessment as the rule defines', async (t) => {
  const opened = open(t)
  const { store, clock, administration, acme } = opened
  assess(opened, 'hipaa', { A: 'no', B: 'no', C: 'no' })
  const idOf = (title: string): string =>
    String(publishedList(store, acme.id, 'recommendations').find((each) => each['title'] === title)?.['id'])
  const ids = ['Do A.', 'Do B.', 'Do C.'].map(idOf)
  const statuses = (): unknown[] =>
    ids.map((id) => publishedList(store, acme.id, 'recommendations').find((each) => each['id'] === id)?.['status'])
  clock.add(1000)
  administration.recommendations.setStatus(acme, ids[0] ?? '', 'completed')
  administration.recommendations.setStatus(acme, ids[1]?.slice(0, 8) ?? '', 'dismissed', 'Accepted')
  t.same(statuses(), ['completed', 'dismissed', 'open'])
  assess(opened, 'hipaa', { A: 'partial', B: 'no', C: 'yes' })
  t.same(statuses(), ['open', 'dismissed', 'completed'], 'the same ids')
  assess(opened, 'soc-2', { A: 'yes', B: 'yes' })
  t.same(statuses(), ['open', 'dismissed', 'completed'], 'items of another framework are other items')
  t.ok(
    store.recommendations.ofOrganization(acme.id).every(({ createdAtMs }) => createdAtMs === NOON),
    'and the same time',
  )
})

t.test('any sequence of assessments and changes matches a simple model', async (t) => {
  const ITEMS = ['a', 'b', 'c']
  const anyAnswers = fc
    .tuple(...ITEMS.map(() => fc.constantFrom<Answer | 'absent'>('yes', 'no', 30, 100, 'not_applicable', 'absent')))
    .filter((answers) => answers.some((answer) => answer !== 'absent' && answer !== 'not_applicable'))
  const anyStep = fc.oneof(
    fc.record({ framework: fc.constantFrom<FrameworkId>('hipaa', 'soc-2'), answers: anyAnswers }),
    fc.record({ pick: fc.nat(), status: fc.constantFrom(...RECOMMENDATION_STATUSES) }),
  )
  const opened = openStore(t)
  let run = 0
  fc.assert(
    fc.property(fc.array(anyStep, { minLength: 1, maxLength: 12 }), (steps) => {
      const acme = makeOrganization(opened, `Run ${run++}`)
      const administration = new Administration(opened.store, opened.clock)
      const each: Opened = { ...opened, acme, administration }
      const model = new Map<string, RecommendationStatus>()
      const scores = new Map<string, number | undefined>()
      for (const step of steps) {
        opened.clock.add(1)
        if ('pick' in step) {
          const all = opened.store.recommendations.ofOrganization(acme.id)
          const picked = all[step.pick % Math.max(1, all.length)]
          if (picked === undefined) continue
          administration.recommendations.setStatus(acme, picked.id, step.status, 'Accepted')
          model.set(`${picked.frameworkId} ${picked.itemId}`, step.status)
          continue
        }
        const answers = ITEMS.flatMap((id, at) => {
          const answer = step.answers[at]
          return answer === undefined || answer === 'absent' ? [] : [[id, answer] as const]
        })
        const { result } = assess(each, step.framework, Object.fromEntries(answers))
        scores.set(step.framework, result?.overallScore)
        for (const [id, answer] of answers) {
          const key = `${step.framework} ${id}`
          const before = model.get(key)
          const lacking = (pointsOf(answer) ?? 100) < 100
          if (lacking && (before === undefined || before === 'completed')) model.set(key, 'open')
          if (!lacking && before !== undefined && before !== 'dismissed') model.set(key, 'completed')
        }
      }
      const stored = opened.store.recommendations.ofOrganization(acme.id)
      t.same(new Map(stored.map((one) => [`${one.frameworkId} ${one.itemId}`, one.status])), model)
      const shown = publishedList(opened.store, acme.id, 'recommendations')
      t.same(
        shown.map(({ id, status }) => `${id} ${status}`).sort(),
        stored.map((one) => `${one.id} ${one.status}`).sort(),
      )
      const shownScores = publishedList(opened.store, acme.id, 'scores')
      t.same(new Map(shownScores.map((one) => [one['framework_id'], one['overall_score']])), scores)
    }),
    { numRuns: 40 },
  )
})

t.test("one organization cannot see or change another's assessments", async (t) => {
  const opened = open(t)
  const { store, administration } = opened
  const other = makeOrganization(opened, 'Other')
  const { id } = assess(opened, 'hipaa', { A: 'no' })
  const draftId = administration.assessments.create(opened.acme, 'hipaa').id
  const recommendation = store.recommendations.ofOrganization(opened.acme.id)[0]?.id ?? ''
  for (const list of ['scores', 'assessments', 'recommendations'] as const)
    t.same(publishedList(store, other.id, list), [])
  for (const attempt of [
    () => administration.assessments.complete(other, id),
    () => administration.assessments.answer(other, draftId, 'A', 'yes'),
    () => administration.assessments.remove(other, draftId),
    () => administration.recommendations.setStatus(other, recommendation, 'completed'),
  ])
    t.throws(attempt, { code: 'NOT_FOUND' })
  t.same(store.auditLog.ofOrganization(other.id), [])
})

const MAY: readonly { role: Role; may: readonly string[] }[] = [
  { role: 'member', may: ['create', 'answer', 'status'] },
  { role: 'admin', may: ['create', 'answer', 'status', 'import', 'complete', 'remove'] },
]
for (const { role, may } of MAY) {
  t.test(`a member with the role ${role} has its permissions, and the audit log has each change`, async (t) => {
    const opened = open(t)
    const { store, clock, administration, acme } = opened
    assess(opened, 'hipaa', { A: 'no' })
    const [recommendation] = store.recommendations.ofOrganization(acme.id)
    const { id } = administration.assessments.import(acme, content('soc-2', { A: 'no' }))
    const another = administration.assessments.create(acme, 'soc-2').id
    administration.members.add(acme, 'owner', 'owner')
    administration.members.add(acme, 'bob', role)
    const bob = new Administration(store, clock, { kind: 'member', name: 'bob' })
    const attempts: Record<string, () => unknown> = {
      create: () => bob.assessments.create(acme, 'hipaa', 'Mine'),
      answer: () => bob.assessments.answer(acme, id, 'A', 'partial'),
      status: () => bob.recommendations.setStatus(acme, recommendation?.id ?? '', 'in_progress'),
      import: () => bob.assessments.import(acme, content('soc-2', { A: 'no' })),
      complete: () => bob.assessments.complete(acme, id),
      remove: () => bob.assessments.remove(acme, another),
    }
    for (const [what, attempt] of Object.entries(attempts)) {
      if (may.includes(what)) t.doesNotThrow(attempt, what)
      else t.throws(attempt, { code: 'NOT_ALLOWED' }, what)
    }
    const entries = store.auditLog.ofOrganization(acme.id).filter(({ actor }) => actor === 'member bob')
    t.equal(entries.length, may.length)
    t.match(entries, [
      { action: 'assessment.create', subject: 'Mine', details: { framework: 'hipaa', status: 'draft' } },
      { action: 'assessment.change', subject: 'Test', details: { id, item: 'A', answer: 'partial', was: 'no' } },
      {
        action: 'recommendation.status',
        subject: 'Do A.',
        details: { item: 'A', status: 'in_progress', was: 'open' },
      },
    ])
    if (role === 'admin') {
      t.match(entries[4], { action: 'assessment.complete', details: { id, overall_score: 50, grade: 'F' } })
    }
  })
}

const MISUSES: readonly {
  name: string
  attempt: (opened: Opened, id: string) => unknown
  code: string
  message: RegExp
}[] = [
  {
    name: 'an id of seven characters',
    attempt: ({ administration, acme }, id) => administration.assessments.complete(acme, id.slice(0, 7)),
    code: 'USAGE',
    message: /expected its id, or at least the first 8 characters of it/,
  },
  {
    name: 'an unknown id',
    attempt: ({ administration, acme }) => administration.assessments.complete(acme, '../../etc/passwd'),
    code: 'USAGE',
    message: /assessment "\.\.\/\.\.\/etc\/passwd": expected its id/,
  },
  {
    name: 'a nonexistent id',
    attempt: ({ administration, acme }) => administration.recommendations.setStatus(acme, '00000000', 'open'),
    code: 'NOT_FOUND',
    message: /no recommendation "00000000"/,
  },
  {
    name: 'an ambiguous id prefix',
    attempt: ({ store, administration, acme }) => {
      const two = [1, 2].map((at) => draft({ id: `00000000-0000-4000-8000-00000000000${at}`, organizationId: acme.id }))
      store.environment.write(() => {
        for (const each of two) store.assessments.put(each, [])
      })
      return administration.assessments.remove(acme, '00000000')
    },
    code: 'CONFLICT',
    message: /2 assessments begin with 00000000. Give more characters of the id/,
  },
  {
    name: 'an item that is not in the assessment',
    attempt: ({ administration, acme }, id) => administration.assessments.answer(acme, id, 'Z', 'yes'),
    code: 'NOT_FOUND',
    message: /no item "Z" in the assessment/,
  },
  {
    name: 'a title with a line break',
    attempt: ({ administration, acme }) => administration.assessments.create(acme, 'hipaa', 'a\nb'),
    code: 'USAGE',
    message: /--title: expected one line/,
  },
]
for (const { name, attempt, code, message } of MISUSES) {
  t.test(`${name} is rejected`, async (t) => {
    const opened = open(t)
    const { id } = opened.administration.assessments.import(opened.acme, content('hipaa', { A: 'no' }))
    t.throws(() => attempt(opened, id), { code, message })
  })
}

t.test('an import that cannot be completed stores nothing', async (t) => {
  const { store, administration, acme } = open(t)
  const unanswered = content('hipaa', { A: 'no', B: 'unanswered' })
  t.throws(() => administration.assessments.import(acme, unanswered, { complete: true }), { code: 'CONFLICT' })
  t.same(store.assessments.ofOrganization(acme.id), [])
  t.same(store.recommendations.ofOrganization(acme.id), [])
  t.same(store.auditLog.ofOrganization(acme.id), [])
})

t.test('assessments above the limit are rejected', async (t) => {
  const { store, administration, acme } = open(t)
  store.environment.write(() => {
    for (let count = 0; count < ASSESSMENTS_MAX - 1; count++) {
      store.assessments.put(draft({ id: newUuid(), organizationId: acme.id }), [])
    }
  })
  const { id } = administration.assessments.create(acme, 'hipaa')
  const again = (): unknown => administration.assessments.import(acme, content('hipaa', { A: 'no' }))
  t.throws(again, { code: 'CONFLICT', message: /has 1000 assessments already/ })
  administration.assessments.remove(acme, id)
  t.doesNotThrow(again)
})

function fill({ store, acme }: Opened, count: number): Recommendation[] {
  const all = Array.from(
    { length: count },
    (_, at): Recommendation => ({
      id: newUuid(),
      organizationId: acme.id,
      frameworkId: 'soc-2',
      itemId: `I${at}`,
      title: `Do ${at}.`,
      priority: (at % 5) + 1,
      status: 'open',
      category: 'All',
      createdAtMs: at,
      statusChangedAtMs: at,
      owner: '',
    }),
  )
  store.environment.write(() => {
    for (const each of all) store.recommendations.put(each)
  })
  return all
}

t.test('at the limit the oldest completed recommendations are removed, and open ones are never lost', async (t) => {
  const opened = open(t)
  const { store, administration, acme } = opened
  const [first, second, third] = fill(opened, RECOMMENDATIONS_MAX)
  t.throws(() => assess(opened, 'hipaa', { A: 'no' }), {
    code: 'CONFLICT',
    message: /10001 recommendations .*, more than the maximum of 10000/,
  })
  t.same(store.assessments.ofOrganization(acme.id), [], 'and nothing was stored')
  for (const each of [second, first]) {
    administration.recommendations.setStatus(acme, each?.id ?? '', 'completed')
    opened.clock.add(1000)
  }
  assess(opened, 'hipaa', { A: 'no' })
  const left = new Set(store.recommendations.ofOrganization(acme.id).map(({ id }) => id))
  t.equal(left.size, RECOMMENDATIONS_MAX)
  t.same(
    [first, second, third].map((each) => left.has(each?.id ?? '')),
    [true, false, true],
  )
})

t.test('publishing takes time linear in the number of recommendations', async (t) => {
  const opened = open(t)
  const { store, acme } = opened
  fill(opened, RECOMMENDATIONS_MAX)
  const tookMs = cpuMsOf(() => store.environment.write(() => publishRecommendations(store, acme.id)))
  t.ok(tookMs < 2000, `${Math.round(tookMs)} ms`)
  const shown = publishedList(store, acme.id, 'recommendations')
  t.equal(shown.length, RECOMMENDATIONS_MAX)
  t.match(
    [shown[0], shown.at(-1)],
    [
      { priority: 1, title: 'Do 9995.' },
      { priority: 5, title: 'Do 4.' },
    ],
  )
})
