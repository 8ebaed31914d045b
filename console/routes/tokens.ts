import { Tokens, tokenColumns } from '../pages/tokens.tsx'
import { tokensView } from '../views/tokens.ts'
import { secretRoutes } from './secrets.ts'

export const TOKEN_ROUTES = secretRoutes({
  path: '/monitoring-tokens',
  title: 'Monitoring Tokens',
  actions: { read: 'token.read', create: 'token.generate', revoke: 'token.revoke' },
  view: tokensView,
  content: (props, visit) => Tokens({ ...props, mayVerify: visit.may('token.verify') }),
  columns: tokenColumns,
  readNew: (visit) => {
    const { fields } = visit.request
    const label = fields.text('label').trim()
    if (label === '') return { state: { values: fields, errors: { label: 'Enter a label' } } }
    return { label, create: () => visit.change('token.generate', { label }) }
  },
  revoke: (visit, id) => visit.change('token.revoke', { id }),
})
