import { EVIDENCE_WINDOW_DAYS_MAX } from '../../engine/limits.ts'
import type { Organization } from '../../engine/store/organizations.ts'
import { Field, FormError } from '../design/form.tsx'
import { Card, lastDays, Notice, PageHead, Time } from '../design/parts.tsx'
import type { FormState } from '../form.ts'
import { ClientSettings } from './client-settings.tsx'

const PATH = '/organization-settings'

export interface OrganizationPageProps {
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
export function OrganizationPage(props: OrganizationPageProps) {
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
