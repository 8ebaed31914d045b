/** GET /api/v1/discovery, as far as a table shows it. */
export interface Discovery {
  readonly scan: {
    readonly summary: {
      readonly platforms_discovered: number
      readonly shadow_ai_count: number
      readonly overall_risk_score: number
    }
  } | null
  readonly platforms: readonly {
    readonly platform_name: string
    readonly platform_type: string
    readonly confidence: number
    readonly metadata: {
      readonly vendor: string
      readonly approved: boolean
      readonly risk: { readonly score: number }
      readonly clients: number
      readonly matches: number
      readonly domains: readonly string[]
      readonly coverage: { readonly sensors: number; readonly visible_share: number | null }
    }
  }[]
}

export const PLATFORM_COLUMNS = [
  ['Platform', 'platform'],
  ['Type', 'type'],
  ['Confidence', 'confidence'],
  ['Risk', 'risk'],
  ['Approved', 'approved'],
  ['Clients', 'clients'],
  ['Matches', 'matches'],
] as const

/** The detected platforms for people: one row each, in the order of the API. */
export function platformRows(discovery: Discovery): Record<string, unknown>[] {
  return discovery.platforms.map((platform) => ({
    platform: platform.platform_name,
    type: platform.platform_type,
    vendor: platform.metadata.vendor,
    confidence: platform.confidence.toFixed(2),
    risk: platform.metadata.risk.score,
    approved: platform.metadata.approved ? 'yes' : 'no',
    clients: platform.metadata.clients,
    matches: platform.metadata.matches,
    seen_as: platform.metadata.domains[0] ?? '',
  }))
}

/** How much the sensors could see, in one line; undefined where none has told. */
export function coverageLine({ platforms }: Discovery): string | undefined {
  const coverage = platforms[0]?.metadata.coverage
  if (coverage === undefined || coverage.sensors === 0 || coverage.visible_share === null) return undefined
  const sensors = coverage.sensors === 1 ? 'one sensor' : `${coverage.sensors} sensors`
  return `${sensors}: ${(coverage.visible_share * 100).toFixed(1)} % of what passed could be named (docs/reference/scoring.md, Coverage)`
}
