import { z } from 'zod'
import { describeBinding } from '../../engine/admin/tokens.ts'
import { type Column, countColumn, timeColumn } from '../design/table.tsx'
import type { Visit } from '../http/visit.ts'
import { labelColumn, revokeColumn, type SecretRow, secretCsvColumns, secretRoutes, secretRow } from './secrets.tsx'

const PATH = '/monitoring-tokens'
const PREFIX = 'svc_mt_'

interface TokenRow extends SecretRow {
  /** Networks and ports that are bound to this token. */
  readonly bindings: readonly string[]
  /** The name of its custom format; '' without one. */
  readonly ownFormat: string
  readonly forwardsClients: boolean
  readonly messages: number
  /** 0: no message has arrived. */
  readonly lastSeenMs: number
}

const NOTHING = { messages: 0, lastSeenMs: 0 }

/** Monitoring tokens with their messages. */
function tokenRows({ site, organization, nowMs }: Visit): readonly TokenRow[] {
  const { monitoringTokens, tokenBindings, sources } = site.store
  const arrived = new Map<string, Pick<TokenRow, 'messages' | 'lastSeenMs'>>()
  for (const { tokenId, received, lastSeenMs } of sources.heads(organization.id)) {
    const before = arrived.get(tokenId) ?? NOTHING
    arrived.set(tokenId, {
      messages: before.messages + received,
      lastSeenMs: Math.max(before.lastSeenMs, lastSeenMs),
    })
  }
  return monitoringTokens.ofOrganization(organization.id).map((token) => {
    return {
      ...secretRow(token, nowMs),
      bindings: tokenBindings.ofToken(organization.id, token.id).map(describeBinding),
      ownFormat: token.formatRule?.name ?? '',
      forwardsClients: token.forwardedClients === true,
      ...(arrived.get(token.id) ?? NOTHING),
    }
  })
}

const LABEL = labelColumn<TokenRow>(PREFIX, ({ bindings, ownFormat, forwardsClients }) =>
  [
    ...bindings,
    ...(ownFormat === '' ? [] : [`custom format ${ownFormat}`]),
    ...(forwardsClients ? ['forwarded clients'] : []),
  ].join(', '),
)

const COLUMNS: readonly Column<TokenRow>[] = [
  LABEL,
  { ...timeColumn('generated', 'Generated', ({ createdAtMs }: TokenRow) => createdAtMs), wide: true },
  { ...countColumn('messages', 'Messages', ({ messages }: TokenRow) => messages), wide: true },
  { ...timeColumn('seen', 'Last message', ({ lastSeenMs }: TokenRow) => lastSeenMs), wide: true },
  { id: 'bindings', name: 'Bound to', csv: ({ bindings }) => bindings.join(', ') },
  { id: 'custom_format', name: 'Custom format', csv: ({ ownFormat }) => ownFormat },
  { id: 'forwarded_clients', name: 'Forwarded clients', csv: ({ forwardsClients }) => String(forwardsClients) },
  ...secretCsvColumns<TokenRow>(PREFIX),
  revokeColumn<TokenRow>(PATH, 'token.revoke'),
  {
    id: 'verify',
    name: 'Verify',
    action: 'token.verify',
    quiet: true,
    cell: ({ id, label }) => (
      <a class="button" href={`${PATH}/${id}/verify`} aria-label={`Verify ${label}`}>
        Verify
      </a>
    ),
  },
]

const newToken = z.object({ label: z.string('Enter a label').trim().min(1, 'Enter a label') })

export const TOKEN_ROUTES = secretRoutes<TokenRow>({
  path: PATH,
  title: 'Monitoring Tokens',
  about: 'Collectors and log senders authenticate with a token',
  links: (
    <a class="button" href="/setup-guide">
      Setup
    </a>
  ),
  noun: 'token',
  verb: 'Generate',
  actions: { read: 'token.read', create: 'token.generate', revoke: 'token.revoke' },
  rows: tokenRows,
  columns: COLUMNS,
  endedColumns: [LABEL],
  why: 'Generate a token first. Then start a collector or a log sender with it.',
  hint: 'The sensor or sender that will use it.',
  use: (
    <>
      <a href="/setup-guide">Setup</a> says where to put it.
    </>
  ),
  revoked: 'The token is revoked. Its senders are rejected from now on',
  create: (visit) => visit.change('token.generate', visit.read(newToken)),
})
