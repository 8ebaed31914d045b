import { z } from 'zod'
import { SCOPES } from '../../engine/store/api-keys.ts'
import { EMPTY_FORM, FormFields, type FormState, readForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { ApiKeys, type ApiKeysProps } from '../pages/api-keys.tsx'
import { apiKeysView } from '../views/api-keys.ts'
import { refusedForm } from './refused-form.ts'

const PATH = '/api-keys'

export const API_KEY_ROUTES: readonly Route[] = [
  page(PATH, 'api-key.read', (visit) => keysPage(visit, EMPTY_FORM, 200)),
  form(PATH, 'api-key.create', create, { confirmed: true }),
  form(
    `${PATH}/:id/revoke`,
    'api-key.revoke',
    async (visit, { id }) => {
      await visit.change('api-key.revoke', { id })
      return redirect(`${PATH}?done=revoked`)
    },
    { confirmed: true },
  ),
]

const newKey = z.object({
  label: z.string('Enter a label').trim().min(1, 'Enter a label'),
  scopes: z.array(z.enum(SCOPES, 'This scope does not exist')).min(1, 'Choose at least one'),
})

async function create(visit: Visit): Promise<Answer> {
  const { fields } = visit.request
  const read = readForm(newKey, fields, ['scopes'])
  if ('state' in read) return keysPage(visit, read.state, 400)
  try {
    const { raw } = await visit.change('api-key.create', read.data)
    const { label } = read.data
    return keysPage(visit, { values: new FormFields(), errors: {} }, 200, { label, raw })
  } catch (error) {
    const { state, status } = refusedForm(error, fields)
    return keysPage(visit, state, status)
  }
}

function keysPage(visit: Visit, state: FormState, status: number, created?: ApiKeysProps['created']): Answer {
  const { site, nowMs, request } = visit
  const content = ApiKeys({
    view: site.store.environment.read(() => apiKeysView(visit)),
    form: state,
    nowMs,
    mayCreate: visit.may('api-key.create'),
    mayRevoke: visit.may('api-key.revoke'),
    created,
    done: request.query.get('done') ?? '',
  })
  return visit.page('API keys', PATH, content, { status, showsSecret: created !== undefined })
}
