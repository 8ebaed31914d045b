import type { ComponentChildren } from 'preact'
import { csvOnly, timeColumn } from '../design/columns.tsx'
import { Field } from '../design/form.tsx'
import { countText, Notice, Secret, Time } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import { TwoStep } from '../design/two-step.tsx'
import type { FormState } from '../form.ts'
import type { SecretRow, SecretsView } from '../views/secrets.ts'

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

export interface SecretNoticeProps {
  readonly kind: 'key' | 'token' | 'secret'
  readonly created: CreatedSecret | undefined
  /** How to use the secret. */
  readonly children: ComponentChildren
}

/** Shows a new secret. */
export function SecretNotice({ kind, created, children }: SecretNoticeProps) {
  return created === undefined ? null : (
    <Notice title={`Copy the ${kind} “${created.label}” now. It will not be shown again`}>
      <Secret id="secret" value={created.raw} />
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

export interface EndedSecretsProps<Row extends SecretRow> {
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
