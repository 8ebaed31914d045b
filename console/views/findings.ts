import { aiPlatforms, type ListedPlatform, listedDiscovery } from '../../engine/scan/listed-discovery.ts'
import type { Scan } from '../../engine/store/scans.ts'
import type { Use } from '../../registry/contact.ts'
import type { Visit } from '../http/visit.ts'

/** The latest completed scan in figures, and what changed since an earlier time. */
export interface Findings {
  readonly completedMs: number
  readonly overallRisk: number
  /** The change of the overall risk; undefined if no scan had completed at that time. */
  readonly riskChange: number | undefined
  /** AI platforms. The figures below are of them, too. */
  readonly platforms: number
  /** Other software that was found, in which AI is one part. */
  readonly aiCapable: number
  /** Platforms that nobody used: all requests were blocked, or only touched them. */
  readonly blocked: number
  readonly touched: number
  /** 0: no log has byte counts. */
  readonly bytesSent: number
  readonly bytesReceived: number
  readonly newPlatforms: number
  readonly notApproved: number
}

interface FindingsSince {
  readonly findings: Findings
  /** AI platforms, and all. */
  readonly platforms: readonly ListedPlatform[]
  readonly listed: readonly ListedPlatform[]
}

/**
 * The AI platforms of the latest completed scan, and its figures compared with those of the scan
 * that was the latest at `sinceMs`; undefined before the first. Call it inside Environment.read.
 */
export function findingsSince({ site, organization }: Visit, sinceMs: number): FindingsSince | undefined {
  const { scan, platforms: listed } = listedDiscovery(site.store, organization)
  if (scan === undefined) return undefined
  const platforms = aiPlatforms(listed)
  const countOf = (wanted: Use): number => listed.filter(({ use }) => use === wanted).length
  const wanted = ({ status, completedAtMs }: Scan): boolean => status === 'completed' && completedAtMs <= sinceMs
  const before = site.store.scans.last(organization.id, wanted)
  const overallRisk = scan.summary.overall_risk_score
  const findings: Findings = {
    completedMs: Date.parse(scan.completed_at),
    overallRisk,
    riskChange: before && overallRisk - before.summary.overallRiskScore,
    platforms: platforms.length,
    aiCapable: countOf('ai_capable'),
    blocked: countOf('blocked'),
    touched: countOf('touched'),
    bytesSent: platforms.reduce((sum, each) => sum + each.bytesSent, 0),
    bytesReceived: platforms.reduce((sum, each) => sum + each.bytesReceived, 0),
    newPlatforms: platforms.filter(({ newMs }) => newMs > sinceMs).length,
    notApproved: platforms.filter(({ approved }) => !approved).length,
  }
  return { findings, platforms, listed }
}
