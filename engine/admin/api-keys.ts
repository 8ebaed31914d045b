import { isoSeconds } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { makeApiKey } from '../store/access-key.ts'
import type { Organization } from '../store/organizations.ts'
import { type ApiKey, SCOPES, type Scope } from '../store/secrets.ts'
import { AuditedChanges, checkText } from './audited-changes.ts'
import { chosen, newSecret } from './secrets.ts'

/** The specification's limit for active API keys of one organization. */
export const ACTIVE_API_KEYS_MAX = 25

/** A key's record, and the raw key, which is stored nowhere. */
export interface NewApiKey {
  readonly record: ApiKey
  readonly raw: string
}

export class ApiKeyChanges extends AuditedChanges {
  /**
   * @returns the key's record, and the raw key, which is stored nowhere
   * @throws Fault CONFLICT if 25 keys are active; USAGE, NOT_ALLOWED
   */
  create(organization: Organization, label: string, scopes: readonly Scope[], expiresAtMs?: number): NewApiKey {
    checkText('label', label)
    if (scopes.length === 0) throw new Fault('USAGE', `--scope: expected at least one of ${SCOPES.join(', ')}`)
    const made = this.#new(organization, { label, scopes, expiresAtMs })
    return this.audited('api-key.create', organization.id, () => {
      this.#add(organization, made.record, 'revoke one first')
      return { ...about(made.record), result: made }
    })
  }

  /**
   * Creates a key with the label and the scopes of another one. The other one is revoked in the
   * same transaction, or expires after `graceMs`, so that clients can switch meanwhile.
   *
   * @throws Fault CONFLICT where 25 keys are active and the old one stays active for a grace
   *   period, NOT_FOUND, USAGE where the old key expires and `expiresAtMs` is missing, NOT_ALLOWED.
   */
  rotate(
    organization: Organization,
    idOrVisible: string,
    { graceMs = 0, expiresAtMs }: { readonly graceMs?: number; readonly expiresAtMs?: number | undefined },
  ): NewApiKey & { readonly old: ApiKey } {
    const { store, clock } = this
    return this.audited('api-key.rotate', organization.id, () => {
      const nowMs = clock.nowMs()
      const before = chosen(store.apiKeys.ofOrganization(organization.id), idOrVisible, 'API key', nowMs)
      if (before.expiresAtMs !== undefined && expiresAtMs === undefined) {
        const when = isoSeconds(before.expiresAtMs)
        throw new Fault('USAGE', `API key ${before.visible} expires at ${when}; set --expires for the new key`)
      }
      const made = this.#new(organization, { label: before.label, scopes: before.scopes, expiresAtMs })
      let old: ApiKey
      if (graceMs === 0) old = store.apiKeys.revoke(before, nowMs)
      else {
        old = { ...before, expiresAtMs: Math.min(before.expiresAtMs ?? Number.POSITIVE_INFINITY, nowMs + graceMs) }
        store.apiKeys.replace(old)
      }
      this.#add(organization, made.record, 'revoke one first, or rotate without --grace')
      const { organizationId, subject, details } = about(made.record)
      const end = graceMs === 0 ? {} : { replaced_expires: isoSeconds(old.expiresAtMs ?? 0) }
      return {
        organizationId,
        subject,
        details: { ...details, replaces: old.visible, ...end },
        result: { ...made, old },
      }
    })
  }

  #new(
    organization: Organization,
    { label, scopes, expiresAtMs }: Pick<ApiKey, 'label' | 'scopes'> & { readonly expiresAtMs: number | undefined },
  ): NewApiKey {
    const raw = makeApiKey()
    const secret = newSecret(organization, label, raw, this.clock.nowMs())
    const expiry = expiresAtMs === undefined ? {} : { expiresAtMs }
    return { record: { ...secret, scopes: [...new Set(scopes)], ...expiry }, raw }
  }

  #add(organization: Organization, record: ApiKey, remedy: string): void {
    const { store, clock } = this
    if (store.apiKeys.activeCount(organization.id, clock.nowMs()) >= ACTIVE_API_KEYS_MAX) {
      throw new Fault('CONFLICT', `${organization.name} has ${ACTIVE_API_KEYS_MAX} active API keys already; ${remedy}`)
    }
    store.apiKeys.add(record)
  }

  /** @throws Fault NOT_FOUND, CONFLICT if it was already revoked, NOT_ALLOWED */
  revoke(organization: Organization, idOrVisible: string): ApiKey {
    const { store, clock } = this
    return this.audited('api-key.revoke', organization.id, () => {
      const key = chosen(store.apiKeys.ofOrganization(organization.id), idOrVisible, 'API key', clock.nowMs())
      return { ...about(key), result: store.apiKeys.revoke(key, clock.nowMs()) }
    })
  }
}

function about({ organizationId, id, label, visible, scopes, expiresAtMs }: ApiKey) {
  const expiry = expiresAtMs === undefined ? {} : { expires: isoSeconds(expiresAtMs) }
  return { organizationId, subject: label, details: { id, prefix: visible, scopes, ...expiry } }
}
