import { ACTIVE_API_KEYS_MAX } from '../../engine/admin/api-keys.ts'
import { SCOPES, type Scope } from '../../engine/store/api-keys.ts'
import { Checks, FormError } from '../design/form.tsx'
import { Card, Empty, Notice, PageHead, Tag, Time } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { ApiKeyRow } from '../views/api-keys.ts'
import { EndedSecrets, LabelField, revokeColumn, SecretLabel, SecretNotice, type SecretsProps } from './secrets.tsx'

export const SCOPE_NAMES: Readonly<Record<Scope, string>> = {
  'discovery:read': 'Discovery',
  'scores:read': 'Scores',
  'recommendations:read': 'Recommendations',
  'assessments:read': 'Assessments',
}

export function ApiKeys(props: SecretsProps<ApiKeyRow>) {
  const { view, form, nowMs, mayCreate, mayRevoke, created, done } = props
  const { active, ended } = view
  const isFull = active.length >= ACTIVE_API_KEYS_MAX
  return (
    <>
      <PageHead title="API keys" about="Programs read the findings of this organization with a key" />
      {done === 'revoked' && <Notice title="The key is revoked. Its next request is rejected" />}
      <SecretNotice kind="key" created={created}>
        Send it in the header <code>X-API-Key</code>.
      </SecretNotice>
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
                <LabelField form={form} hint="The program that will use it." />
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
      <EndedSecrets label="Revoked and expired keys" columns={describingColumns(nowMs)} rows={ended} nowMs={nowMs} />
    </>
  )
}

function scopesText({ scopes }: ApiKeyRow): string {
  return scopes.length === SCOPES.length ? 'All' : scopes.map((scope) => SCOPE_NAMES[scope]).join(', ')
}

function describingColumns(nowMs: number): readonly Column<ApiKeyRow>[] {
  return [
    {
      id: 'label',
      name: 'Label',
      cell: (row) => (
        <SecretLabel row={row} prefix="svc_pk_" nowMs={nowMs}>
          <Time ms={row.createdAtMs} nowMs={nowMs} />
        </SecretLabel>
      ),
    },
    { id: 'scopes', name: 'Scopes', cell: scopesText, wide: true },
  ]
}

function columns(nowMs: number, mayRevoke: boolean): readonly Column<ApiKeyRow>[] {
  return [
    ...describingColumns(nowMs),
    {
      id: 'used',
      name: 'Last used',
      cell: ({ lastUsedMs, isUnused }) => {
        const time = <Time ms={lastUsedMs} nowMs={nowMs} />
        return isUnused ? <Tag tone="warn">{time}</Tag> : time
      },
    },
    ...(mayRevoke ? [revokeColumn<ApiKeyRow>('/api-keys')] : []),
  ]
}
