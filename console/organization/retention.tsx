import { z } from 'zod'
import { RETENTION_DAYS_MAX } from '../../engine/limits.ts'
import type { Organization, Retention } from '../../engine/store/organizations.ts'
import { countOf, expiredNow, RETENTION_DAYS_MIN, type Removed, retentionOf } from '../../engine/store/retention.ts'
import { Field, FormError } from '../design/form.tsx'
import { Card, countText, Notice, PageHead } from '../design/parts.tsx'
import { EMPTY_FORM, FormFields, type FormState, readForm, refusedForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

const PATH = '/retention'

interface RetentionPageProps {
  readonly retention: Retention
  readonly form: FormState
  /** The number of records that the typed retention would delete now; undefined: not asked for. */
  readonly preview: Removed | undefined
  readonly maySet: boolean
  readonly done: string
}

const KINDS: readonly (readonly [keyof Retention, keyof Removed, label: string, about: string])[] = [
  ['scanDays', 'scans', 'Ended scans', 'The last completed scan always stays. The API and this console show it.'],
  ['auditDays', 'auditEntries', 'Entries of the audit log', 'Export the log first if you need it for longer.'],
  ['sourceDays', 'sources', 'Silent senders', 'Their counts stay in the totals.'],
  ['clientDays', 'clientRecords', 'Who used each platform', 'At most the evidence window. The counts stay.'],
]

/** How long the organization keeps its records. */
function RetentionPage({ retention, form, preview, maySet, done }: RetentionPageProps) {
  return (
    <>
      <PageHead title="Retention" about="Records that are older are deleted once a day" />
      {done === 'set' && <Notice title="The retention is saved. The next daily run applies it" />}
      {preview !== undefined && (
        <Notice tone="warn" title={previewTitle(preview)}>
          <ul>
            {KINDS.map(([, kind, label]) => (
              <li key={kind}>
                {label}: {countText(preview[kind])}
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
          <ul class="lines">
            <li>
              <span>Findings</span>
              <span class="right">
                <a href="/organization-settings">the evidence window</a>
              </span>
            </li>
            <li>
              <span>Assessments, recommendations, approvals</span>
              <span class="right">until they are removed</span>
            </li>
            <li>
              <span>Revoked keys and tokens</span>
              <span class="right">until the organization is removed</span>
            </li>
          </ul>
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
