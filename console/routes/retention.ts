import { z } from 'zod'
import { RETENTION_DAYS_MAX } from '../../engine/limits.ts'
import type { Organization, Retention } from '../../engine/store/organizations.ts'
import { expiredNow, RETENTION_DAYS_MIN, retentionOf } from '../../engine/store/retention.ts'
import { EMPTY_FORM, FormFields, type FormState, readForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { RetentionPage } from '../pages/retention.tsx'
import { refusedForm } from './refused-form.ts'

const PATH = '/retention'

const days = (name: keyof Retention) => {
  const min = RETENTION_DAYS_MIN[name]
  const problem = `Enter a whole number from ${min} to ${RETENTION_DAYS_MAX}`
  return z.coerce.number(problem).int(problem).min(min, problem).max(RETENTION_DAYS_MAX, problem)
}
const retention = z.object({
  scanDays: days('scanDays'),
  auditDays: days('auditDays'),
  sourceDays: days('sourceDays'),
  clientDays: days('clientDays'),
})

export const RETENTION_ROUTES: readonly Route[] = [
  page(PATH, 'organization.read', (visit) => {
    const fields = new FormFields([...visit.request.query].filter(([name]) => name in RETENTION_DAYS_MIN))
    if (fields.without().length === 0) return retentionPage(visit, EMPTY_FORM, 200)
    const read = readForm(retention, fields)
    if ('state' in read) return retentionPage(visit, read.state, 400)
    return retentionPage(visit, { values: fields, errors: {} }, 200, read.data)
  }),
  form(PATH, 'retention.set', async (visit) => {
    const { fields } = visit.request
    const read = readForm(retention, fields)
    if ('state' in read) return retentionPage(visit, read.state, 400)
    try {
      const { clientDays, ...others } = read.data
      // Unchanged, clients are kept as long as the evidence, whatever its window is later.
      const isChanged = clientDays !== retentionOf(visit.organization).clientDays
      await visit.change('retention.set', isChanged ? read.data : others)
      return redirect(`${PATH}?done=set`)
    } catch (error) {
      const { state, status } = refusedForm(error, fields)
      return retentionPage(visit, state, status)
    }
  }),
]

/** @param preview the retention whose effect the page shows */
function retentionPage(visit: Visit, state: FormState, status: number, preview?: Partial<Retention>): Answer {
  const { site, nowMs, request } = visit
  const { store } = site
  return site.store.environment.read(() => {
    const organization: Organization = store.organizations.get(visit.organization.id) ?? visit.organization
    const content = RetentionPage({
      retention: retentionOf(organization),
      form: state,
      preview: preview && expiredNow(store, organization.id, { ...retentionOf(organization), ...preview }, nowMs),
      maySet: visit.may('retention.set'),
      done: request.query.get('done') ?? '',
    })
    return visit.page('Retention', PATH, content, { status })
  })
}
