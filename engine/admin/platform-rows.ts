import type { Use } from '../../registry/use.ts'
import type { Column } from '../process/table.ts'

/** The fields of GET /api/v1/discovery that a table shows. */
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
      readonly use: Use
      readonly approved: boolean
      readonly risk: { readonly score: number }
      readonly clients: number
      readonly matches: number
      readonly domains: readonly string[]
      readonly coverage: { readonly sensors: number; readonly visible_share: number | null }
    }
  }[]
}

export function useText(use: Use): string {
  return use === 'ai' ? 'AI' : 'AI-capable'
}

/** The columns for detected platforms, as the API returns them. */
export const PLATFORM_COLUMNS: readonly Column[] = [
  ['Platform', 'platform_name'],
  ['Type', 'platform_type', { hide: 5 }],
  ['Confidence', 'confidence', { hide: 3, text: (value) => Number(value).toFixed(2) }],
  ['Risk', 'metadata.risk.score'],
  ['Use', 'metadata.use', { hide: 1, text: (value) => useText(value as Use) }],
  ['Approved', 'metadata.approved'],
  ['Clients', 'metadata.clients', { hide: 2 }],
  ['Matches', 'metadata.matches', { hide: 4 }],
]

/**
 * The share of traffic that the sensors could name, as one line. undefined: no sensor has reported.
 */
export function coverageLine({ platforms }: Discovery): string | undefined {
  const coverage = platforms[0]?.metadata.coverage
  if (coverage === undefined || coverage.sensors === 0 || coverage.visible_share === null) return undefined
  const sensors = coverage.sensors === 1 ? 'one sensor' : `${coverage.sensors} sensors`
  return `${sensors}: ${(coverage.visible_share * 100).toFixed(1)} % of the traffic could be named (docs/reference/scoring.md, Coverage)`
}
