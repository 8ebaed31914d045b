import { DAY_MS } from '../../engine/process/clock.ts'
import { nextScanMs } from '../../engine/scan/period.ts'
import { effectiveRisk } from '../../engine/scan/risk.ts'
import type { Scan } from '../../engine/store/scans.ts'
import type { DayBar } from '../design/chart.tsx'
import type { Visit } from '../http/visit.ts'
import { dailyUse } from './daily-use.ts'
import { DecisionsByName, isWaiting } from './decisions.ts'
import { type PublishedPlatform, publishedDiscovery } from './discovery.ts'
import { type SensorsView, type SourceRow, sensorsView, sourcesView } from './intake.ts'

const CHANGE_DAYS = 7
export const WAITING_SHOWN = 5

/** A platform in the chart of risk and clients. */
export interface PlatformDot {
  readonly name: string
  readonly risk: number
  readonly clients: number
  readonly approved: boolean
}

export interface WaitingRow {
  readonly name: string
  readonly risk: number
  readonly clients: number
  readonly isEstimate: boolean
  readonly firstSeenMs: number
  readonly why: string
  /** There was a decision. */
  readonly isExpired: boolean
}

export interface OverviewFindings {
  readonly completedMs: number
  readonly overallRisk: number
  /** The change of the overall risk in a week; undefined without a scan a week ago. */
  readonly riskChange: number | undefined
  readonly platforms: number
  readonly newPlatforms: number
  readonly notApproved: number
  readonly waitingTotal: number
  /** The platforms that wait for a decision, with the highest effective risk. */
  readonly waiting: readonly WaitingRow[]
  readonly dots: readonly PlatformDot[]
  readonly days: readonly DayBar[]
}

export interface OverviewView {
  /** undefined before the first completed scan. */
  readonly findings: OverviewFindings | undefined
  readonly isScanPending: boolean
  readonly nextScanMs: number
  readonly windowDays: number
  readonly hasToken: boolean
  readonly sources: readonly SourceRow[]
  readonly sensors: SensorsView
  readonly bufferedEvents: number
}

export function overviewView(visit: Visit): OverviewView {
  const { site, organization, nowMs } = visit
  const { store } = site
  return {
    findings: findingsOf(visit),
    isScanPending: store.scans.pending(organization.id) !== undefined,
    nextScanMs: nextScanMs(organization, nowMs),
    windowDays: organization.evidenceWindowDays,
    hasToken: store.monitoringTokens.activeCount(organization.id, nowMs) > 0,
    sources: sourcesView(visit),
    sensors: sensorsView(visit),
    bufferedEvents: store.buffer.count(organization.id),
  }
}

function findingsOf(visit: Visit): OverviewFindings | undefined {
  const { site, organization, nowMs } = visit
  const { scan, platforms } = publishedDiscovery(site.store, organization)
  if (scan === undefined) return undefined
  const weekAgoMs = nowMs - CHANGE_DAYS * DAY_MS
  const wanted = ({ status, completedAtMs }: Scan): boolean => status === 'completed' && completedAtMs <= weekAgoMs
  const before = site.store.scans.last(organization.id, wanted)
  const overallRisk = scan.summary.overall_risk_score
  const decisions = new DecisionsByName(visit)
  const waiting = platforms.filter((platform) => isWaiting(decisions.stateOf(platform)))
  return {
    completedMs: Date.parse(scan.completed_at),
    overallRisk,
    riskChange: before && overallRisk - before.summary.overallRiskScore,
    platforms: platforms.length,
    newPlatforms: platforms.filter(({ created_at }) => Date.parse(created_at) > weekAgoMs).length,
    notApproved: platforms.filter(({ metadata }) => !metadata.approved).length,
    waitingTotal: waiting.length,
    waiting: waiting
      .sort((a, b) => effective(b) - effective(a))
      .slice(0, WAITING_SHOWN)
      .map((platform) => waitingRow(platform, decisions)),
    dots: platforms.map(({ platform_name, metadata }) => ({
      name: platform_name,
      risk: metadata.risk.score,
      clients: metadata.clients,
      approved: metadata.approved,
    })),
    days: dailyUse(visit),
  }
}

function waitingRow(platform: PublishedPlatform, decisions: DecisionsByName): WaitingRow {
  const { platform_name: name, metadata } = platform
  return {
    name,
    risk: metadata.risk.score,
    clients: metadata.clients,
    isEstimate: metadata.clients_error > 0,
    firstSeenMs: Date.parse(metadata.first_seen),
    why: metadata.risk.why,
    isExpired: decisions.stateOf(platform) === 'expired',
  }
}

function effective({ confidence, metadata }: PublishedPlatform): number {
  return effectiveRisk({ risk: metadata.risk.score, confidence, approved: metadata.approved })
}
