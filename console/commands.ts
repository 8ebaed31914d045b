import type { Administration } from '../engine/admin/administration.ts'
import type { Scope } from '../engine/store/api-keys.ts'
import type { Organization, ScanFrequency } from '../engine/store/organizations.ts'
import type { RecommendationStatus } from '../engine/store/recommendations.ts'
import type { Catalog } from '../registry/catalog.ts'

/** What a command works with, in the thread that writes. */
export interface CommandContext {
  /** Acts as the member who sent the command, so it checks the role and writes the audit entry. */
  readonly administration: Administration
  readonly organization: Organization
  readonly catalog: Catalog
}

type Command<P, R> = (context: CommandContext, parameters: P) => R

/**
 * The changes that pages can make: each is one use case of engine/admin. Parameters and results
 * cross between threads, so they are plain values.
 */
export const COMMANDS = {
  'api-key.create': ({ administration, organization }, given: { label: string; scopes: readonly Scope[] }) =>
    administration.apiKeys.create(organization, given.label, given.scopes),
  'api-key.revoke': ({ administration, organization }, given: { id: string }) =>
    administration.apiKeys.revoke(organization, given.id),
  'token.generate': ({ administration, organization }, given: { label: string }) =>
    administration.tokens.generate(organization, given.label),
  'token.revoke': ({ administration, organization }, given: { id: string }) =>
    administration.tokens.revoke(organization, given.id),
  'approval.add': ({ administration, organization, catalog }, given: { platforms: readonly string[] }) =>
    administration.approvals.add(organization, catalog, given.platforms),
  'approval.remove': ({ administration, organization, catalog }, given: { platforms: readonly string[] }) =>
    administration.approvals.remove(organization, catalog, given.platforms),
  'scan.request': ({ administration, organization }, _: Record<string, never>) =>
    administration.scans.request(organization),
  'organization.set': ({ administration, organization }, given: { scanFrequency: ScanFrequency }) =>
    administration.organizations.set(organization, given),
  'recommendation.status': ({ administration, organization }, given: { id: string; status: RecommendationStatus }) =>
    administration.recommendations.setStatus(organization, given.id, given.status),
} as const satisfies Record<string, Command<never, unknown>>

export type CommandName = keyof typeof COMMANDS
export type CommandParameters<N extends CommandName> = Parameters<(typeof COMMANDS)[N]>[1]
export type CommandResult<N extends CommandName> = ReturnType<(typeof COMMANDS)[N]>
