import type { ComponentChildren, VNode } from 'preact'
import type { Action } from '../../engine/admin/actions.ts'
import { type Secret, type SecretStatus, statusOf } from '../../engine/store/secrets.ts'
import { Field, FormError, TwoStep } from '../design/form.tsx'
import { Card, countText, Empty, Notice, SecretText, Time } from '../design/parts.tsx'
import { type Column, csvOnly, Table, timeColumn } from '../design/table.tsx'
import { EMPTY_FORM, type FormState, refusedForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

/** The common facts of an API key and a monitoring token. */
export interface SecretRow {
  readonly id: string
  readonly label: string
  /** The first digits. */
  readonly visible: string
  readonly createdAtMs: number
  readonly status: SecretStatus
  /** 0: it does not expire. */
  readonly expiresAtMs: number
  /** When it was revoked or expired; 0 while it is active. */
  readonly endedAtMs: number
}

export interface SecretsView<Row extends SecretRow> {
  /** Newest first. */
  readonly active: readonly Row[]
  /** Revoked or expired, newest first. */
  readonly ended: readonly Row[]
}

export function secretRow(secret: Secret, nowMs: number): SecretRow {
  const { id, label, visible, createdAtMs, revokedAtMs, expiresAtMs = 0 } = secret
  const status = statusOf(secret, nowMs)
  const endedAtMs = status === 'revoked' ? revokedAtMs : status === 'expired' ? expiresAtMs : 0
  return { id, label, visible, createdAtMs, status, expiresAtMs, endedAtMs }
}

export function secretsView<Row extends SecretRow>(rows: readonly Row[]): SecretsView<Row> {
  const newestFirst = [...rows].sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : 1))
  return {
    active: newestFirst.filter(({ status }) => status === 'active'),
    ended: newestFirst.filter(({ status }) => status !== 'active'),
  }
}

/** A secret that was just created. One page shows it, once. */
export interface CreatedSecret {
  readonly label: string
  readonly raw: string
  /** The id of its record. */
  readonly id: string
}

/** Input of the pages that create secrets: API keys, monitoring tokens and links of block lists. */
export interface SecretsProps<Row extends SecretRow> {
  readonly view: SecretsView<Row>
  readonly form: FormState
  readonly nowMs: number
  readonly mayCreate: boolean
  readonly mayRevoke: boolean
  readonly created: CreatedSecret | undefined
  readonly done: string
}

interface SecretNoticeProps {
  readonly kind: 'key' | 'token' | 'secret'
  readonly created: CreatedSecret | undefined
  /** How to use the secret. */
  readonly children: ComponentChildren
}

/** Shows a new secret. */
export function SecretNotice({ kind, created, children }: SecretNoticeProps) {
  return created === undefined ? null : (
    <Notice title={`Copy the ${kind} “${created.label}” now. It will not be shown again`}>
      <SecretText id="secret" value={created.raw} />
      <p class="small">
        {children} Only a hash of the {kind} is stored here.
      </p>
    </Notice>
  )
}

export function LabelField({ form, hint }: { readonly form: FormState; readonly hint: string }) {
  return <Field name="label" label="Label" form={form} required maxLength={255} hint={hint} />
}

/** The label, the first digits and more facts of a secret. */
export function SecretLabel({
  row: { label, visible, status, expiresAtMs },
  prefix,
  nowMs,
  children,
}: {
  readonly row: SecretRow
  readonly prefix: string
  readonly nowMs: number
  readonly children?: ComponentChildren
}) {
  return (
    <>
      <strong>{label}</strong>
      <p class="small muted">
        <span class="mono">
          {prefix}
          {visible}…
        </span>{' '}
        {children}
        {status === 'active' && expiresAtMs > 0 && (
          <>
            {' '}
            · expires <Time ms={expiresAtMs} nowMs={nowMs} />
          </>
        )}
      </p>
    </>
  )
}

/** The column with the label of a secret. `more` is what else it says. */
export function labelColumn<Row extends SecretRow>(
  prefix: string,
  nowMs: number,
  more: (row: Row) => ComponentChildren,
): Column<Row> {
  return {
    id: 'label',
    name: 'Label',
    cell: (row) => (
      <SecretLabel row={row} prefix={prefix} nowMs={nowMs}>
        {more(row)}
      </SecretLabel>
    ),
    csv: ({ label }) => label,
  }
}

/** The facts of a secret that only the CSV file has in columns of their own. */
export function secretCsvColumns<Row extends SecretRow>(prefix: string, nowMs: number): readonly Column<Row>[] {
  const times: readonly Column<Row>[] = [
    timeColumn('created', 'Created', nowMs, ({ createdAtMs }) => createdAtMs),
    timeColumn('expires', 'Expires', nowMs, ({ expiresAtMs }) => expiresAtMs),
    timeColumn('ended', 'Ended', nowMs, ({ endedAtMs }) => endedAtMs),
  ]
  return [
    { id: 'begins', name: 'Begins with', csv: ({ visible }) => `${prefix}${visible}` },
    { id: 'status', name: 'Status', csv: ({ status }) => status },
    ...times.map(csvOnly),
  ]
}

/** A column with a button that revokes the secret. */
export function revokeColumn<Row extends SecretRow>(path: string): Column<Row> {
  return {
    id: 'revoke',
    name: 'Revoke',
    cell: ({ id, label }) => <TwoStep action={`${path}/${id}/revoke`} verb="Revoke" label={label} />,
    quiet: true,
  }
}

interface ActiveSecretsProps<Row extends SecretRow> extends Pick<SecretsProps<Row>, 'form' | 'mayCreate'> {
  /** The form is posted to this path. */
  readonly path: string
  readonly verb: 'Create' | 'Generate'
  readonly noun: 'key' | 'token' | 'link'
  readonly rows: readonly Row[]
  readonly columns: readonly Column<Row>[]
  /** Active secrets at a time; undefined: no limit. */
  readonly max?: number
  /** Why to create one, while there is none. */
  readonly why: string
  /** What will use a new one. */
  readonly hint: string
  /** More fields of the form. */
  readonly children?: ComponentChildren
}

/** The active secrets, and the form that creates another one. */
export function ActiveSecrets<Row extends SecretRow>(props: ActiveSecretsProps<Row>) {
  const { path, verb, noun, rows, columns, max, why, hint, form, mayCreate, children } = props
  const label = `Active ${noun}s`
  const note = max === undefined ? countText(rows.length) : `${rows.length} of ${max}`
  return (
    <div class={mayCreate ? 'wide' : undefined}>
      {rows.length === 0 ? (
        <Empty title={`No active ${noun}`}>
          <p class="muted">{mayCreate ? why : `Ask an admin of the organization to ${verb.toLowerCase()} one.`}</p>
        </Empty>
      ) : (
        <Card title={label} note={note} bare>
          <Table id={`${noun}s`} label={label} columns={columns} rows={rows} />
        </Card>
      )}
      {mayCreate && (
        <Card title={`${verb} ${noun}`}>
          {max !== undefined && rows.length >= max ? (
            <p class="muted">
              {max} {noun}s are active, which is the limit. Revoke one first.
            </p>
          ) : (
            <form class="stack" method="post" action={path}>
              <FormError form={form} />
              <LabelField form={form} hint={hint} />
              {children}
              <button class="first" type="submit">
                {verb} {noun.charAt(0).toUpperCase() + noun.slice(1)}
              </button>
            </form>
          )}
        </Card>
      )}
    </div>
  )
}

interface EndedSecretsProps<Row extends SecretRow> {
  readonly label: string
  /** The columns that describe the secret. */
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly nowMs: number
}

/** The revoked and expired secrets, collapsed. */
export function EndedSecrets<Row extends SecretRow>({ label, columns, rows, nowMs }: EndedSecretsProps<Row>) {
  if (rows.length === 0) return null
  const all: readonly Column<Row>[] = [
    ...columns,
    { id: 'status', name: 'Status', cell: ({ status }) => status },
    { id: 'ended', name: 'When', cell: ({ endedAtMs }) => <Time ms={endedAtMs} nowMs={nowMs} /> },
  ]
  return (
    <details class="past">
      <summary>{countText(rows.length)} revoked or expired</summary>
      <div class="card">
        <Table id="ended" label={label} columns={all} rows={rows} />
      </div>
    </details>
  )
}

/** What a form that creates a secret contains, or the errors of the form. */
type NewSecret =
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
