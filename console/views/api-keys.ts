import { DAY_MS } from '../../engine/process/clock.ts'
import type { Scope } from '../../engine/store/api-keys.ts'
import type { Visit } from '../http/visit.ts'

/** A key that was not used for so long is marked. */
const UNUSED_DAYS = 90

export interface ApiKeyRow {
  readonly id: string
  readonly label: string
  /** The first digits of the key. */
  readonly visible: string
  readonly scopes: readonly Scope[]
  readonly createdAtMs: number
  /** 0 while active. */
  readonly revokedAtMs: number
  /** 0: never. */
  readonly lastUsedMs: number
  readonly isUnused: boolean
}

export interface ApiKeysView {
  readonly active: readonly ApiKeyRow[]
  readonly revoked: readonly ApiKeyRow[]
}

/** API keys, the newest first. */
export function apiKeysView({ site, organization, nowMs }: Visit): ApiKeysView {
  const { apiKeys, keyUses } = site.store
  const rows = apiKeys
    .ofOrganization(organization.id)
    .map(({ id, label, visible, scopes, createdAtMs, revokedAtMs }): ApiKeyRow => {
      const lastUsedMs = keyUses.lastUseMs(organization.id, id)
      const isUnused = nowMs - Math.max(lastUsedMs, createdAtMs) > UNUSED_DAYS * DAY_MS
      return { id, label, visible, scopes, createdAtMs, revokedAtMs, lastUsedMs, isUnused }
    })
    .sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : 1))
  return {
    active: rows.filter(({ revokedAtMs }) => revokedAtMs === 0),
    revoked: rows.filter(({ revokedAtMs }) => revokedAtMs > 0),
  }
}
