import { z } from 'zod'
import { RETENTION_DAYS_MAX } from '../../engine/limits.ts'
import type { Retention } from '../../engine/store/organizations.ts'
import { countOf, expiredNow, RETENTION_DAYS_MIN, type Removed, retentionOf } from '../../engine/store/retention.ts'
import { Field, FormError } from '../design/form.tsx'
import { Card, countText, Lines, Notice, PageHead } from '../design/parts.tsx'
import { EMPTY_FORM, FormFields, type FormState, readForm, rejectedForm } from '../form.ts'
import type { Answer } from '../http/answer.ts'
import { changeForm, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

const PATH = '/retention'

const KINDS: readonly (readonly [keyof Retention, keyof Removed, label: string, about: string])[] = [
  ['scanDays', 'scans', 'Ended scans', 'The last completed scan always stays. The API and this console show it.'],
  ['auditDays', 'auditEntries', 'Entries of the audit log', 'Export the log first if you need it for longer.'],
  ['sourceDays', 'sources', 'Silent senders', 'Their counts stay in the totals.'],
  ['clientDays', 'clientRecords', 'Who used each platform', 'At most the evidence window. The counts stay.'],
]

interface RetentionPageProps {
  readonly visit: Visit
  readonly form: FormState
  /** The retention whose effect the page shows. */
  readonly preview: Partial<Retention> | undefined
}

/** How long the organization keeps its records. */
function RetentionPage({ visit, form, preview }: RetentionPageProps) {
  const { store } = visit.site
  const organization = store.organizations.get(visit.organization.id) ?? visit.organization
  const retention = retentionOf(organization)
  const removed = preview && expiredNow(store, organization.id, { ...retention, ...preview }, visit.nowMs)
  const maySet = visit.may('retention.set')
  return (
    <>
      <PageHead title="Retention" about="Records that are older are deleted once a day" />
      {removed !== undefined && (
        <Notice tone="warn" title={previewTitle(removed)}>
          <ul>
            {KINDS.map(([, kind, label]) => (
              <li key={kind}>
                {label}: {countText(removed[kind])}
              </li>
            ))}
          </ul>
          {maySet && <p class="small">Nothing is deleted yet. Save below to apply it with the next daily run.</p>}
        </Notice>
      )}
      <div class="wide">
        <Card title="Days to keep">
          <form class="stack" method={maySet ? 'post' : 'get'} action={PATH}>
            <FormError form={form} />
            {KINDS.map(([name, , label, about]) => (
              <Field
                key={name}
                name={name}
                label={label}
                type="number"
                form={form}
                value={String(retention[name])}
                required
                hint={`${about} ${RETENTION_DAYS_MIN[name]} to ${countText(RETENTION_DAYS_MAX)} days.`}
              />
            ))}
            <div class="row">
              {maySet && (
                <button class="first" type="submit">
                  Save
                </button>
              )}
              <button type="submit" formmethod="get" formaction={PATH}>
                Preview
              </button>
            </div>
            {!maySet && <p class="small muted">An admin of the organization can change the retention.</p>}
          </form>
        </Card>
        <Card title="Kept without a number of days">
          <Lines
            rows={[
              ['Findings', <a href="/organization-settings">the evidence window</a>],
              ['Assessments, recommendations, approvals', 'until they are removed'],
              ['Revoked keys and tokens', 'until the organization is removed'],
            ]}
          />
        </Card>
      </div>
    </>
  )
}

function previewTitle(removed: Removed): string {
  const all = countOf(removed)
  return all === 0 ? 'These days would delete nothing now' : `These days would delete ${countText(all)} records now`
}

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
    const values = new FormFields([...visit.request.query].filter(([name]) => name in RETENTION_DAYS_MIN))
    if (values.without().length === 0) return retentionPage(visit, EMPTY_FORM)
    try {
      return retentionPage(visit, { ...EMPTY_FORM, values }, readForm(retention, values))
    } catch (error) {
      return retentionPage(visit, rejectedForm(error, values))
    }
  }),
  changeForm(
    PATH,
    'retention.set',
    (_, visit) => {
      const { clientDays, ...others } = visit.read(retention)
      // Unchanged, clients are kept as long as the evidence, whatever its window is later.
      return clientDays === retentionOf(visit.organization).clientDays ? others : { clientDays, ...others }
    },
    `${PATH}?done=set`,
    { again: (visit, form) => retentionPage(visit, form) },
  ),
]

function retentionPage(visit: Visit, form: FormState, preview?: Partial<Retention>): Answer {
  const done = { set: 'The retention is saved. The next daily run applies it' }
  return visit.page('Retention', PATH, RetentionPage({ visit, form, preview }), { form, done })
}
