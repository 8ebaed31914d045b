import { describeBinding } from '../../engine/admin/tokens.ts'
import { type SecretStatus, statusOf } from '../../engine/store/secrets.ts'
import type { Visit } from '../http/visit.ts'

export interface TokenRow {
  readonly id: string
  readonly label: string
  /** The first digits of the token. */
  readonly visible: string
  readonly createdAtMs: number
  readonly status: SecretStatus
  /** 0: it does not expire. */
  readonly expiresAtMs: number
  /** When it was revoked or expired; 0 while it is active. */
  readonly endedAtMs: number
  /** Networks and ports that are bound to this token. */
  readonly bindings: readonly string[]
  readonly senders: number
  readonly messages: number
  /** 0: no message has arrived. */
  readonly lastSeenMs: number
}

export interface TokensView {
  readonly active: readonly TokenRow[]
  /** Revoked or expired. */
  readonly ended: readonly TokenRow[]
}

/** Monitoring tokens, newest first, with their messages. */
export function tokensView({ site, organization, nowMs }: Visit): TokensView {
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
    .map((token): TokenRow => {
      const { id, label, visible, createdAtMs, revokedAtMs, expiresAtMs = 0 } = token
      const status = statusOf(token, nowMs)
      const endedAtMs = status === 'revoked' ? revokedAtMs : status === 'expired' ? expiresAtMs : 0
      const bindings = tokenBindings.ofToken(organization.id, id).map(describeBinding)
      const { senders = 0, messages = 0, lastSeenMs = 0 } = arrived.get(id) ?? {}
      return {
        id,
        label,
        visible,
        createdAtMs,
        status,
        expiresAtMs,
        endedAtMs,
        bindings,
        senders,
        messages,
        lastSeenMs,
      }
    })
    .sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : 1))
  return {
    active: rows.filter(({ status }) => status === 'active'),
    ended: rows.filter(({ status }) => status !== 'active'),
  }
}
