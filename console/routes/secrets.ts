import type { VNode } from 'preact'
import type { Action } from '../../engine/admin/actions.ts'
import type { Column } from '../design/table.tsx'
import { EMPTY_FORM, type FormState } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import type { CreatedSecret, SecretsProps } from '../pages/secrets.tsx'
import type { SecretRow, SecretsView } from '../views/secrets.ts'
import { csvFile } from './csv.ts'
import { refusedForm } from './refused-form.ts'

/** What a form that creates a secret contains, or the errors of the form. */
export type NewSecret =
  | {
      readonly label: string
      readonly create: () => Promise<{ readonly raw: string; readonly record: { readonly id: string } }>
    }
  | { readonly state: FormState }

export interface SecretPages<Row extends SecretRow> {
  readonly path: string
  readonly title: string
  readonly actions: { readonly read: Action; readonly create: Action; readonly revoke: Action }
  readonly view: (visit: Visit) => SecretsView<Row>
  readonly content: (props: SecretsProps<Row>, visit: Visit) => VNode
  readonly columns: (nowMs: number, mayRevoke: boolean) => readonly Column<Row>[]
  readonly readNew: (visit: Visit) => NewSecret
  readonly revoke: (visit: Visit, id: string) => Promise<unknown>
}

interface Outcome {
  readonly state: FormState
  readonly status: number
}

/** The routes that list secrets, create them, show each new one once, and revoke them. */
export function secretRoutes<Row extends SecretRow>(pages: SecretPages<Row>): readonly Route[] {
  const { path, actions } = pages
  return [
    page(path, actions.read, (visit) => secretsPage(pages, visit, { state: EMPTY_FORM, status: 200 })),
    form(path, actions.create, (visit) => create(pages, visit), { confirmed: true }),
    form(
      `${path}/:id/revoke`,
      actions.revoke,
      async (visit, { id }) => {
        await pages.revoke(visit, id)
        return redirect(`${path}?done=revoked`)
      },
      { confirmed: true },
    ),
    csvFile({
      path,
      access: actions.read,
      columns: ({ nowMs }) => pages.columns(nowMs, false),
      rows: (visit) => {
        const { active, ended } = pages.view(visit)
        return [...active, ...ended]
      },
    }),
  ]
}

async function create<Row extends SecretRow>(pages: SecretPages<Row>, visit: Visit): Promise<Answer> {
  const read = pages.readNew(visit)
  if ('state' in read) return secretsPage(pages, visit, { state: read.state, status: 400 })
  try {
    const { raw, record } = await read.create()
    return visit.redirectToShow(pages.path, { label: read.label, raw, id: record.id } satisfies CreatedSecret)
  } catch (error) {
    return secretsPage(pages, visit, refusedForm(error, visit.request.fields))
  }
}

function secretsPage<Row extends SecretRow>(
  { path, title, actions, view, content }: SecretPages<Row>,
  visit: Visit,
  { state, status }: Outcome,
): Answer {
  const { site, nowMs, request } = visit
  const created = visit.shownOnce<CreatedSecret>()
  const props: SecretsProps<Row> = {
    view: site.store.environment.read(() => view(visit)),
    form: state,
    nowMs,
    mayCreate: visit.may(actions.create),
    mayRevoke: visit.may(actions.revoke),
    created,
    done: request.query.get('done') ?? '',
  }
  return visit.page(title, path, content(props, visit), { status, showsSecret: created !== undefined })
}
