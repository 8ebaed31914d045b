import type { Environment } from '../kernel/lmdb/environment.ts'
import type { ApiVersions } from './api-versions.ts'
import { Family } from './family.ts'
import { type Secret, Secrets } from './secrets.ts'

export const SCOPES = ['scores:read', 'recommendations:read', 'discovery:read', 'assessments:read'] as const
export type Scope = (typeof SCOPES)[number]

/** `visible` is the first 8 hex digits after the prefix. */
export interface ApiKey extends Secret {
  readonly scopes: readonly Scope[]
}

export function apiKeysOf(environment: Environment, versions: ApiVersions): Secrets<ApiKey> {
  const records = new Family<ApiKey>(environment.table('api-keys'), 'API key')
  return new Secrets(records, environment.table('api-key-hashes'), (organizationId) => versions.change(organizationId))
}
