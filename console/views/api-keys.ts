import { DAY_MS } from '../../engine/kernel/process/clock.ts'
import type { Scope } from '../../engine/store/api-keys.ts'
import type { Visit } from '../http/visit.ts'
import { type SecretRow, type SecretsView, secretRow, secretsView } from './secrets.ts'

/** A key is marked if it was not used for this many days. */
export const UNUSED_DAYS = 90

export interface ApiKeyRow extends SecretRow {
  readonly scopes: readonly Scope[]
  /** 0: never. */
  readonly lastUsedMs: number
  readonly isUnused: boolean
}

/** API keys, newest first. */
export function apiKeysView({ site, organization, nowMs }: Visit): SecretsView<ApiKeyRow> {
  const { apiKeys, keyUses } = site.store
  const rows = apiKeys.ofOrganization(organization.id).map((key): ApiKeyRow => {
    const lastUsedMs = keyUses.lastUseMs(organization.id, key.id)
    const isUnused = nowMs - Math.max(lastUsedMs, key.createdAtMs) > UNUSED_DAYS * DAY_MS
    return { ...secretRow(key, nowMs), scopes: key.scopes, lastUsedMs, isUnused }
  })
  return secretsView(rows)
}
