import { z } from 'zod'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { EVIDENCE_WINDOW_DAYS_MAX } from '../../engine/limits.ts'
import {
  CLIENT_MODES,
  type ClientMode,
  clientModeOf,
  keepsLess,
  type Organization,
} from '../../engine/store/organizations.ts'
import { Field, FormError, SubmitOrCancel } from '../design/form.tsx'
import { Card, lastDays, Notice, PageHead, Time } from '../design/parts.tsx'
import { EMPTY_FORM, type FormState, readForm, refusedForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

const CLIENT_SETTINGS_PATH = '/organization-settings/clients'

const MODE_NAMES: Readonly<Record<ClientMode, readonly [name: string, about: string]>> = {
  full: ['In full', 'Addresses, and user names where a log has one.'],
  pseudonym: ['As pseudonyms', 'Encrypted. Owners can reveal one, which the audit log records.'],
  off: ['Not at all', 'Use is counted without who it was.'],
}

interface ClientSettingsProps {
  readonly organization: Organization
  readonly form: FormState
  readonly maySet: boolean
}

/** What the organization keeps of clients. */
function ClientSettings(props: ClientSettingsProps) {
  const { organization, maySet } = props
  const [name, about] = MODE_NAMES[clientModeOf(organization)]
  return (
    <Card id="clients" title="Clients" note="who uses the platforms">
      {maySet ? (
        <SettingsForm {...props} />
      ) : (
        <>
          <p>
            {name} <span class="muted">{about}</span>
          </p>
          <p class="small muted">An owner of the organization can change it.</p>
        </>
      )}
    </Card>
  )
}

function SettingsForm({ organization, form }: ClientSettingsProps) {
  const mode = clientModeOf(organization)
  return (
    <form class="stack" method="post" action={CLIENT_SETTINGS_PATH}>
      <FormError form={form} />
      <fieldset>
        <legend>What is kept of clients</legend>
        {CLIENT_MODES.map((each) => (
          <label class="check" key={each}>
            <input type="radio" name="mode" value={each} checked={each === mode} />
            <span>
              {MODE_NAMES[each][0]} <span class="muted">{MODE_NAMES[each][1]}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <fieldset>
        <legend>What leaves the service</legend>
        <label class="check">
          <input type="checkbox" name="api" value="on" checked={organization.apiClients === true} />
          Answers of the API name the clients with the most matches
        </label>
        <label class="check">
          <input type="checkbox" name="alerts" value="on" checked={organization.alertPeople === true} />
          Alerts name the people whose use they are about; as they are kept, so pseudonyms stay pseudonyms
        </label>
      </fieldset>
      <p class="small muted">
        <a href="/retention">Retention</a> sets for how many days clients are kept.
      </p>
      <div>
        <button class="first" type="submit">
          Save
        </button>
      </div>
    </form>
  )
}

interface EraseClientsProps {
  readonly mode: ClientMode
  readonly apiClients: boolean
  readonly alertPeople: boolean
}

/** Asks before clients are erased. */
function EraseClients({ mode, apiClients, alertPeople }: EraseClientsProps) {
  return (
    <>
      <PageHead title="Erase what is stored of clients?" />
      <section class="card narrow">
        <form class="stack body" method="post" action={CLIENT_SETTINGS_PATH}>
          <p>
            From now on, clients are kept {MODE_NAMES[mode][0].toLowerCase()}. What is stored of them is erased and
            cannot be restored: in buffered events, in the evidence and alerts, and the names of addresses. The numbers
            of clients stay.
          </p>
          <p>
            Backups are not covered: those that exist still contain clients. Delete them, or keep them as long as your
            rules allow.
          </p>
          <input type="hidden" name="mode" value={mode} />
          {apiClients && <input type="hidden" name="api" value="on" />}
          {alertPeople && <input type="hidden" name="alerts" value="on" />}
          <input type="hidden" name="erase" value="yes" />
          <SubmitOrCancel look="danger" cancel="/organization-settings">
            Erase and save
          </SubmitOrCancel>
        </form>
      </section>
    </>
  )
}

const PATH = '/organization-settings'

interface OrganizationPageProps {
  readonly organization: Organization
  readonly nameForm: FormState
  readonly settingsForm: FormState
  readonly clientsForm: FormState
  readonly mayRename: boolean
  readonly maySet: boolean
  /** The member may set what is kept of clients. */
  readonly maySetClients: boolean
  readonly nowMs: number
  readonly done: string
}

const DONE: Readonly<Record<string, string>> = {
  renamed: 'The organization is renamed',
  set: 'The settings are saved. The next scan uses them',
  clients: 'The setting of clients is saved. The scan that it requested applies it',
}

/** Name, domain and evidence window of the organization, and what it keeps of clients. */
function OrganizationPage(props: OrganizationPageProps) {
  const { organization, nameForm, settingsForm, clientsForm, mayRename, maySet, maySetClients, nowMs, done } = props
  const { name, domain, plan, createdAtMs, evidenceWindowDays } = organization
  const title = DONE[done]
  return (
    <>
      <PageHead
        title="Organization"
        about={
          <>
            Created <Time ms={createdAtMs} nowMs={nowMs} />, plan {plan}
          </>
        }
      />
      {title !== undefined && <Notice title={title} />}
      <div class="two">
        <Card title="Name">
          {mayRename ? (
            <form class="stack" method="post" action={`${PATH}/name`}>
              <FormError form={nameForm} />
              <Field name="name" label="Name" form={nameForm} value={name} required maxLength={255} />
              <div>
                <button class="first" type="submit">
                  Rename
                </button>
              </div>
            </form>
          ) : (
            <Fixed value={name} who="An owner" />
          )}
        </Card>
        <Card title="Scans">
          {maySet ? (
            <form class="stack" method="post" action={PATH}>
              <FormError form={settingsForm} />
              <Field
                name="domain"
                label="Domain"
                form={settingsForm}
                value={domain}
                required
                maxLength={255}
                hint="Scans report it, such as acme.example."
              />
              <Field
                name="evidenceWindowDays"
                label="Evidence window in days"
                type="number"
                form={settingsForm}
                value={String(evidenceWindowDays)}
                required
                hint={`How far back a scan counts what was seen: 1 to ${EVIDENCE_WINDOW_DAYS_MAX}. A platform that was not seen for so long leaves the list.`}
              />
              <div>
                <button class="first" type="submit">
                  Save
                </button>
              </div>
            </form>
          ) : (
            <Fixed value={`${domain}, ${lastDays(evidenceWindowDays)}`} who="An admin" />
          )}
        </Card>
      </div>
      <ClientSettings organization={organization} form={clientsForm} maySet={maySetClients} />
    </>
  )
}

/** A value that the member's role cannot change. */
function Fixed({ value, who }: { readonly value: string; readonly who: string }) {
  return (
    <>
      <p class="break">{value}</p>
      <p class="small muted">{who} of the organization can change it.</p>
    </>
  )
}

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
  const switches = { apiClients: fields.text('api') === 'on', alertPeople: fields.text('alerts') === 'on' }
  if (clients === undefined) {
    return organizationPage(visit, { clients: { values: fields, errors: { '': 'Choose what is kept' } } }, 400)
  }
  const before = stored(visit)
  if (keepsLess(before, { clients }) && fields.text('erase') !== 'yes') {
    return visit.page('Erase clients', PATH, EraseClients({ mode: clients, ...switches }))
  }
  const isSameMode = clientModeOf(before) === clients
  const { apiClients = false, alertPeople = false } = before
  const isSame = switches.apiClients === apiClients && switches.alertPeople === alertPeople
  if (isSameMode && isSame) return redirect(PATH)
  try {
    // Setting the mode again would be an entry in the audit log that nothing follows.
    await visit.change('client.set', isSameMode ? switches : { clients, ...switches })
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
