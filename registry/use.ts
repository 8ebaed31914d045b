import type { Rule } from './catalog.ts'
import { type Role, USE_SPECIFICITY_MIN } from './platform.ts'
import type { PlatformType } from './platform-type.ts'

/**
 * What a detected platform is: an AI platform, or general software in which AI is one part and
 * whose name does not show whether that part was used.
 */
export const USES = ['ai', 'ai_capable'] as const
export type Use = (typeof USES)[number]

/** @param specificity the highest of the matched rules for use */
export function useOf(specificity: number): Use {
  return specificity >= USE_SPECIFICITY_MIN ? 'ai' : 'ai_capable'
}

/**
 * The roles of hosts that are requested because someone uses the platform. The others are also
 * requested without use (documentation, pictures and scripts on other sites), or belong to all
 * platforms of a vendor (sign-in).
 */
const USE_ROLES: ReadonlySet<Role> = new Set<Role>(['web', 'app', 'api'])

/** Whether a request for a host of this rule is use of its AI platform. */
export function indicatesUse({ role, specificity, purpose }: Pick<Rule, 'role' | 'specificity' | 'purpose'>): boolean {
  return purpose === 'use' && USE_ROLES.has(role) && specificity >= USE_SPECIFICITY_MIN
}

/**
 * How a platform is used: with a browser, with a desktop or mobile app, by its API, or with an
 * editor, agent or other program on the client.
 */
export const ACCESS_KINDS = ['web', 'app', 'api', 'tool'] as const
export type AccessKind = (typeof ACCESS_KINDS)[number]

/** The programs of these platforms run on the client and request its API. */
const TOOL_TYPES: ReadonlySet<PlatformType> = new Set<PlatformType>([
  'code_assistant',
  'agent_platform',
  'local_runtime',
])

/** How a client of this host uses the platform; undefined if the host does not show it. */
export function accessOf({
  role,
  purpose,
  platform,
}: Pick<Rule, 'role' | 'purpose' | 'platform'>): AccessKind | undefined {
  if (purpose !== 'use') return undefined
  const isTool = TOOL_TYPES.has(platform.platformType)
  switch (role) {
    case 'web':
    case 'app':
      return role
    case 'api':
      return isTool ? 'tool' : 'api'
    case 'telemetry':
      return isTool ? 'tool' : undefined
    default:
      return undefined
  }
}
