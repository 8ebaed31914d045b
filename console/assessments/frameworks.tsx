import { OWN_FRAMEWORKS_MAX } from '../../engine/admin/frameworks.ts'
import { AssessmentFileFault } from '../../engine/assess/file-fault.ts'
import type { OwnFramework } from '../../engine/store/own-frameworks.ts'
import { FileContent, Form, TwoStep } from '../design/form.tsx'
import { Card, countText, Empty, PageHead } from '../design/parts.tsx'
import { type Column, countColumn, Table, timeColumn } from '../design/table.tsx'
import { EMPTY_FORM, type FormState, fileText, formBytesMax, RejectedForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { changeForm, form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

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

/** The frameworks that the organization wrote itself. */
function Frameworks({ visit, form }: { readonly visit: Visit; readonly form: FormState }) {
  const frameworks = visit.site.store.ownFrameworks.ofOrganization(visit.organization.id)
  const mayAdd = visit.may('framework.add')
  return (
    <>
      <PageHead
        crumb={<a href="/assessments">Assessments</a>}
        title="Own frameworks"
        about="Frameworks of this organization, from its own files"
      />
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
          <Table visit={visit} id="frameworks" label="Own frameworks" columns={COLUMNS} rows={frameworks} />
        </Card>
      )}
      {mayAdd && (
        <Card title="Add a framework" note="A file with the id of a framework replaces it">
          <Form action={PATH} form={form} submit="Add Framework">
            <FileContent
              form={form}
              accept=".yaml,.yml,.json"
              hint={`YAML. Assessments keep the items that they have. At most ${TEXT_BYTES_MAX / 1024} KiB: posture-admin framework add reads larger files.`}
            />
          </Form>
          <details class="small">
            <summary>Example</summary>
            <pre>{EXAMPLE}</pre>
          </details>
        </Card>
      )}
    </>
  )
}

const COLUMNS: readonly Column<OwnFramework>[] = [
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
  countColumn('items', 'Items', ({ items }) => items),
  { id: 'version', name: 'Version', cell: ({ version }) => <span class="mono">{version}</span>, wide: true },
  { ...timeColumn('added', 'Added', ({ addedAtMs }: OwnFramework) => addedAtMs), wide: true },
  {
    id: 'remove',
    name: 'Remove',
    action: 'framework.remove',
    quiet: true,
    cell: ({ id, name }) => (
      <TwoStep action={`${PATH}/${id}/remove`} verb="Remove" label={name} effect="and keep its assessments" />
    ),
  },
]

/** 1,200 items. Reading YAML of this size takes 300 to 600 ms. */
const TEXT_BYTES_MAX = 1024 * 1024

export const FRAMEWORK_ROUTES: readonly Route[] = [
  page(PATH, 'assessment.read', (visit) => frameworksPage(visit, EMPTY_FORM)),
  form(
    PATH,
    'framework.add',
    async (visit) => {
      const text = fileText(visit.request.fields, TEXT_BYTES_MAX)
      // The YAML parser is loaded only here, because few visits need it.
      const { readFrameworkFile } = await import('../../engine/assess/framework-file.ts')
      await visit.change(
        'framework.add',
        orRejected(() => readFrameworkFile(Buffer.from(text))),
      )
      return redirect(`${PATH}?done=added`)
    },
    { bodyBytesMax: formBytesMax(TEXT_BYTES_MAX), again: (visit, state) => frameworksPage(visit, state) },
  ),
  changeForm(`${PATH}/:id/remove`, 'framework.remove', (given) => given, `${PATH}?done=removed`),
]

/** @throws RejectedForm with the lines of a file that are wrong */
function orRejected<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof AssessmentFileFault ? new RejectedForm({ text: error.lines.join('\n') }) : error
  }
}

function frameworksPage(visit: Visit, form: FormState): Answer {
  return visit.page('Own frameworks', '/assessments', Frameworks({ visit, form }), { form, done: DONE })
}
