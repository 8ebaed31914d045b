import { Field, FormError } from '../design/form.tsx'
import { Card, countText, Empty, Notice, PageHead, Secret, Time } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { FormState } from '../form.ts'
import type { TokenRow, TokensView } from '../views/tokens.ts'
import { Revoke } from './revoke.tsx'

export interface TokensProps {
  readonly view: TokensView
  readonly form: FormState
  readonly nowMs: number
  readonly mayGenerate: boolean
  readonly mayVerify: boolean
  readonly mayRevoke: boolean
  /** A token that was just generated. Only this page shows it. */
  readonly generated: { readonly label: string; readonly raw: string } | undefined
  readonly done: string
}

export function Tokens({ view, form, nowMs, mayGenerate, mayVerify, mayRevoke, generated, done }: TokensProps) {
  const { active, ended } = view
  return (
    <>
      <PageHead title="Monitoring tokens" about="Collectors and log senders authenticate with a token" />
      {done === 'revoked' && <Notice title="The token is revoked. Its senders are rejected from now on" />}
      {generated !== undefined && (
        <Notice title={`Copy the token “${generated.label}” now. It will not be shown again`}>
          <Secret id="secret" value={generated.raw} />
          <p class="small">
            For a collector, set it as <code>SVC_TOKEN</code>. Only a hash of the token is stored here.
          </p>
        </Notice>
      )}
      <div class={mayGenerate ? 'wide' : undefined}>
        {active.length === 0 ? (
          <Empty title="No active token">
            <p class="muted">
              {mayGenerate
                ? 'Generate a token first. Then start a collector or a log sender with it.'
                : 'Ask an admin of the organization to generate one.'}
            </p>
          </Empty>
        ) : (
          <Card title="Active tokens" note={countText(active.length)} bare>
            <Table id="tokens" label="Active tokens" columns={columns(nowMs, mayVerify, mayRevoke)} rows={active} />
          </Card>
        )}
        {mayGenerate && (
          <Card title="Generate token">
            <form class="stack" method="post" action="/monitoring-tokens">
              <FormError form={form} />
              <Field
                name="label"
                label="Label"
                form={form}
                required
                maxLength={255}
                hint="The sensor or sender that will use it."
              />
              <button class="first" type="submit">
                Generate Token
              </button>
            </form>
          </Card>
        )}
      </div>
      {ended.length > 0 && (
        <details class="past">
          <summary>{countText(ended.length)} revoked or expired</summary>
          <div class="card">
            <Table id="ended" label="Revoked and expired tokens" columns={endedColumns(nowMs)} rows={ended} />
          </div>
        </details>
      )}
    </>
  )
}

function labelCell({ label, visible, bindings, status, expiresAtMs }: TokenRow, nowMs: number) {
  return (
    <>
      <strong>{label}</strong>
      <p class="small muted">
        <span class="mono">svc_mt_{visible}…</span>
        {bindings.length > 0 && ` ${bindings.join(', ')}`}
        {status === 'active' && expiresAtMs > 0 && (
          <>
            , expires <Time ms={expiresAtMs} nowMs={nowMs} />
          </>
        )}
      </p>
    </>
  )
}

function columns(nowMs: number, mayVerify: boolean, mayRevoke: boolean): readonly Column<TokenRow>[] {
  const all: readonly Column<TokenRow>[] = [
    { id: 'label', name: 'Label', cell: (row) => labelCell(row, nowMs) },
    {
      id: 'created',
      name: 'Generated',
      cell: ({ createdAtMs }) => <Time ms={createdAtMs} nowMs={nowMs} />,
      wide: true,
    },
    { id: 'messages', name: 'Messages', cell: ({ messages }) => countText(messages), number: true, wide: true },
    { id: 'seen', name: 'Last message', cell: ({ lastSeenMs }) => <Time ms={lastSeenMs} nowMs={nowMs} /> },
  ]
  const verify: Column<TokenRow> = {
    id: 'verify',
    name: 'Verify',
    cell: ({ id, label }) => (
      <a class="button" href={`/monitoring-tokens/${id}/verify`} aria-label={`Verify ${label}`}>
        Verify
      </a>
    ),
    quiet: true,
  }
  const revoke: Column<TokenRow> = {
    id: 'revoke',
    name: 'Revoke',
    cell: ({ id, label }) => <Revoke action={`/monitoring-tokens/${id}/revoke`} label={label} />,
    quiet: true,
  }
  return [...all, ...(mayVerify ? [verify] : []), ...(mayRevoke ? [revoke] : [])]
}

function endedColumns(nowMs: number): readonly Column<TokenRow>[] {
  return [
    { id: 'label', name: 'Label', cell: (row) => labelCell(row, nowMs) },
    { id: 'status', name: 'Status', cell: ({ status }) => status },
    { id: 'ended', name: 'When', cell: ({ endedAtMs }) => <Time ms={endedAtMs} nowMs={nowMs} /> },
  ]
}
