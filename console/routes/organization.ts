import { z } from 'zod'
import { Fault } from '../../engine/process/error-codes.ts'
import type { Organization } from '../../engine/store/organizations.ts'
import { EMPTY_FORM, type FormState, readForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { OrganizationPage } from '../pages/organization.tsx'
import { refusedForm } from './refused-form.ts'

const PATH = '/organization-settings'

export const ORGANIZATION_ROUTES: readonly Route[] = [
  page(PATH, 'organization.read', (visit) => organizationPage(visit, {}, 200)),
  form(`${PATH}/name`, 'organization.rename', async (visit) => {
    const { fields } = visit.request
    const name = fields.text('name').trim()
    if (name === visit.organization.name) return redirect(PATH)
    if (name === '') {
      return organizationPage(visit, { name: { values: fields, errors: { name: 'Enter a name' } } }, 400)
    }
    try {
      await visit.change('organization.rename', { name })
      return redirect(`${PATH}?done=renamed`)
    } catch (error) {
      const { state, status } = refusedForm(error, fields)
      return organizationPage(visit, { name: state }, status)
    }
  }),
  form(PATH, 'organization.set', async (visit) => {
    const { fields } = visit.request
    const read = readForm(settings, fields)
    if ('state' in read) return organizationPage(visit, { settings: read.state }, 400)
    try {
      await visit.change('organization.set', read.data)
      return redirect(`${PATH}?done=set`)
    } catch (error) {
      const { state, status } = refusedForm(error, fields)
      return organizationPage(visit, { settings: state }, status)
    }
  }),
]

const settings = z.object({
  domain: z.string('Enter a domain').trim().min(1, 'Enter a domain'),
  evidenceWindowDays: z.coerce.number('Enter a number of days').int('Enter a whole number'),
})

interface Forms {
  readonly name?: FormState
  readonly settings?: FormState
}

function organizationPage(visit: Visit, { name, settings }: Forms, status: number): Answer {
  const content = OrganizationPage({
    organization: stored(visit),
    nameForm: name ?? EMPTY_FORM,
    settingsForm: settings ?? EMPTY_FORM,
    mayRename: visit.may('organization.rename'),
    maySet: visit.may('organization.set'),
    nowMs: visit.nowMs,
    done: visit.request.query.get('done') ?? '',
  })
  return visit.page('Organization', PATH, content, { status })
}

/** @throws Fault NOT_FOUND if the organization was removed meanwhile. */
function stored({ site, organization }: Visit): Organization {
  const found = site.store.environment.read(() => site.store.organizations.get(organization.id))
  if (found === undefined) throw new Fault('NOT_FOUND', 'The organization no longer exists')
  return found
}
