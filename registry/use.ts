import type { Role } from './platform.ts'

/** From this specificity on, a visit is use of the platform. Below, the platform is AI-capable. */
export const USE_SPECIFICITY_MIN = 0.6

/**
 * The roles of hosts that are requested because someone uses the platform. The others are also
 * requested without use (documentation, pictures and scripts on other sites), or belong to all
 * platforms of a vendor (sign-in).
 */
const USE_ROLES: ReadonlySet<Role> = new Set<Role>(['web', 'api'])

/** Whether a request for a host of this rule is use of its platform. */
export function indicatesUse({ role, specificity }: { readonly role: Role; readonly specificity: number }): boolean {
  return USE_ROLES.has(role) && specificity >= USE_SPECIFICITY_MIN
}
