import { OWN_FRAMEWORKS_MAX } from '../../engine/admin/frameworks.ts'
import type { OwnFramework } from '../../engine/store/own-frameworks.ts'
import { FileContent, FormError, TwoStep } from '../design/form.tsx'
import { Card, countText, Empty, Notice, PageHead, Time } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { FormState } from '../form.ts'

const PATH = '/frameworks'

const DONE: Readonly<Record<string, string>> = {
  added: 'The framework is added. New assessments have its items',
  removed: 'The framework is removed. Its assessments stay',
}

const EXAMPLE = `id: own-acme-baseline
name: Acme baseline
categories:
  - name: Accounts
    items:
      - id: ACC-1
        title: Owners of accounts
        question: Does every account have an owner?
        yes: Each account names a person, reviewed this year.
        partial: Service accounts have no owner.
        no: Nobody knows who owns accounts.
        evidence: List of accounts with owners
        recommendation: Give each account an owner.
        weight: 3
        priority: 1`

interface FrameworksProps {
  readonly frameworks: readonly OwnFramework[]
  readonly form: FormState
  readonly nowMs: number
  readonly mayAdd: boolean
  readonly mayRemove: boolean
  readonly done: string
}

/** The frameworks that the organization wrote itself. */
export function Frameworks({ frameworks, form, nowMs, mayAdd, mayRemove, done }: FrameworksProps) {
  const title = DONE[done]
  return (
    <>
      <div>
        <p class="crumb">
          <a href="/assessments">Assessments</a>
        </p>
        <PageHead title="Own frameworks" about="Frameworks of this organization, from its own files" />
      </div>
      {title !== undefined && <Notice title={title} />}
      {frameworks.length === 0 ? (
        <Empty title="No own framework">
          <p class="muted">
            {mayAdd
              ? 'Add a YAML file with your own questions. Assessments of it work like all others.'
              : 'An admin of the organization can add frameworks with own questions.'}
          </p>
        </Empty>
      ) : (
        <Card title="Frameworks" note={`${countText(frameworks.length)} of ${countText(OWN_FRAMEWORKS_MAX)}`} bare>
          <Table id="frameworks" label="Own frameworks" columns={columns(nowMs, mayRemove)} rows={frameworks} />
        </Card>
      )}
      {mayAdd && (
        <Card title="Add a framework" note="A file with the id of a framework replaces it">
          <form class="stack" method="post" action={PATH}>
            <FormError form={form} />
            <FileContent
              form={form}
              accept=".yaml,.yml,.json"
              hint="YAML. Assessments keep the items that they have."
            />
            <div>
              <button class="first" type="submit">
                Add Framework
              </button>
            </div>
          </form>
          <details class="small">
            <summary>Example</summary>
            <pre>{EXAMPLE}</pre>
          </details>
        </Card>
      )}
    </>
  )
}

function columns(nowMs: number, mayRemove: boolean): readonly Column<OwnFramework>[] {
  const shown: readonly Column<OwnFramework>[] = [
    {
      id: 'name',
      name: 'Framework',
      cell: ({ id, name }) => (
        <>
          <strong>{name}</strong>
          <p class="small muted mono">{id}</p>
        </>
      ),
    },
    { id: 'items', name: 'Items', cell: ({ items }) => countText(items), number: true },
    { id: 'version', name: 'Version', cell: ({ version }) => <span class="mono">{version}</span>, wide: true },
    { id: 'added', name: 'Added', cell: ({ addedAtMs }) => <Time ms={addedAtMs} nowMs={nowMs} />, wide: true },
  ]
  if (!mayRemove) return shown
  return [
    ...shown,
    {
      id: 'remove',
      name: 'Remove',
      cell: ({ id, name }) => (
        <TwoStep action={`${PATH}/${id}/remove`} verb="Remove" label={name} effect="and keep its assessments" />
      ),
      quiet: true,
    },
  ]
}
