import { Fault } from '../../engine/process/error-codes.ts'
import { RECOMMENDATION_STATUSES } from '../../engine/store/recommendations.ts'
import { redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import { Recommendations } from '../pages/recommendations.tsx'
import { recommendationsView } from '../views/recommendations.ts'

const PATH = '/recommendations'

export const RECOMMENDATION_ROUTES: readonly Route[] = [
  page(PATH, 'recommendation.read', (visit) => {
    const { query } = visit.request
    const content = Recommendations({
      view: recommendationsView(visit),
      query,
      mayChange: visit.may('recommendation.status'),
      done: query.get('done') ?? '',
    })
    return visit.page('Recommendations', PATH, content)
  }),
  form(`${PATH}/:id`, 'recommendation.status', async (visit, { id }) => {
    const { fields } = visit.request
    const named = fields.text('status')
    const status = RECOMMENDATION_STATUSES.find((each) => each === named)
    if (status === undefined) {
      const expected = RECOMMENDATION_STATUSES.join(', ')
      throw new Fault('USAGE', `Status: expected ${expected}, found ${JSON.stringify(named)}`)
    }
    await visit.change('recommendation.status', { id, status })
    const back = new URLSearchParams(fields.text('back').slice(0, 500))
    back.set('done', 'status')
    return redirect(`${PATH}?${back}`)
  }),
]
