import { z } from 'zod'
import { SCOPES } from '../../engine/store/api-keys.ts'
import { readForm } from '../form.ts'
import { ApiKeys } from '../pages/api-keys.tsx'
import { apiKeysView } from '../views/api-keys.ts'
import { secretRoutes } from './secrets.ts'

const newKey = z.object({
  label: z.string('Enter a label').trim().min(1, 'Enter a label'),
  scopes: z.array(z.enum(SCOPES, 'This scope does not exist')).min(1, 'Choose at least one'),
})

export const API_KEY_ROUTES = secretRoutes({
  path: '/api-keys',
  title: 'API keys',
  actions: { read: 'api-key.read', create: 'api-key.create', revoke: 'api-key.revoke' },
  view: apiKeysView,
  content: ApiKeys,
  readNew: (visit) => {
    const read = readForm(newKey, visit.request.fields, ['scopes'])
    if ('state' in read) return read
    return { label: read.data.label, create: () => visit.change('api-key.create', read.data) }
  },
  revoke: (visit, id) => visit.change('api-key.revoke', { id }),
})
