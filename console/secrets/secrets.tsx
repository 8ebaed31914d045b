import type { ComponentChildren } from 'preact'
import type { Action } from '../../engine/admin/actions.ts'
import { type Secret, type SecretStatus, statusOf } from '../../engine/store/secrets.ts'
import { Field, Form, TwoStep } from '../design/form.tsx'
import { CsvLink } from '../design/list.tsx'
import { Card, countText, Empty, Notice, PageHead, SecretText, Time } from '../design/parts.tsx'
import { type Column, csvOnly, Table, timeColumn, type Viewer } from '../design/table.tsx'
import { EMPTY_FORM, type FormState } from '../form.ts'
import type { Answer } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { changeForm, form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

/** An API key, a monitoring token or a link of block lists. */
export interface SecretRow extends Secret {
  readonly status: SecretStatus
  /** 0: it does not expire. */
  readonly expiresAtMs: number
  /** When it was revoked or expired; 0 while it is active. */
  readonly endedAtMs: number
}

export function secretRow<S extends Secret>(secret: S, nowMs: number): S & SecretRow {
  const { revokedAtMs, expiresAtMs = 0 } = secret
  const status = statusOf(secret, nowMs)
  const endedAtMs = status === 'revoked' ? revokedAtMs : status === 'expired' ? expiresAtMs : 0
  return { ...secret, status, expiresAtMs, endedAtMs }
}

/** A secret that was just created. One page shows it, once. */
export interface CreatedSecret {
  readonly label: string
  readonly raw: string
  /** The id of its record. */
  readonly id: string
}

export function LabelField({ form, hint }: { readonly form: FormState; readonly hint: string }) {
  return <Field name="label" label="Label" form={form} required maxLength={255} hint={hint} />
}

/** The column with the label of a secret and its first digits. `more` is what else it says. */
export function labelColumn<Row extends SecretRow>(
  prefix: string,
  more: (row: Row, viewer: Viewer) => ComponentChildren,
): Column<Row> {
  return {
    id: 'label',
    name: 'Label',
    cell: (row, viewer) => (
      <>
        <strong>{row.label}</strong>
        <p class="small muted">
          <span class="mono">
            {prefix}
            {row.visible}…
          </span>{' '}
          {more(row, viewer)}
          {row.status === 'active' && row.expiresAtMs > 0 && (
            <>
              {' '}
              · expires <Time ms={row.expiresAtMs} nowMs={viewer.nowMs} />
            </>
          )}
        </p>
      </>
    ),
    csv: ({ label }) => label,
  }
}

/** The facts of a secret that only the CSV file has in columns of their own. */
export function secretCsvColumns<Row extends SecretRow>(prefix: string): readonly Column<Row>[] {
  const times: readonly Column<Row>[] = [
    timeColumn('created', 'Created', ({ createdAtMs }) => createdAtMs),
    timeColumn('expires', 'Expires', ({ expiresAtMs }) => expiresAtMs),
    timeColumn('ended', 'Ended', ({ endedAtMs }) => endedAtMs),
  ]
  return [
    { id: 'begins', name: 'Begins with', csv: ({ visible }) => `${prefix}${visible}` },
    { id: 'status', name: 'Status', csv: ({ status }) => status },
    ...times.map(csvOnly),
  ]
}

/** A column with a button that revokes the secret. */
export function revokeColumn<Row extends SecretRow>(path: string, action: Action): Column<Row> {
  return {
    id: 'revoke',
    name: 'Revoke',
    action,
    quiet: true,
    cell: ({ id, label }) => <TwoStep action={`${path}/${id}/revoke`} verb="Revoke" label={label} />,
  }
}

/** The page of one kind of secrets. */
interface SecretPages<Row extends SecretRow> {
  readonly path: string
  readonly title: string
  readonly about: string
  /** More links in the heading. */
  readonly links?: ComponentChildren
  readonly noun: 'key' | 'token' | 'link'
  readonly verb: 'Create' | 'Generate'
  readonly actions: {
    readonly read: Action
    readonly create: 'api-key.create' | 'token.generate' | 'block-list-link.create'
    readonly revoke: 'api-key.revoke' | 'token.revoke' | 'block-list-link.revoke'
  }
  readonly rows: (visit: Visit) => readonly Row[]
  readonly columns: readonly Column<Row>[]
  /** The columns of revoked and expired secrets, in addition to what became of them. */
  readonly endedColumns: readonly Column<Row>[]
  /** Active secrets at a time; undefined: no limit. */
  readonly max?: number
  /** Why to create one, while there is none. */
  readonly why: string
  /** What will use a new one. */
  readonly hint: string
  /** More fields of the form. */
  readonly fields?: (form: FormState) => ComponentChildren
  /** How to use a new secret. */
  readonly use: ComponentChildren
  /** More about a new secret. */
  readonly created?: (created: CreatedSecret, visit: Visit) => ComponentChildren
  /** Below the list of active secrets. */
  readonly remark?: ComponentChildren
  /** The notice after a secret is revoked. */
  readonly revoked: string
  readonly create: (visit: Visit) => Promise<{ readonly raw: string; readonly record: { readonly id: string } }>
}

/** The routes that list secrets, create them, show each new one once, and revoke them. */
export function secretRoutes<Row extends SecretRow>(pages: SecretPages<Row>): readonly Route[] {
  const { path, actions } = pages
  return [
    page(path, actions.read, (visit) => secretsPage(pages, visit, EMPTY_FORM)),
    form(
      path,
      actions.create,
      async (visit) => {
        const { raw, record } = await pages.create(visit)
        const label = visit.request.fields.text('label').trim()
        return visit.redirectToShow(path, { label, raw, id: record.id } satisfies CreatedSecret)
      },
      { confirmed: true, again: (visit, state) => secretsPage(pages, visit, state) },
    ),
    changeForm(`${path}/:id/revoke`, actions.revoke, (given) => given as { id: string }, `${path}?done=revoked`, {
      confirmed: true,
    }),
    csvFile(path, actions.read, pages.columns, (visit) => {
      const { active, ended } = listed(pages, visit)
      return [...active, ...ended]
    }),
  ]
}

/** Newest first. */
function listed<Row extends SecretRow>(pages: SecretPages<Row>, visit: Visit) {
  const rows = pages.rows(visit).toSorted((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : 1))
  const isActive = ({ status }: Row): boolean => status === 'active'
  return { active: rows.filter(isActive), ended: rows.filter((row) => !isActive(row)) }
}

function secretsPage<Row extends SecretRow>(pages: SecretPages<Row>, visit: Visit, form: FormState): Answer {
  const created = visit.shownOnce<CreatedSecret>()
  return visit.page(pages.title, pages.path, Secrets({ pages, visit, form, created }), {
    form,
    done: { revoked: pages.revoked },
    showsSecret: created !== undefined,
  })
}

interface SecretsProps<Row extends SecretRow> {
  readonly pages: SecretPages<Row>
  readonly visit: Visit
  readonly form: FormState
  readonly created: CreatedSecret | undefined
}

function Secrets<Row extends SecretRow>({ pages, visit, form, created }: SecretsProps<Row>) {
  const { path, verb, noun, max } = pages
  const { active, ended } = listed(pages, visit)
  const mayCreate = visit.may(pages.actions.create)
  const label = `Active ${noun}s`
  const kind = noun === 'link' ? 'secret' : noun
  const endedColumns: readonly Column<Row>[] = [
    ...pages.endedColumns,
    { id: 'status', name: 'Status', cell: ({ status }) => status },
    timeColumn('ended', 'When', ({ endedAtMs }) => endedAtMs),
  ]
  return (
    <>
      <PageHead title={pages.title} about={pages.about}>
        {pages.links}
        {active.length + ended.length > 0 && <CsvLink path={path} />}
      </PageHead>
      {created !== undefined && (
        <Notice title={`Copy the ${kind} “${created.label}” now. It will not be shown again`}>
          <SecretText id="secret" value={created.raw} />
          <p class="small">
            {pages.use} Only a hash of the {kind} is stored here.
          </p>
        </Notice>
      )}
      {created !== undefined && pages.created?.(created, visit)}
      <div class={mayCreate ? 'wide' : undefined}>
        {active.length === 0 ? (
          <Empty title={`No active ${noun}`}>
            <p class="muted">
              {mayCreate ? pages.why : `Ask an admin of the organization to ${verb.toLowerCase()} one.`}
            </p>
          </Empty>
        ) : (
          <Card title={label} note={max === undefined ? countText(active.length) : `${active.length} of ${max}`} bare>
            <Table visit={visit} id={`${noun}s`} label={label} columns={pages.columns} rows={active} />
          </Card>
        )}
        {mayCreate && (
          <Card title={`${verb} ${noun}`}>
            {max !== undefined && active.length >= max ? (
              <p class="muted">
                {max} {noun}s are active, which is the limit. Revoke one first.
              </p>
            ) : (
              <Form action={path} form={form} submit={`${verb} ${noun.charAt(0).toUpperCase()}${noun.slice(1)}`}>
                <LabelField form={form} hint={pages.hint} />
                {pages.fields?.(form)}
              </Form>
            )}
          </Card>
        )}
      </div>
      {active.length > 0 && pages.remark}
      {ended.length > 0 && (
        <details class="past">
          <summary>{countText(ended.length)} revoked or expired</summary>
          <div class="card">
            <Table
              visit={visit}
              id="ended"
              label={`Revoked and expired ${noun}s`}
              columns={endedColumns}
              rows={ended}
            />
          </div>
        </details>
      )}
    </>
  )
}
