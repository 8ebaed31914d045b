import { Fault } from '../engine/kernel/process/error-codes.ts'
import { addressOf, hasSavedViews, SAVED_VIEWS_PATH, savedQuery } from './design/saved-views.tsx'
import { redirect } from './http/answer.ts'
import { form, type Route } from './http/router.ts'

export const SAVED_VIEW_ROUTES: readonly Route[] = [
  form(SAVED_VIEWS_PATH, 'view.save', async (visit) => {
    const { fields } = visit.request
    const [name, path] = [fields.text('name').trim(), fields.text('path')]
    if (!hasSavedViews(path)) throw new Fault('USAGE', `${path} is not a page with filters that can be saved`)
    const query = savedQuery(path, new URLSearchParams(fields.text('query')))
    await visit.change('view.save', { name, path, query })
    return redirect(addressOf({ path, query }))
  }),
  form(`${SAVED_VIEWS_PATH}/remove`, 'view.remove', async (visit) => {
    const { fields } = visit.request
    await visit.change('view.remove', { name: fields.text('name') })
    const path = fields.text('path')
    return redirect(hasSavedViews(path) ? path : '/')
  }),
]
