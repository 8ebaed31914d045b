import type { Use } from '../../registry/contact.ts'
import { HIDDEN_COUNTER_NAMES, HIDDEN_COUNTERS } from '../kernel/event/coverage-report.ts'
import type { Column } from '../kernel/process/table.ts'
import type { CoverageJson } from '../scan/coverage.ts'

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
    }
  }[]
}

/** What commands and pages call a use. */
export const USE_NAMES: Readonly<Record<Use, string>> = {
  ai: 'AI',
  ai_capable: 'AI-capable',
  blocked: 'blocked only',
  touched: 'touched only',
}

/** The columns for detected platforms, as the API returns them. */
export const PLATFORM_COLUMNS: readonly Column[] = [
  ['Platform', 'platform_name'],
  ['Type', 'platform_type', { hide: 5 }],
  ['Confidence', 'confidence', { hide: 3, text: (value) => Number(value).toFixed(2) }],
  ['Risk', 'metadata.risk.score'],
  ['Approved', 'metadata.approved'],
  ['Clients', 'metadata.clients', { hide: 2 }],
  ['Matches', 'metadata.matches', { hide: 4 }],
]

/** What the sensors could not see. */
export const COVERAGE_COLUMNS: readonly Column[] = [
  ['Sensors', 'sensors'],
  ['Visible', 'visible_share', { text: (share) => (share === null ? '-' : `${(Number(share) * 100).toFixed(1)} %`) }],
  ['Names', 'names_seen'],
  ['ECH', 'hidden.ech'],
  ['Encrypted DNS', 'hidden.encrypted_dns'],
  ['Tunnels', 'hidden.tunnels'],
  ['No name', 'hidden.no_name'],
  ['Incomplete', 'hidden.incomplete', { hide: 1 }],
  ['Undecodable', 'hidden.undecodable', { hide: 2 }],
  ['Lost', 'hidden.packets_lost'],
]

/** One kind of encrypted or unread traffic. */
export const COVERAGE_KIND_COLUMNS: readonly Column[] = [
  ['Kind', 'kind'],
  ['Count', 'count'],
  ['About', 'about', { wrap: true, hide: 1 }],
]

/** The kinds of encrypted and unread traffic that the sensors saw. */
export function coverageKinds({ kinds }: CoverageJson): { kind: string; count: number; about: string }[] {
  return HIDDEN_COUNTER_NAMES.filter((kind) => kinds[kind] > 0).map((kind) => ({
    kind,
    count: kinds[kind],
    about: HIDDEN_COUNTERS[kind].replaceAll('`', ''),
  }))
}

/**
 * The share of traffic that the sensors could name, as one line. undefined: no sensor has reported.
 */
export function coverageLine({ sensors, visible_share }: CoverageJson): string | undefined {
  if (sensors === 0 || visible_share === null) return undefined
  const text = sensors === 1 ? 'one sensor' : `${sensors} sensors`
  return `${text}: ${(visible_share * 100).toFixed(1)} % of the traffic could be named; see posture-admin scan show --coverage`
}
