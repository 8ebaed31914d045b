import { z } from 'zod'
import { Fault } from '../../engine/process/error-codes.ts'
import { CLIENT_MODES, clientModeOf, keepsLess, type Organization } from '../../engine/store/organizations.ts'
import { EMPTY_FORM, type FormState, readForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { CLIENT_SETTINGS_PATH, EraseClients } from '../pages/client-settings.tsx'
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
  form(CLIENT_SETTINGS_PATH, 'client.set', setClients, { confirmed: true }),
]

async function setClients(visit: Visit): Promise<Answer> {
  const { fields } = visit.request
  const clients = CLIENT_MODES.find((each) => each === fields.text('mode'))
  const apiClients = fields.text('api') === 'on'
  if (clients === undefined) {
    return organizationPage(visit, { clients: { values: fields, errors: { '': 'Choose what is kept' } } }, 400)
  }
  const before = stored(visit)
  if (keepsLess(before, { clients }) && fields.text('erase') !== 'yes') {
    return visit.page('Erase clients', PATH, EraseClients({ mode: clients, api: apiClients }))
  }
  const isSameMode = clientModeOf(before) === clients
  if (isSameMode && (before.apiClients ?? false) === apiClients) return redirect(PATH)
  try {
    // Setting the mode again would be an entry in the audit log that nothing follows.
    await visit.change('client.set', isSameMode ? { apiClients } : { clients, apiClients })
    return redirect(`${PATH}?done=clients`)
  } catch (error) {
    const { state, status } = refusedForm(error, fields)
    return organizationPage(visit, { clients: state }, status)
  }
}

const settings = z.object({
  domain: z.string('Enter a domain').trim().min(1, 'Enter a domain'),
  evidenceWindowDays: z.coerce.number('Enter a number of days').int('Enter a whole number'),
})

interface Forms {
  readonly name?: FormState
  readonly settings?: FormState
  readonly clients?: FormState
}

function organizationPage(visit: Visit, { name, settings, clients }: Forms, status: number): Answer {
  const content = OrganizationPage({
    organization: stored(visit),
    nameForm: name ?? EMPTY_FORM,
    settingsForm: settings ?? EMPTY_FORM,
    clientsForm: clients ?? EMPTY_FORM,
    mayRename: visit.may('organization.rename'),
    maySet: visit.may('organization.set'),
    maySetClients: visit.may('client.set'),
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
