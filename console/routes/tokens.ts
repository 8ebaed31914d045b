import { Fault } from '../../engine/kernel/process/error-codes.ts'
import type { MonitoringToken } from '../../engine/store/monitoring-tokens.ts'
import { redirect } from '../http/answer.ts'
import { page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { Tokens, tokenColumns } from '../pages/tokens.tsx'
import { arrivalColumns, reloadSeconds, Verification, verificationTitle } from '../pages/verification.tsx'
import { tokensView } from '../views/tokens.ts'
import { arrivalsOf, startOf, verificationView } from '../views/verification.ts'
import { csvTable } from './csv.ts'
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

export const VERIFICATION_ROUTES: readonly Route[] = [
  page('/monitoring-tokens/:id/verify', 'token.verify', (visit, { id }) => {
    const token = tokenOf(visit, id)
    const startedMs = startOf(visit.request.query, visit.nowMs)
    // Without a start in the query, a new verification begins.
    if (startedMs === undefined) return redirect(`/monitoring-tokens/${id}/verify?started=${visit.nowMs}`)
    const view = verificationView(visit, token, startedMs)
    return visit.page(verificationTitle(view), '/setup-guide', Verification({ view, nowMs: visit.nowMs }), {
      reloadSeconds: reloadSeconds(view),
    })
  }),
  page('/monitoring-tokens/:id/verify.csv', 'token.verify', (visit, { id }) => {
    const token = tokenOf(visit, id)
    const startedMs = startOf(visit.request.query, visit.nowMs) ?? visit.nowMs
    return csvTable('verify', arrivalColumns(visit.nowMs), arrivalsOf(visit, token, startedMs))
  }),
]

/** @throws Fault NOT_FOUND, also for a token of another organization. */
function tokenOf({ site, organization }: Visit, id: string): MonitoringToken {
  const token = site.store.monitoringTokens.ofOrganization(organization.id).find((each) => each.id === id)
  if (token === undefined) throw new Fault('NOT_FOUND', 'There is no such token')
  return token
}
