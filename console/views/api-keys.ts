import { DAY_MS } from '../../engine/process/clock.ts'
import type { Scope } from '../../engine/store/api-keys.ts'
import { type SecretStatus, statusOf } from '../../engine/store/secrets.ts'
import type { Visit } from '../http/visit.ts'

/** A key is marked if it was not used for this many days. */
const UNUSED_DAYS = 90

export interface ApiKeyRow {
  readonly id: string
  readonly label: string
  /** The first digits of the key. */
  readonly visible: string
  readonly scopes: readonly Scope[]
  readonly createdAtMs: number
  readonly status: SecretStatus
  /** 0: it does not expire. */
  readonly expiresAtMs: number
  /** When it was revoked or expired; 0 while it is active. */
  readonly endedAtMs: number
  /** 0: never. */
  readonly lastUsedMs: number
  readonly isUnused: boolean
}

export interface ApiKeysView {
  readonly active: readonly ApiKeyRow[]
  /** Revoked or expired. */
  readonly ended: readonly ApiKeyRow[]
}

/** API keys, newest first. */
export function apiKeysView({ site, organization, nowMs }: Visit): ApiKeysView {
  const { apiKeys, keyUses } = site.store
  const rows = apiKeys
    .ofOrganization(organization.id)
    .map((key): ApiKeyRow => {
      const { id, label, visible, scopes, createdAtMs, revokedAtMs, expiresAtMs = 0 } = key
      const status = statusOf(key, nowMs)
      const endedAtMs = status === 'revoked' ? revokedAtMs : status === 'expired' ? expiresAtMs : 0
      const lastUsedMs = keyUses.lastUseMs(organization.id, id)
      const isUnused = nowMs - Math.max(lastUsedMs, createdAtMs) > UNUSED_DAYS * DAY_MS
      return { id, label, visible, scopes, createdAtMs, status, expiresAtMs, endedAtMs, lastUsedMs, isUnused }
    })
    .sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : 1))
  return {
    active: rows.filter(({ status }) => status === 'active'),
    ended: rows.filter(({ status }) => status !== 'active'),
  }
}
