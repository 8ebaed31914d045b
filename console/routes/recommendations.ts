import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { RECOMMENDATION_STATUSES, type Recommendation } from '../../engine/store/recommendations.ts'
import { CSV_ROWS_MAX } from '../design/csv-link.tsx'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { Recommendations, type RefusedChange, recommendationColumns } from '../pages/recommendations.tsx'
import { recommendationsView } from '../views/recommendations.ts'
import { csvFile } from './csv.ts'
import { refusedForm } from './refused-form.ts'

const PATH = '/recommendations'

export const RECOMMENDATION_ROUTES: readonly Route[] = [
  page(PATH, 'recommendation.read', (visit) => recommendationsPage(visit, visit.request.query)),
  csvFile({
    path: PATH,
    access: 'recommendation.read',
    columns: ({ nowMs }) => recommendationColumns(nowMs),
    rows: (visit) => recommendationsView(visit, visit.request.query, CSV_ROWS_MAX + 1).found.rows,
  }),
  form(`${PATH}/:id`, 'recommendation.status', async (visit, { id }) => {
    const { fields } = visit.request
    const [owner] = fields.all('owner')
    const [dueOn] = fields.all('due')
    const [before] = existing(visit, [id]) as [Recommendation]
    return saved(visit, id, async ({ status, reason }) => {
      // The owner first: it may be refused, and then nothing is changed.
      const assigned = { owner: owner?.trim() ?? before.owner, dueOn: dueOn ?? before.dueOn ?? '' }
      if (assigned.owner !== before.owner || assigned.dueOn !== (before.dueOn ?? '')) {
        await visit.change('recommendation.owner', { id, ...assigned })
      }
      if (status !== before.status) await visit.change('recommendation.status', { id, status, reason })
    })
  }),
  form(PATH, 'recommendation.status', (visit) => {
    const selected = existing(visit, visit.request.fields.all('id'))
    return saved(visit, '', async ({ status, reason }) => {
      if (selected.length === 0) throw new Fault('USAGE', 'Select recommendations first')
      for (const { id, status: before } of selected) {
        if (status !== before) await visit.change('recommendation.status', { id, status, reason })
      }
    })
  }),
]

/** Makes a change of a form, and returns to the list; if it is rejected, with what was typed. */
async function saved(
  visit: Visit,
  id: string,
  change: (given: Pick<RefusedChange, 'status' | 'reason'>) => Promise<void>,
): Promise<Answer> {
  const { fields } = visit.request
  const named = fields.text('status')
  const status = RECOMMENDATION_STATUSES.find((each) => each === named)
  if (status === undefined) {
    const expected = RECOMMENDATION_STATUSES.join(', ')
    throw new Fault('USAGE', `Status: expected ${expected}, found ${JSON.stringify(named)}`)
  }
  const back = new URLSearchParams(fields.text('back').slice(0, 500))
  const reason = fields.text('reason').trim()
  try {
    await change({ status, reason })
  } catch (error) {
    const refused = refusedForm(error, fields)
    const message = refused.state.errors[''] ?? ''
    const given = { id, status, reason, owner: fields.text('owner'), dueOn: fields.text('due'), message }
    return recommendationsPage(visit, back, given, refused.status)
  }
  back.set('done', 'saved')
  return redirect(`${PATH}?${back}`)
}

/** @throws Fault NOT_FOUND. */
function existing({ site, organization }: Visit, ids: readonly string[]): Recommendation[] {
  const all = site.store.environment.read(() => site.store.recommendations.ofOrganization(organization.id))
  const byId = new Map(all.map((each) => [each.id, each]))
  return ids.map((id) => {
    const found = byId.get(id)
    if (found === undefined) throw new Fault('NOT_FOUND', 'This organization has no such recommendation')
    return found
  })
}

/** @param query the filters and the page of the list */
function recommendationsPage(visit: Visit, query: URLSearchParams, refused?: RefusedChange, status = 200): Answer {
  const content = Recommendations({
    view: visit.site.store.environment.read(() => recommendationsView(visit, query)),
    query,
    nowMs: visit.nowMs,
    mayChange: visit.may('recommendation.status'),
    refused,
    done: query.get('done') ?? '',
  })
  return visit.page('Recommendations', PATH, content, { status })
}
