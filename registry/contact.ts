import type { Rule } from './catalog.ts'
import type { Role } from './platform.ts'
import { type PlatformType, USE_SPECIFICITY_MIN } from './platform-type.ts'

/**
 * What a request for a host of a platform is:
 *
 *   used     allowed, and the host means use: a site, app or API that a person or their program uses
 *   blocked  the device that logged it refused it
 *   touched  allowed, but no use: a widget, picture, telemetry, update, status page, sign-in
 *
 * A platform is found, counted and rated only if it was used.
 */
export type Contact = 'used' | 'blocked' | 'touched'

/**
 * How a platform is used: with a browser, with a desktop or mobile app, by its API, or with an
 * editor, agent or other program on the client.
 */
export const ACCESS_KINDS = ['web', 'app', 'api', 'tool'] as const
export type AccessKind = (typeof ACCESS_KINDS)[number]

/**
 * Documentation, pictures and updates are also requested without use, and sign-in belongs to all
 * platforms of a vendor. Telemetry says that a program is installed, not that somebody uses it.
 */
const ACCESS_OF_ROLE: Readonly<Partial<Record<Role, AccessKind>>> = { web: 'web', app: 'app', api: 'api' }

/** The programs of these platforms run on the client and request its API. */
const TOOL_TYPES: ReadonlySet<PlatformType> = new Set<PlatformType>([
  'code_assistant',
  'agent_platform',
  'local_runtime',
])

/** How an allowed request for a host of this rule uses the platform. undefined: it only touches it. */
export function accessOf({
  role,
  purpose,
  platform,
}: Pick<Rule, 'role' | 'purpose' | 'platform'>): AccessKind | undefined {
  const access = purpose === 'use' ? ACCESS_OF_ROLE[role] : undefined
  return access === 'api' && TOOL_TYPES.has(platform.platformType) ? 'tool' : access
}

/** Whether an allowed request for a host of this rule is use of AI. */
export function isUseOfAi(rule: Pick<Rule, 'role' | 'purpose' | 'platform' | 'specificity'>): boolean {
  return accessOf(rule) !== undefined && rule.specificity >= USE_SPECIFICITY_MIN
}

/**
 * What the matches of a platform over a time mean, the strongest that applies:
 *
 *   ai          it is an AI platform, and was used
 *   ai_capable  software was used in which AI is one part, and no name shows whether it was that one
 *   blocked     it was only tried
 *   touched     neither
 */
export const USES = ['ai', 'ai_capable', 'blocked', 'touched'] as const
export type Use = (typeof USES)[number]

/** Whether somebody used the platform. */
export function isUsed(use: Use): boolean {
  return use === 'ai' || use === 'ai_capable'
}

/** @param specificity the highest of the rules that were used; 0 if none was */
export function useOf({ specificity, blocked }: { readonly specificity: number; readonly blocked: number }): Use {
  if (specificity > 0) return specificity >= USE_SPECIFICITY_MIN ? 'ai' : 'ai_capable'
  return blocked > 0 ? 'blocked' : 'touched'
}
