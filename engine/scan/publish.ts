import type { Use } from '../../registry/contact.ts'
import { type Platform, ROLES } from '../../registry/platform.ts'
import { ratedRisk } from '../../registry/risk-sum.ts'
import { METHODS } from '../kernel/event/event.ts'
import { isoSeconds } from '../kernel/process/clock.ts'
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
  /** That an approval names. */
  readonly plan: string | undefined
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
  const { platform, plan, evidence, decision, access, detection, programmaticClients, topClients } = finding
  const { description, vendor, risk: worst } = constantsOf(platform)
  const risk = plan === undefined ? worst : JSON.stringify(ratedRisk(platform, plan))
  const domains = mostFrequent(evidence.byName)
  const shown = domains.slice(0, DOMAINS_SHOWN_MAX).map(([name]) => name)
  // JSON.stringify of an object for each of these fields takes three times as long.
  return (
    `{"id":"${detection.id}",${description},"confidence":${finding.confidence},"metadata":{${vendor},` +
    `"use":"${finding.use}","approved":${decision === 'approved'},"decision":"${decision}","risk":${risk},` +
    `"matches":${evidence.matches},"used_matches":${evidence.used},` +
    (evidence.blocked > 0 ? `"blocked_matches":${evidence.blocked},` : '') +
    (evidence.touched > 0 ? `"touched_matches":${evidence.touched},` : '') +
    (evidence.bytesSent > 0 ? `"bytes_sent":${evidence.bytesSent},` : '') +
    (evidence.bytesReceived > 0 ? `"bytes_received":${evidence.bytesReceived},` : '') +
    `"methods":{${inOrder(evidence.byMethod, METHODS)}},"roles":{${inOrder(evidence.byRole, ROLES)}},` +
    `"access":[${access.map(accessJson).join(',')}],` +
    (programmaticClients === undefined ? '' : `"programmatic_clients":${programmaticClients},`) +
    `"clients":${evidence.clients.estimate},"clients_error":${evidence.clients.exact ? 0 : SHOWN_ERROR},` +
    `"days":${evidence.days},"first_seen":"${isoSeconds(evidence.firstSeenMs)}",` +
    `"last_seen":"${isoSeconds(evidence.lastSeenMs)}","domains":${JSON.stringify(shown)},` +
    `"domains_total":${domains.length},"coverage":{"visible_share":${visibleShare}}` +
    (topClients === undefined ? '' : `,"top_clients":${JSON.stringify(topClients.map(clientJson))}`) +
    `},"created_at":"${detection.createdAt}"}`
  )
}

const SHOWN_ERROR = Math.round(ESTIMATE_ERROR * 1000) / 1000

/** The JSON of a platform that does not depend on its evidence. */
interface PlatformConstants {
  readonly description: string
  readonly vendor: string
  /** Of the worst plan. */
  readonly risk: string
}

const constants = new WeakMap<Platform, PlatformConstants>()

function constantsOf(platform: Platform): PlatformConstants {
  let known = constants.get(platform)
  if (known === undefined) {
    const { name, platformType, url, vendor, category } = platform
    known = {
      description: fields({ platform_name: name, platform_type: platformType, url }),
      vendor: fields({ vendor, category }),
      risk: JSON.stringify(ratedRisk(platform)),
    }
    constants.set(platform, known)
  }
  return known
}

/** JSON without the braces. */
function fields(object: object): string {
  return JSON.stringify(object).slice(1, -1)
}

/** JSON fields, always in the same order, so that the same evidence has the same bytes. */
function inOrder<K extends string>(counts: ReadonlyMap<K, number>, order: readonly K[]): string {
  let json = ''
  for (const key of order) {
    const count = counts.get(key)
    if (count !== undefined) json += json === '' ? `"${key}":${count}` : `,"${key}":${count}`
  }
  return json
}

function accessJson({ kind, matches, names }: FoundAccess): string {
  return `{"kind":"${kind}","matches":${matches},"domains":${JSON.stringify(names)}}`
}

function clientJson({ client, user, matches, used, firstSeenMs, lastSeenMs }: ClientUse) {
  const times = { first_seen: isoSeconds(firstSeenMs), last_seen: isoSeconds(lastSeenMs) }
  const known = Number.isNaN(used) ? {} : { used_matches: used }
  return { client, ...(user === '' ? {} : { user }), matches, ...known, ...times }
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
