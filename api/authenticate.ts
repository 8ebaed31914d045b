import { hashSecret, isApiKey } from '../engine/admin/access-key.ts'
import type { ApiKey, Scope } from '../engine/store/api-keys.ts'
import type { Store } from '../engine/store/store.ts'

export interface Caller {
  readonly key: ApiKey
  readonly keyHash: Buffer
}

/**
 * The active key that this text is, or undefined. Whatever the text, the work is one hash and one look-up, so that the
 * time of the answer tells nothing.
 */
export function authenticate(store: Store, text: string): Caller | undefined {
  const keyHash = hashSecret(text)
  const key = store.apiKeys.byHash(keyHash)
  return key !== undefined && isApiKey(text) ? { key, keyHash } : undefined
}

/** Why the caller may not use an endpoint of this scope, or undefined. The plan comes before the scope. */
export function whyForbidden(store: Store, caller: Caller, scope: Scope, salesEmail: string): string | undefined {
  const organization = store.organizations.get(caller.key.organizationId)
  if (organization?.plan !== 'enterprise') {
    return `API access requires the Enterprise plan; contact ${salesEmail}`
  }
  if (!caller.key.scopes.includes(scope)) return `The API key does not hold the scope ${scope}`
  return undefined
}
