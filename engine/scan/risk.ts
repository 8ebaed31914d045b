/*
 * The overall risk of the discovered platforms, 0 to 100.
 *
 *   effective risk of a platform   e = registry risk x confidence x (approved ? 0.25 : 1)
 *   overall                        top + (100 - top) x (1 - exp(-rest / 500))
 *
 * `top` is the largest e, `rest` the sum of all others: the worst platform sets the level, the
 * others raise it toward 100. The result grows with every e, so approving a platform never raises
 * it and finding another never lowers it. Worked example: docs/reference/scoring.md.
 */
export const APPROVED_SHARE = 0.25
const REST_SCALE = 500

export interface RiskOfPlatform {
  /** The registry's score, 0 to 100. */
  readonly risk: number
  readonly confidence: number
  readonly approved: boolean
}

/** The effective risk of one platform, 0 to 100. */
export function effectiveRisk({ risk, confidence, approved }: RiskOfPlatform): number {
  return risk * confidence * (approved ? APPROVED_SHARE : 1)
}

/** Orders platforms by the risk that lists show, the highest first; equal ones by their clients. */
export function byRisk(one: RankedPlatform, other: RankedPlatform): number {
  return other.risk - one.risk || other.clients - one.clients
}

type RankedPlatform = Pick<RiskOfPlatform, 'risk'> & { readonly clients: number }

/** An integer from 0 to 100. */
export function overallRiskScore(platforms: readonly RiskOfPlatform[]): number {
  let top = 0
  let sum = 0
  for (const platform of platforms) {
    const effective = effectiveRisk(platform)
    top = Math.max(top, effective)
    sum += effective
  }
  return Math.round(top + (100 - top) * (1 - Math.exp(-(sum - top) / REST_SCALE)))
}
