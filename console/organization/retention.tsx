import { RETENTION_DAYS_MAX } from '../../engine/limits.ts'
import type { Retention } from '../../engine/store/organizations.ts'
import { countOf, RETENTION_DAYS_MIN, type Removed } from '../../engine/store/retention.ts'
import { Field, FormError } from '../design/form.tsx'
import { Card, countText, Notice, PageHead } from '../design/parts.tsx'
import type { FormState } from '../form.ts'

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
export function RetentionPage({ retention, form, preview, maySet, done }: RetentionPageProps) {
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
