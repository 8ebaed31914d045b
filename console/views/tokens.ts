import { describeBinding } from '../../engine/admin/tokens.ts'
import type { Visit } from '../http/visit.ts'
import { type SecretRow, type SecretsView, secretRow, secretsView } from './secrets.ts'

export interface TokenRow extends SecretRow {
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
export function tokensView({ site, organization, nowMs }: Visit): SecretsView<TokenRow> {
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
