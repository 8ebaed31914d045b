import t from 'tap'
import { recommendationsAfter } from '../../../engine/assess/recommendation.ts'
import type { Answer } from '../../../engine/store/assessments.ts'
import type { Recommendation, RecommendationStatus } from '../../../engine/store/recommendations.ts'
import { category, draft, item } from '../../support/assessments.ts'

const KNOWN: Recommendation = {
  id: 'known',
  organizationId: draft().organizationId,
  frameworkId: 'hipaa',
  itemId: 'I',
  title: 'Do it as of old.',
  priority: 5,
  status: 'open',
  category: 'Old',
  createdAtMs: 10,
  statusChangedAtMs: 20,
  owner: '',
}

function after(answer: Answer, before?: RecommendationStatus): Recommendation[] {
  const categories = [category('New', 1, [item('i', answer, { priority: 2, recommendation: 'Do it as of now.' })])]
  const known = new Map(before === undefined ? [] : [['i', { ...KNOWN, status: before }]])
  return recommendationsAfter(draft(), categories, known, 99)
}

/**
 * The effect of a new assessment on a recommendation's status; undefined if the status does not
 * change.
 */
const AGAIN: readonly { before: RecommendationStatus; answer: Answer; status: RecommendationStatus | undefined }[] = [
  { before: 'open', answer: 'no', status: 'open' },
  { before: 'in_progress', answer: 'partial', status: 'in_progress' },
  { before: 'completed', answer: 99, status: 'open' },
  { before: 'dismissed', answer: 'no', status: 'dismissed' },
  { before: 'open', answer: 'yes', status: 'completed' },
  { before: 'in_progress', answer: 100, status: 'completed' },
  { before: 'open', answer: 'not_applicable', status: 'completed' },
  { before: 'completed', answer: 'yes', status: undefined },
  { before: 'dismissed', answer: 'yes', status: undefined },
  { before: 'dismissed', answer: 'not_applicable', status: undefined },
]
for (const { before, answer, status } of AGAIN) {
  t.test(`${before} and answered ${answer} again: ${status ?? 'unchanged'}`, async (t) => {
    const [found, ...others] = after(answer, before)
    t.same(others, [])
    if (status === undefined) {
      t.equal(found, undefined)
      return
    }
    t.match(found, { id: 'known', createdAtMs: 10, status, statusChangedAtMs: status === before ? 20 : 99 })
    const lacking = status !== 'completed'
    const texts = { title: 'Do it as of now.', priority: 2, category: 'New' }
    t.match(found, lacking ? texts : { title: KNOWN.title, priority: 5, category: 'Old' })
  })
}

t.test('an item answered below 100 becomes a recommendation', async (t) => {
  for (const answer of ['no', 'partial', 0, 99] as const) {
    const [found] = after(answer)
    t.match(found, {
      id: /^[0-9a-f-]{36}$/,
      itemId: 'i',
      status: 'open',
      title: 'Do it as of now.',
      priority: 2,
      category: 'New',
      createdAtMs: 99,
      statusChangedAtMs: 99,
    })
  }
  for (const answer of ['yes', 100, 'not_applicable'] as const) t.same(after(answer), [], `${answer}`)
})

t.test('a recommendation that the newer assessment does not cover is unchanged', async (t) => {
  const known = new Map([['i', KNOWN]])
  t.same(recommendationsAfter(draft(), [category('New', 1, [item('other', 'yes')])], known, 99), [])
})
