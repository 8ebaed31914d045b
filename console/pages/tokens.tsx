import { countColumn, timeColumn } from '../design/columns.tsx'
import { CsvLink } from '../design/csv-link.tsx'
import { FormError } from '../design/form.tsx'
import { Card, countText, Empty, Notice, PageHead, Time } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { TokenRow } from '../views/tokens.ts'
import {
  EndedSecrets,
  LabelField,
  labelColumn,
  revokeColumn,
  SecretNotice,
  type SecretsProps,
  secretCsvColumns,
} from './secrets.tsx'

export interface TokensProps extends SecretsProps<TokenRow> {
  readonly mayVerify: boolean
}

export function Tokens(props: TokensProps) {
  const { view, form, nowMs, mayCreate, mayVerify, mayRevoke, created, done } = props
  const { active, ended } = view
  return (
    <>
      <PageHead title="Monitoring Tokens" about="Collectors and log senders authenticate with a token">
        <a class="button" href="/setup-guide">
          Setup
        </a>
        {active.length + ended.length > 0 && <CsvLink path="/monitoring-tokens" />}
      </PageHead>
      {done === 'revoked' && <Notice title="The token is revoked. Its senders are rejected from now on" />}
      <SecretNotice kind="token" created={created}>
        <a href="/setup-guide">Setup</a> says where to put it.
      </SecretNotice>
      <div class={mayCreate ? 'wide' : undefined}>
        {active.length === 0 ? (
          <Empty title="No active token">
            <p class="muted">
              {mayCreate
                ? 'Generate a token first. Then start a collector or a log sender with it.'
                : 'Ask an admin of the organization to generate one.'}
            </p>
          </Empty>
        ) : (
          <Card title="Active tokens" note={countText(active.length)} bare>
            <Table
              id="tokens"
              label="Active tokens"
              columns={[...tokenColumns(nowMs, mayRevoke), ...(mayVerify ? [verifyColumn] : [])]}
              rows={active}
            />
          </Card>
        )}
        {mayCreate && (
          <Card title="Generate token">
            <form class="stack" method="post" action="/monitoring-tokens">
              <FormError form={form} />
              <LabelField form={form} hint="The sensor or sender that will use it." />
              <button class="first" type="submit">
                Generate Token
              </button>
            </form>
          </Card>
        )}
      </div>
      <EndedSecrets label="Revoked and expired tokens" columns={[tokenLabel(nowMs)]} rows={ended} nowMs={nowMs} />
    </>
  )
}

const tokenLabel = (nowMs: number): Column<TokenRow> =>
  labelColumn('svc_mt_', nowMs, ({ bindings, ownFormat, forwardedClients }) =>
    [
      ...bindings,
      ...(ownFormat === '' ? [] : [`custom format ${ownFormat}`]),
      ...(forwardedClients ? ['forwarded clients'] : []),
    ].join(', '),
  )

export function tokenColumns(nowMs: number, mayRevoke: boolean): readonly Column<TokenRow>[] {
  return [
    tokenLabel(nowMs),
    {
      id: 'created',
      name: 'Generated',
      cell: ({ createdAtMs }) => <Time ms={createdAtMs} nowMs={nowMs} />,
      wide: true,
    },
    { ...countColumn('messages', 'Messages', ({ messages }: TokenRow) => messages), wide: true },
    { ...timeColumn('seen', 'Last message', nowMs, ({ lastSeenMs }: TokenRow) => lastSeenMs), wide: true },
    { id: 'bindings', name: 'Bound to', csv: ({ bindings }) => bindings.join(', ') },
    { id: 'custom_format', name: 'Custom format', csv: ({ ownFormat }) => ownFormat },
    { id: 'forwarded_clients', name: 'Forwarded clients', csv: ({ forwardedClients }) => String(forwardedClients) },
    ...secretCsvColumns<TokenRow>('svc_mt_', nowMs),
    ...(mayRevoke ? [revokeColumn<TokenRow>('/monitoring-tokens')] : []),
  ]
}

const verifyColumn: Column<TokenRow> = {
  id: 'verify',
  name: 'Verify',
  cell: ({ id, label }) => (
    <a class="button" href={`/monitoring-tokens/${id}/verify`} aria-label={`Verify ${label}`}>
      Verify
    </a>
  ),
  quiet: true,
}
