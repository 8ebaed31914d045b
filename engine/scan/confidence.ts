import type { Role } from '../../registry/platform.ts'

/*
 * The confidence that a platform is in use: confidence = 1 - product over the kinds of evidence of
 * (1 - strength).
 *
 * The strength of each kind is the domain strength d = specificity x weight of the role, times a
 * maximum for that kind, times a factor that grows with the amount. So a name of little
 * significance stays unconvincing however often it is seen.
 *
 *   domain    0.70 x d
 *   clients   0.40 x d x (1 - 1 / clients)
 *   matches   0.30 x d x (1 - 1 / (1 + log10 matches))
 *   days      0.40 x d x (1 - 1 / days)
 *
 * Each strength grows with its count, so more evidence never lowers the result. Worked example:
 * docs/reference/scoring.md.
 */
const CARRIES = { domain: 0.7, clients: 0.4, matches: 0.3, days: 0.4 } as const

/** How strongly a name of each role indicates use: documentation is only read, an API is used. */
export const ROLE_WEIGHT: Readonly<Record<Role, number>> = {
  web: 1,
  api: 1,
  auth: 0.9,
  telemetry: 0.8,
  cdn: 0.6,
  docs: 0.4,
}

/** 0 to 1. */
export function domainStrength(specificity: number, role: Role): number {
  return specificity * ROLE_WEIGHT[role]
}

/** 0 to 1, four decimals. All counts are at least 1. */
export function confidence(evidence: {
  domainStrength: number
  clients: number
  matches: number
  days: number
}): number {
  const d = evidence.domainStrength
  const doubt =
    (1 - CARRIES.domain * d) *
    (1 - CARRIES.clients * d * (1 - 1 / evidence.clients)) *
    (1 - CARRIES.matches * d * (1 - 1 / (1 + Math.log10(evidence.matches)))) *
    (1 - CARRIES.days * d * (1 - 1 / evidence.days))
  return Math.round((1 - doubt) * 10_000) / 10_000
}
