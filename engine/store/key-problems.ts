import { Pseudonyms } from '../kernel/process/client-key.ts'
import { isFault } from '../kernel/process/error-codes.ts'
import type { SecretsKey } from '../kernel/process/secrets-key.ts'
import type { Store } from './store.ts'

/** The ids of the keys that the secrets of the store need, with the number of secrets of each. */
function secretsByKey({ alertChannels, identityProviders, organizations }: Store): Map<string, number> {
  const counts = new Map<string, number>()
  const count = (read: () => { readonly keyId: string } | undefined): void => {
    const sealed = readable(read)
    if (sealed !== undefined) counts.set(sealed.keyId, (counts.get(sealed.keyId) ?? 0) + 1)
  }
  for (const [organizationId, channelId] of alertChannels.all()) {
    count(() => alertChannels.get(organizationId, channelId)?.settings)
  }
  if (identityProviders.isEmpty()) return counts
  for (const id of organizations.ids()) count(() => identityProviders.get(id)?.clientSecret)
  return counts
}

/** Whether any secret of the store was encrypted. */
export function hasSecrets(store: Store): boolean {
  return store.environment.read(() => secretsByKey(store).size > 0)
}

/** Why secrets of the store cannot be decrypted, one line for each key. */
export function secretsKeyProblems(store: Store, key: SecretsKey): string[] {
  return [...store.environment.read(() => secretsByKey(store))].flatMap(([keyId, count]) => {
    const problem = key.problem(keyId)
    if (problem === '') return []
    return [`alert channels and identity providers cannot use ${count} secret${count === 1 ? '' : 's'}: ${problem}`]
  })
}

/** Why clients of organizations cannot be stored as pseudonyms, one line for each organization. */
export function clientKeyProblems({ environment, organizations, dataDirectory }: Store): string[] {
  return environment
    .read(() => organizations.ids())
    .flatMap((id) => {
      const { mode, keyId } = environment.read(() => organizations.clientSettings(id))
      if (mode !== 'pseudonym') return []
      try {
        new Pseudonyms(dataDirectory, id, keyId)
        return []
      } catch (error) {
        if (isFault(error, 'SECRETS_KEY')) return [error.message]
        throw error
      }
    })
}

/** undefined: the record is damaged, which the check of the store reports. */
function readable<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (isFault(error, 'STORE_DAMAGED') || isFault(error, 'STORE_VERSION')) return undefined
    throw error
  }
}
