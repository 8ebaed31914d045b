import { describeBinding } from '../../engine/admin/tokens.ts'
import { CsvLink } from '../design/list.tsx'
import { Notice, PageHead, Time } from '../design/parts.tsx'
import { type Column, countColumn, timeColumn } from '../design/table.tsx'
import type { Visit } from '../http/visit.ts'
import {
  ActiveSecrets,
  EndedSecrets,
  labelColumn,
  revokeColumn,
  SecretNotice,
  type SecretRow,
  type SecretsProps,
  type SecretsView,
  secretCsvColumns,
  secretRoutes,
  secretRow,
  secretsView,
} from './secrets.tsx'

interface TokenRow extends SecretRow {
  /** Networks and ports that are bound to this token. */
  readonly bindings: readonly string[]
  /** The name of its custom format; '' without one. */
  readonly ownFormat: string
  readonly forwardedClients: boolean
  readonly senders: number
  readonly messages: number
  /** 0: no message has arrived. */
  readonly lastSeenMs: number
}

/** Monitoring tokens, newest first, with their messages. */
function tokensView({ site, organization, nowMs }: Visit): SecretsView<TokenRow> {
  const { monitoringTokens, tokenBindings, sources } = site.store
  const arrived = new Map<string, { senders: number; messages: number; lastSeenMs: number }>()
  for (const { tokenId, received, lastSeenMs } of sources.heads(organization.id)) {
    const before = arrived.get(tokenId) ?? { senders: 0, messages: 0, lastSeenMs: 0 }
    arrived.set(tokenId, {
      senders: before.senders + 1,
      messages: before.messages + received,
      lastSeenMs: Math.max(before.lastSeenMs, lastSeenMs),
    })
  }
  const rows = monitoringTokens.ofOrganization(organization.id).map((token): TokenRow => {
    const bindings = tokenBindings.ofToken(organization.id, token.id).map(describeBinding)
    const { senders = 0, messages = 0, lastSeenMs = 0 } = arrived.get(token.id) ?? {}
    return {
      ...secretRow(token, nowMs),
      bindings,
      ownFormat: token.formatRule?.name ?? '',
      forwardedClients: token.forwardedClients === true,
      senders,
      messages,
      lastSeenMs,
    }
  })
  return secretsView(rows)
}

interface TokensProps extends SecretsProps<TokenRow> {
  readonly mayVerify: boolean
}

function Tokens(props: TokensProps) {
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
      <ActiveSecrets
        {...{ path: '/monitoring-tokens', verb: 'Generate', noun: 'token', rows: active, form, mayCreate }}
        columns={[...tokenColumns(nowMs, mayRevoke), ...(mayVerify ? [verifyColumn] : [])]}
        why="Generate a token first. Then start a collector or a log sender with it."
        hint="The sensor or sender that will use it."
      />
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

function tokenColumns(nowMs: number, mayRevoke: boolean): readonly Column<TokenRow>[] {
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

export const TOKEN_ROUTES = secretRoutes({
  path: '/monitoring-tokens',
  title: 'Monitoring Tokens',
  actions: { read: 'token.read', create: 'token.generate', revoke: 'token.revoke' },
  view: tokensView,
  content: (props, visit) => Tokens({ ...props, mayVerify: visit.may('token.verify') }),
  columns: tokenColumns,
  readNew: (visit) => {
    const { fields } = visit.request
    const label = fields.text('label').trim()
    if (label === '') return { state: { values: fields, errors: { label: 'Enter a label' } } }
    return { label, create: () => visit.change('token.generate', { label }) }
  },
  revoke: (visit, id) => visit.change('token.revoke', { id }),
})
