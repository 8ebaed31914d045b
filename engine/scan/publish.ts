import { type Platform, PURPOSES, ROLES } from '../../registry/platform.ts'
import type { Use } from '../../registry/use.ts'
import { METHODS } from '../event/event.ts'
import { isoSeconds } from '../process/clock.ts'
import type { ClientUse } from '../store/client-sum.ts'
import type { DecisionState } from '../store/decisions.ts'
import type { Scan } from '../store/scans.ts'
import { type FoundAccess, mostFrequent } from './access.ts'
import type { CoverageJson } from './coverage.ts'
import { ESTIMATE_ERROR } from './distinct-clients.ts'
import type { Evidence } from './evidence.ts'

/** Maximum domains in a finding. `domains_total` is their full number. */
export const DOMAINS_SHOWN_MAX = 20

/** Maximum clients in a finding. */
export const TOP_CLIENTS_MAX = 20

/** A detected platform. */
export interface Finding {
  readonly platform: Platform
  readonly use: Use
  readonly evidence: Evidence
  readonly confidence: number
  readonly decision: DecisionState
  /** `createdAt` in ISO 8601 with seconds. */
  readonly detection: { readonly id: string; readonly createdAt: string }
  readonly access: readonly FoundAccess[]
  /** Clients that used the API, and no site or app of the vendor. undefined: no API was used. */
  readonly programmaticClients: number | undefined
  /** Only if the organization's API responses may name clients. */
  readonly topClients?: readonly ClientUse[]
}

/** Highest confidence first, then by name, so that the order is stable. */
export function byConfidence<F extends Pick<Finding, 'confidence' | 'platform'>>(findings: readonly F[]): F[] {
  return [...findings].sort(
    (a, b) =>
      b.confidence - a.confidence ||
      (a.platform.name < b.platform.name ? -1 : a.platform.name > b.platform.name ? 1 : 0),
  )
}

/**
 * A detected platform as in GET /api/v1/discovery. `visibleShare` applies to the whole scan: hidden
 * traffic may belong to any platform.
 */
export function platformJson(finding: Finding, visibleShare: CoverageJson['visible_share']): string {
  const { platform, evidence, access, programmaticClients } = finding
  const domains = mostFrequent(evidence.byName)
  return JSON.stringify({
    id: finding.detection.id,
    platform_name: platform.name,
    platform_type: platform.platformType,
    url: platform.url,
    confidence: finding.confidence,
    metadata: {
      vendor: platform.vendor,
      category: platform.category,
      use: finding.use,
      approved: finding.decision === 'approved',
      decision: finding.decision,
      risk: platform.risk,
      matches: evidence.matches,
      ...(evidence.blocked > 0 ? { blocked_matches: evidence.blocked } : {}),
      methods: inOrder(evidence.byMethod, METHODS),
      roles: inOrder(evidence.byRole, ROLES),
      purposes: inOrder(evidence.byPurpose, PURPOSES),
      access: access.map(({ kind, matches, names }) => ({ kind, matches, domains: names })),
      ...(programmaticClients === undefined ? {} : { programmatic_clients: programmaticClients }),
      clients: evidence.clients.estimate,
      clients_error: evidence.clients.exact ? 0 : Math.round(ESTIMATE_ERROR * 1000) / 1000,
      days: evidence.days,
      first_seen: isoSeconds(evidence.firstSeenMs),
      last_seen: isoSeconds(evidence.lastSeenMs),
      domains: domains.slice(0, DOMAINS_SHOWN_MAX).map(([name]) => name),
      domains_total: domains.length,
      coverage: { visible_share: visibleShare },
      ...(finding.topClients === undefined ? {} : { top_clients: finding.topClients.map(clientJson) }),
    },
    created_at: finding.detection.createdAt,
  })
}

/** Always the same order, so that the same evidence has the same bytes. */
function inOrder<K extends string>(counts: ReadonlyMap<K, number>, order: readonly K[]): Partial<Record<K, number>> {
  const ordered: Partial<Record<K, number>> = {}
  for (const key of order) {
    const count = counts.get(key)
    if (count !== undefined) ordered[key] = count
  }
  return ordered
}

function clientJson({ client, user, matches, firstSeenMs, lastSeenMs }: ClientUse) {
  const times = { first_seen: isoSeconds(firstSeenMs), last_seen: isoSeconds(lastSeenMs) }
  return { client, ...(user === '' ? {} : { user }), matches, ...times }
}

/** A scan as in GET /api/v1/discovery. */
export function scanJson(scan: Scan): string {
  return JSON.stringify({
    id: scan.id,
    organization_id: scan.organizationId,
    status: scan.status,
    domain: scan.domain,
    started_at: isoSeconds(scan.startedAtMs),
    completed_at: isoSeconds(scan.completedAtMs),
    summary: {
      platforms_discovered: scan.summary.platformsDiscovered,
      shadow_ai_count: scan.summary.shadowAiCount,
      overall_risk_score: scan.summary.overallRiskScore,
    },
  })
}
