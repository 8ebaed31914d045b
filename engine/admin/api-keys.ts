import { Fault } from '../process/error-codes.ts'
import { makeApiKey } from '../store/access-key.ts'
import type { ApiKey, Scope } from '../store/api-keys.ts'
import type { Organization } from '../store/organizations.ts'
import { type Changes, checkText } from './changes.ts'
import { chosen, newSecret } from './secrets.ts'

/** The specification's limit for active API keys of one organization. */
export const ACTIVE_API_KEYS_MAX = 25

export class ApiKeyChanges {
  readonly #changes: Changes

  constructor(changes: Changes) {
    this.#changes = changes
  }

  /**
   * @returns the key's record, and the raw key, which is stored nowhere
   * @throws Fault CONFLICT if 25 keys are active; USAGE, NOT_ALLOWED
   */
  create(organization: Organization, label: string, scopes: readonly Scope[]): { record: ApiKey; raw: string } {
    checkText('label', label)
    const { store, clock } = this.#changes
    const raw = makeApiKey()
    const record: ApiKey = { ...newSecret(organization, label, raw, clock.nowMs()), scopes: [...new Set(scopes)] }
    return this.#changes.make('api-key.create', organization.id, () => {
      if (store.apiKeys.activeCount(organization.id) >= ACTIVE_API_KEYS_MAX) {
        throw new Fault(
          'CONFLICT',
          `${organization.name} has ${ACTIVE_API_KEYS_MAX} active API keys already; revoke one first`,
        )
      }
      store.apiKeys.add(record)
      return { ...about(record), result: { record, raw } }
    })
  }

  /** @throws Fault NOT_FOUND, CONFLICT if it was already revoked, NOT_ALLOWED */
  revoke(organization: Organization, idOrVisible: string): ApiKey {
    const { store, clock } = this.#changes
    return this.#changes.make('api-key.revoke', organization.id, () => {
      const key = chosen(store.apiKeys.ofOrganization(organization.id), idOrVisible, 'API key')
      return { ...about(key), result: store.apiKeys.revoke(key, clock.nowMs()) }
    })
  }
}

function about({ organizationId, id, label, visible, scopes }: ApiKey) {
  return { organizationId, subject: label, details: { id, begins: visible, scopes } }
}
