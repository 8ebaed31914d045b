import { describeBinding } from '../../engine/admin/tokens.ts'
import type { Visit } from '../http/visit.ts'

export interface TokenRow {
  readonly id: string
  readonly label: string
  /** The first digits of the token. */
  readonly visible: string
  readonly createdAtMs: number
  /** 0 while active. */
  readonly revokedAtMs: number
  /** Networks and ports whose syslog counts for this token. */
  readonly bindings: readonly string[]
  readonly senders: number
  readonly messages: number
  /** 0: no message arrived. */
  readonly lastSeenMs: number
}

export interface TokensView {
  readonly active: readonly TokenRow[]
  readonly revoked: readonly TokenRow[]
}

/** Monitoring tokens, the newest first, and what arrived with them. */
export function tokensView({ site, organization }: Visit): TokensView {
  const { monitoringTokens, tokenBindings, sources } = site.store
  const arrived = new Map<string, { senders: number; messages: number; lastSeenMs: number }>()
  for (const { tokenId, received, lastSeenMs } of sources.ofOrganization(organization.id)) {
    const before = arrived.get(tokenId) ?? { senders: 0, messages: 0, lastSeenMs: 0 }
    arrived.set(tokenId, {
      senders: before.senders + 1,
      messages: before.messages + received,
      lastSeenMs: Math.max(before.lastSeenMs, lastSeenMs),
    })
  }
  const rows = monitoringTokens
    .ofOrganization(organization.id)
    .map(({ id, label, visible, createdAtMs, revokedAtMs }): TokenRow => {
      const bindings = tokenBindings.ofToken(organization.id, id).map(describeBinding)
      const { senders = 0, messages = 0, lastSeenMs = 0 } = arrived.get(id) ?? {}
      return { id, label, visible, createdAtMs, revokedAtMs, bindings, senders, messages, lastSeenMs }
    })
    .sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : 1))
  return {
    active: rows.filter(({ revokedAtMs }) => revokedAtMs === 0),
    revoked: rows.filter(({ revokedAtMs }) => revokedAtMs > 0),
  }
}
