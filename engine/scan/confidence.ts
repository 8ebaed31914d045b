import type { Role } from '../../registry/platform.ts'

/*
 * How sure we are that a platform is in use: confidence = 1 - product over the kinds of evidence of (1 - strength).
 *
 * The strength of every kind is the domain's strength d = specificity x weight of the role, times how far that kind can
 * carry, times how much of it there is. So a name that says little stays unconvincing however often it comes.
 *
 *   domain    0.70 x d
 *   clients   0.40 x d x (1 - 1 / clients)
 *   matches   0.30 x d x (1 - 1 / (1 + log10 matches))
 *   days      0.40 x d x (1 - 1 / days)
 *
 * Each grows with its count, so more evidence never lowers the result. docs/reference/scoring.md works an example.
 */
const CARRIES = { domain: 0.7, clients: 0.4, matches: 0.3, days: 0.4 } as const

/** How much a name of each role says about use: a documentation site is read, an API is used. */
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
