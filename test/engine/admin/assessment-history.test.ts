import t from 'tap'
import { DAY_MS } from '../../../engine/kernel/process/clock.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { content, publishedList } from '../../support/assessments.ts'
import { NOON } from '../../support/store.ts'

t.test('an assessment of the past takes its place in the history, and changes no recommendation', async (t) => {
  const { store, clock, organization: acme, administration } = acmeSite(t)
  const { assessments } = administration
  const complete = (score: number, daysAgo?: number) =>
    assessments.import(acme, content('soc-2', { A: score }), {
      complete: true,
      completedAtMs: daysAgo === undefined ? undefined : NOON - daysAgo * DAY_MS,
    })
  const scores = () => publishedList(store, acme.id, 'assessments').map(({ overall_score }) => overall_score)
  const statuses = () => publishedList(store, acme.id, 'recommendations').map(({ status }) => status)
  complete(50)
  t.same(statuses(), ['open'])
  const old = complete(100, 365)
  t.match(old, { startedAtMs: NOON - 365 * DAY_MS, completedAtMs: NOON - 365 * DAY_MS })
  complete(20, 700)
  complete(70, 100)
  t.same(scores(), [50, 70, 100, 20], 'the latest first')
  t.match(publishedList(store, acme.id, 'scores'), [{ overall_score: 50, completed_at: '2026-11-20T12:00:00Z' }])
  t.same(statuses(), ['open'], 'the answer of the latest one counts')
  clock.add(1000)
  complete(100)
  t.same(scores(), [100, 50, 70, 100, 20])
  t.same(statuses(), ['completed'])

  // Of another framework nothing is later, so its recommendations are made.
  assessments.import(acme, content('hipaa', { A: 0 }), { complete: true, completedAtMs: NOON - DAY_MS })
  t.same(statuses().sort(), ['completed', 'open'])
})

t.test('a file fills an open assessment', async (t) => {
  const { store, organization: acme, administration } = acmeSite(t)
  const { assessments } = administration
  const draft = assessments.import(acme, content('soc-2', { A: 'unanswered', B: 'unanswered', C: 'unanswered' }))
  assessments.answer(acme, draft.id, 'C', 'no', 'as seen')
  const filled = assessments.fill(acme, draft.id, content('soc-2', { a: 'yes', C: 'unanswered' }), { title: 'Autumn' })
  t.match(filled, { id: draft.id, status: 'in_progress', title: 'Autumn' })
  const answers = () =>
    store.assessments.categories(draft).flatMap(({ items }) => items.map(({ id, answer, note }) => [id, answer, note]))
  t.same(answers(), [
    ['A', 'yes', ''],
    ['B', 'unanswered', ''],
    ['C', 'no', 'as seen'],
  ])
  const before = answers()
  for (const [file, message] of [
    [content('hipaa', { A: 'no' }), /is of soc-2, the file is of hipaa/],
    [content('soc-2', { A: 'no', X: 'no', Y: 'no' }), /lacks 2 of the file's items: X, Y$/],
  ] as const) {
    t.throws(() => assessments.fill(acme, draft.id, file), { code: 'CONFLICT', message })
  }
  t.throws(() => assessments.fill(acme, draft.id, content('soc-2', { A: 'no' }), { complete: true }), {
    code: 'CONFLICT',
    message: '1 item is unanswered: B',
  })
  t.same(answers(), before, 'a refusal changes nothing')
  const done = assessments.fill(acme, draft.id, content('soc-2', { B: 'no' }), { complete: true })
  t.match(done, { status: 'completed', title: 'Autumn' })
  t.throws(() => assessments.fill(acme, draft.id, content('soc-2', { B: 'yes' })), { message: /cannot change/ })
})
