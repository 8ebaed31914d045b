import type { Method } from '../kernel/event/event.ts'

/*
 * The confidence that a platform is in use: confidence = 1 - product over the kinds of evidence of
 * (1 - strength).
 *
 * The strength of each kind is the domain strength d = specificity x weight of the method, times a
 * maximum for that kind, times a factor that grows with the amount. So a name
 * of little significance stays unconvincing however often it is seen.
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

/**
 * How strongly a name indicates use by how it was seen. An inferred name was asked before a
 * connection that hides its name, and an alias was not asked by the client, so both are weaker than
 * a name that was read.
 */
export const METHOD_WEIGHT: Readonly<Record<Method, number>> = {
  ...{ dns: 1, tls: 1, quic: 1, log: 1 },
  ...{ tls_inferred: 0.8, quic_inferred: 0.8, dns_alias: 0.6 },
}

/** 0 to 1. `methodWeight` is the highest METHOD_WEIGHT of the matches. */
export function domainStrength(specificity: number, methodWeight = 1): number {
  return specificity * methodWeight
}

/** What the confidence is computed from. All counts are at least 1. */
export interface ConfidenceEvidence {
  readonly domainStrength: number
  readonly clients: number
  readonly matches: number
  readonly days: number
}

/** The strength of each kind of evidence, 0 to 1. */
export type Strengths = Readonly<Record<keyof typeof CARRIES, number>>

export function strengths({ domainStrength: d, clients, matches, days }: ConfidenceEvidence): Strengths {
  return {
    domain: CARRIES.domain * d,
    clients: CARRIES.clients * d * (1 - 1 / clients),
    matches: CARRIES.matches * d * (1 - 1 / (1 + Math.log10(matches))),
    days: CARRIES.days * d * (1 - 1 / days),
  }
}

/** 0 to 1, four decimals. */
export function confidence(evidence: ConfidenceEvidence): number {
  const { domain, clients, matches, days } = strengths(evidence)
  const doubt = (1 - domain) * (1 - clients) * (1 - matches) * (1 - days)
  return Math.round((1 - doubt) * 10_000) / 10_000
}
