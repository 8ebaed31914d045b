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
import { Field, type Fields, Form, Hidden } from '../design/form.tsx'
import { Card, lastDays, NarrowCard, PageHead, Time } from '../design/parts.tsx'
import { EMPTY_FORM, type FormState } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { changeForm, form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

const PATH = '/organization-settings'
const CLIENT_SETTINGS_PATH = `${PATH}/clients`

const MODE_NAMES: Readonly<Record<ClientMode, readonly [name: string, about: string]>> = {
  full: ['In full', 'Addresses, and user names where a log has one.'],
  pseudonym: ['As pseudonyms', 'Encrypted. Owners can reveal one, which the audit log records.'],
  off: ['Not at all', 'Use is counted without who it was.'],
}

/** What the organization keeps of clients. */
function ClientSettings({
  organization,
  form,
  maySet,
}: {
  organization: Organization
  form: FormState
  maySet: boolean
}) {
  const mode = clientModeOf(organization)
  return (
    <Card id="clients" title="Clients" note="who uses the platforms">
      {maySet ? (
        <Form action={CLIENT_SETTINGS_PATH} form={form} submit="Save">
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
        </Form>
      ) : (
        <Fixed value={MODE_NAMES[mode].join('. ')} who="An owner" />
      )}
    </Card>
  )
}

/** Asks before clients are erased. */
function EraseClients({ mode, fields }: { readonly mode: ClientMode; readonly fields: Fields }) {
  return (
    <>
      <PageHead title="Erase what is stored of clients?" />
      <NarrowCard>
        <Form action={CLIENT_SETTINGS_PATH} submit="Erase and save" look="danger" cancel={PATH}>
          <p>
            From now on, clients are kept {MODE_NAMES[mode][0].toLowerCase()}. What is stored of them is erased and
            cannot be restored: in buffered events, in the evidence and alerts, and the names of addresses. The numbers
            of clients stay.
          </p>
          <p>
            Backups are not covered: those that exist still contain clients. Delete them, or keep them as long as your
            rules allow.
          </p>
          <Hidden fields={[...fields, ['erase', 'yes']]} />
        </Form>
      </NarrowCard>
    </>
  )
}

const DONE: Readonly<Record<string, string>> = {
  renamed: 'The organization is renamed',
  set: 'The settings are saved. The next scan uses them',
  clients: 'The setting of clients is saved. The scan that it requested applies it',
}

/** The forms of the page, by the name of the one that was sent. */
type Forms = Partial<Record<'name' | 'settings' | 'clients', FormState>>

/** Name, domain and evidence window of the organization, and what it keeps of clients. */
function OrganizationPage({ visit, forms }: { readonly visit: Visit; readonly forms: Forms }) {
  const organization = stored(visit)
  const { name, domain, plan, createdAtMs, evidenceWindowDays } = organization
  const { name: nameForm = EMPTY_FORM, settings: settingsForm = EMPTY_FORM, clients = EMPTY_FORM } = forms
  return (
    <>
      <PageHead
        title="Organization"
        about={
          <>
            Created <Time ms={createdAtMs} nowMs={visit.nowMs} />, plan {plan}
          </>
        }
      />
      <div class="two">
        <Card title="Name">
          {visit.may('organization.rename') ? (
            <Form action={`${PATH}/name`} form={nameForm} submit="Rename">
              <Field name="name" label="Name" form={nameForm} value={name} required maxLength={255} />
            </Form>
          ) : (
            <Fixed value={name} who="An owner" />
          )}
        </Card>
        <Card title="Scans">
          {visit.may('organization.set') ? (
            <Form action={PATH} form={settingsForm} submit="Save">
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
            </Form>
          ) : (
            <Fixed value={`${domain}, ${lastDays(evidenceWindowDays)}`} who="An admin" />
          )}
        </Card>
      </div>
      <ClientSettings organization={organization} form={clients} maySet={visit.may('client.set')} />
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

const newName = z.object({ name: z.string().trim().min(1, 'Enter a name') })
const settings = z.object({
  domain: z.string('Enter a domain').trim().min(1, 'Enter a domain'),
  evidenceWindowDays: z.coerce.number('Enter a number of days').int('Enter a whole number'),
})
const clientSettings = z
  .object({
    mode: z.enum(CLIENT_MODES, 'Choose what is kept'),
    api: z.string().optional(),
    alerts: z.string().optional(),
  })
  .transform(({ mode, api, alerts }) => ({ clients: mode, apiClients: api === 'on', alertPeople: alerts === 'on' }))

export const ORGANIZATION_ROUTES: readonly Route[] = [
  page(PATH, 'organization.read', (visit) => organizationPage(visit, {})),
  form(
    `${PATH}/name`,
    'organization.rename',
    async (visit) => {
      const given = visit.read(newName)
      if (given.name === visit.organization.name) return redirect(PATH)
      await visit.change('organization.rename', given)
      return redirect(`${PATH}?done=renamed`)
    },
    { again: (visit, name) => organizationPage(visit, { name }) },
  ),
  changeForm(PATH, 'organization.set', (_, visit) => visit.read(settings), `${PATH}?done=set`, {
    again: (visit, form) => organizationPage(visit, { settings: form }),
  }),
  form(CLIENT_SETTINGS_PATH, 'client.set', setClients, {
    confirmed: true,
    again: (visit, clients) => organizationPage(visit, { clients }),
  }),
]

async function setClients(visit: Visit): Promise<Answer> {
  const { fields } = visit.request
  const { clients, ...switches } = visit.read(clientSettings)
  const before = stored(visit)
  if (keepsLess(before, { clients }) && fields.text('erase') !== 'yes') {
    return visit.page('Erase clients', PATH, EraseClients({ mode: clients, fields: fields.without() }))
  }
  const isSameMode = clientModeOf(before) === clients
  const { apiClients = false, alertPeople = false } = before
  const isSame = switches.apiClients === apiClients && switches.alertPeople === alertPeople
  if (isSameMode && isSame) return redirect(PATH)
  // Setting the mode again would be an entry in the audit log that nothing follows.
  await visit.change('client.set', isSameMode ? switches : { clients, ...switches })
  return redirect(`${PATH}?done=clients`)
}

function organizationPage(visit: Visit, forms: Forms): Answer {
  const form = Object.values(forms)[0] ?? EMPTY_FORM
  return visit.page('Organization', PATH, OrganizationPage({ visit, forms }), { form, done: DONE })
}

/** @throws Fault NOT_FOUND if the organization was removed meanwhile. */
function stored({ site, organization }: Visit): Organization {
  const found = site.store.environment.read(() => site.store.organizations.get(organization.id))
  if (found === undefined) throw new Fault('NOT_FOUND', 'The organization no longer exists')
  return found
}
