import { ACTIVE_API_KEYS_MAX } from '../../engine/admin/api-keys.ts'
import { SCOPES, type Scope } from '../../engine/store/api-keys.ts'
import { Checks, Field, FormError } from '../design/form.tsx'
import { Card, countText, Empty, Notice, PageHead, Secret, Tag, Time } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { FormState } from '../form.ts'
import type { ApiKeyRow, ApiKeysView } from '../views/api-keys.ts'
import { Revoke } from './revoke.tsx'

export const SCOPE_NAMES: Readonly<Record<Scope, string>> = {
  'discovery:read': 'Discovery',
  'scores:read': 'Scores',
  'recommendations:read': 'Recommendations',
  'assessments:read': 'Assessments',
}

export interface ApiKeysProps {
  readonly view: ApiKeysView
  readonly form: FormState
  readonly nowMs: number
  readonly mayCreate: boolean
  readonly mayRevoke: boolean
  /** A key that was just created. Only this page shows it. */
  readonly created: { readonly label: string; readonly raw: string } | undefined
  readonly done: string
}

export function ApiKeys({ view, form, nowMs, mayCreate, mayRevoke, created, done }: ApiKeysProps) {
  const { active, ended } = view
  const isFull = active.length >= ACTIVE_API_KEYS_MAX
  return (
    <>
      <PageHead title="API keys" about="Programs read the findings of this organization with a key" />
      {done === 'revoked' && <Notice title="The key is revoked. Its next request is rejected" />}
      {created !== undefined && (
        <Notice title={`Copy the key “${created.label}” now. It will not be shown again`}>
          <Secret id="secret" value={created.raw} />
          <p class="small">
            Send it in the header <code>X-API-Key</code>. Only a hash of the key is stored here.
          </p>
        </Notice>
      )}
      <div class={mayCreate ? 'wide' : undefined}>
        {active.length === 0 ? (
          <Empty title="No active key">
            <p class="muted">Create a key for each program that reads the API, so that you can revoke it alone.</p>
          </Empty>
        ) : (
          <Card title="Active keys" note={`${active.length} of ${ACTIVE_API_KEYS_MAX}`} bare>
            <Table id="keys" label="Active keys" columns={columns(nowMs, mayRevoke)} rows={active} />
          </Card>
        )}
        {mayCreate && (
          <Card title="Create key">
            {isFull ? (
              <p class="muted">{ACTIVE_API_KEYS_MAX} keys are active, which is the limit. Revoke one first.</p>
            ) : (
              <form class="stack" method="post" action="/api-keys">
                <FormError form={form} />
                <Field
                  name="label"
                  label="Label"
                  form={form}
                  required
                  maxLength={255}
                  hint="The program that will use it."
                />
                <Checks
                  name="scopes"
                  label="What it can read"
                  form={form}
                  options={SCOPES.map((scope) => [scope, SCOPE_NAMES[scope]])}
                />
                <button class="first" type="submit">
                  Create Key
                </button>
              </form>
            )}
          </Card>
        )}
      </div>
      {ended.length > 0 && (
        <details class="past">
          <summary>{countText(ended.length)} revoked or expired</summary>
          <div class="card">
            <Table id="ended" label="Revoked and expired keys" columns={endedColumns(nowMs)} rows={ended} />
          </div>
        </details>
      )}
    </>
  )
}

function labelCell({ label, visible, createdAtMs, status, expiresAtMs }: ApiKeyRow, nowMs: number) {
  return (
    <>
      <strong>{label}</strong>
      <p class="small muted">
        <span class="mono">svc_pk_{visible}…</span> <Time ms={createdAtMs} nowMs={nowMs} />
        {status === 'active' && expiresAtMs > 0 && (
          <>
            , expires <Time ms={expiresAtMs} nowMs={nowMs} />
          </>
        )}
      </p>
    </>
  )
}

function scopesText({ scopes }: ApiKeyRow): string {
  return scopes.length === SCOPES.length ? 'All' : scopes.map((scope) => SCOPE_NAMES[scope]).join(', ')
}

function columns(nowMs: number, mayRevoke: boolean): readonly Column<ApiKeyRow>[] {
  const all: readonly Column<ApiKeyRow>[] = [
    { id: 'label', name: 'Label', cell: (row) => labelCell(row, nowMs) },
    { id: 'scopes', name: 'Scopes', cell: scopesText, wide: true },
    {
      id: 'used',
      name: 'Last used',
      cell: ({ lastUsedMs, isUnused }) => {
        const time = <Time ms={lastUsedMs} nowMs={nowMs} />
        return isUnused ? <Tag tone="warn">{time}</Tag> : time
      },
    },
  ]
  if (!mayRevoke) return all
  return [
    ...all,
    {
      id: 'revoke',
      name: 'Revoke',
      cell: ({ id, label }) => <Revoke action={`/api-keys/${id}/revoke`} label={label} />,
      quiet: true,
    },
  ]
}

function endedColumns(nowMs: number): readonly Column<ApiKeyRow>[] {
  return [
    { id: 'label', name: 'Label', cell: (row) => labelCell(row, nowMs) },
    { id: 'scopes', name: 'Scopes', cell: scopesText, wide: true },
    { id: 'status', name: 'Status', cell: ({ status }) => status },
    { id: 'ended', name: 'When', cell: ({ endedAtMs }) => <Time ms={endedAtMs} nowMs={nowMs} /> },
  ]
}
