import { DAY_MS, dayOf } from '../../engine/kernel/process/clock.ts'
import { aiPlatforms, type ListedPlatform, listedDiscovery } from '../../engine/scan/listed-discovery.ts'
import { nextScanMs } from '../../engine/scan/periods.ts'
import { recentPlatforms } from '../../engine/scan/recent-use.ts'
import { byRisk } from '../../engine/scan/risk.ts'
import type { DecisionState } from '../../engine/store/decisions.ts'
import type { History } from '../../engine/store/history.ts'
import type { Scan } from '../../engine/store/scans.ts'
import type { Use } from '../../registry/contact.ts'
import { type DayBar, shortDay } from '../design/chart.tsx'
import { type ChosenRange, lastDaysRange, rangeOf } from '../design/range.tsx'
import type { Visit } from '../http/visit.ts'
import { DecisionsByName, isWaiting } from '../platforms/decisions.ts'
import { type LatestSources, latestSources, type SensorsView, sensorsView } from '../sources/read.ts'

/** The latest completed scan in figures, and what changed since an earlier time. */
interface Findings {
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
function findingsSince({ site, organization }: Visit, sinceMs: number): FindingsSince | undefined {
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

/**
 * Distinct clients of AI platforms per day, as the last scan counted them: clients of
 * platforms that are not approved, and clients of approved platforms only.
 */
export function dailyUse({ site, organization, nowMs }: Visit): readonly DayBar[] {
  const { scanStates, dailyUse, history } = site.store
  const { firstDay: firstCounted } = scanStates.get(organization.id)
  const today = dayOf(nowMs)
  const firstDay = Math.max(firstCounted, today - organization.evidenceWindowDays + 1)
  const known = new Map(dailyUse.get(organization.id).map((use) => [use.day, use]))
  const days: DayBar[] = []
  const marked = firstDayWithContacts(history, organization.id)
  for (let day = firstDay; day <= today; day++) {
    const use = known.get(day) ?? { day, approved: 0, notApproved: 0 }
    days.push(day === marked ? { ...use, mark: `Since ${shortDay(day)}, only used platforms count` } : use)
  }
  return days
}

/**
 * The first day of a scan that told use from other contacts (registry/contact.ts), if there are
 * earlier scans.
 */
function firstDayWithContacts(history: History, organizationId: string): number | undefined {
  const days = history.days(organizationId)
  let [first, end] = [0, days.length]
  while (first < end) {
    const middle = (first + end) >> 1
    if (history.get(organizationId, days[middle] ?? 0)?.summary.touchedCount === undefined) first = middle + 1
    else end = middle
  }
  return first === 0 ? undefined : days[first]
}

const CHANGE_DAYS = 7
const WAITING_SHOWN = 5
const SOURCES_SHOWN = 5

/** A platform that waits for a decision. */
export interface WaitingRow extends ListedPlatform {
  /** There was a decision. */
  readonly isExpired: boolean
}

/** A platform that is new within the range. */
export interface RecentRow extends ListedPlatform {
  readonly state: DecisionState
}

/** The AI platforms of a range, and the blocked attempts. */
export interface RecentView {
  readonly range: ChosenRange
  readonly platforms: number
  /** The highest risk first. */
  readonly newPlatforms: readonly RecentRow[]
  readonly clients: number
  readonly isEstimate: boolean
  readonly bytesSent: number
  readonly bytesReceived: number
  /** Blocked requests for these platforms. */
  readonly blocked: number
  /** Platforms of which all requests were blocked. */
  readonly blockedOnly: number
}

/** The findings, and their change in a week. */
export interface OverviewFindings extends Findings {
  readonly waitingTotal: number
  /** The platforms that wait for a decision, with the highest risk. */
  readonly waiting: readonly WaitingRow[]
  readonly recent: RecentView
  /** The platforms in the chart of risk and clients. */
  readonly dots: readonly ListedPlatform[]
  readonly days: readonly DayBar[]
}

export interface OverviewView {
  /** undefined before the first completed scan. */
  readonly findings: OverviewFindings | undefined
  readonly isScanPending: boolean
  readonly nextScanMs: number
  readonly windowDays: number
  readonly hasToken: boolean
  readonly sources: LatestSources
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
    sources: latestSources(visit, SOURCES_SHOWN),
    sensors: sensorsView(visit),
    bufferedEvents: store.buffer.count(organization.id),
  }
}

function findingsOf(visit: Visit): OverviewFindings | undefined {
  const sinceMs = visit.nowMs - CHANGE_DAYS * DAY_MS
  const found = findingsSince(visit, sinceMs)
  if (found === undefined) return undefined
  const { findings, platforms, listed } = found
  const { evidenceWindowDays } = visit.organization
  const range = rangeOf(visit.request.query, evidenceWindowDays, visit.nowMs, { offersWindow: true })
  const { firstDay = 0, lastDay = Number.POSITIVE_INFINITY } = range ?? {}
  const decisions = new DecisionsByName(visit)
  const waiting = platforms.filter((platform) => isWaiting(decisions.stateOf(platform)))
  return {
    ...findings,
    waitingTotal: waiting.length,
    waiting: waiting
      .sort(byRisk)
      .slice(0, WAITING_SHOWN)
      .map((platform) => ({ ...platform, isExpired: decisions.stateOf(platform) === 'expired' })),
    recent: recentOf(visit, listed, decisions, range ?? lastDaysRange(CHANGE_DAYS, visit.nowMs)),
    dots: platforms,
    days: dailyUse(visit).filter(({ day }) => day >= firstDay && day <= lastDay),
  }
}

function recentOf(
  visit: Visit,
  listed: readonly ListedPlatform[],
  decisions: DecisionsByName,
  range: ChosenRange,
): RecentView {
  const { site, organization, nowMs } = visit
  const { days, firstDay, lastDay } = range
  const [newFromMs, newToMs] =
    days === undefined ? [firstDay * DAY_MS, (lastDay + 1) * DAY_MS] : [nowMs - days * DAY_MS, Number.POSITIVE_INFINITY]
  const catalog = site.registry.catalogOf(organization.id).platforms
  const recent = recentPlatforms(site.store, organization, listed, catalog, range)
  const ai = aiPlatforms(recent.platforms)
  const sumOf = (key: 'bytesSent' | 'bytesReceived' | 'blocked'): number => ai.reduce((sum, each) => sum + each[key], 0)
  return {
    range,
    platforms: ai.length,
    newPlatforms: ai
      .filter(({ newMs }) => newMs > newFromMs && newMs < newToMs)
      .map((platform) => ({ ...platform, state: decisions.stateOf(platform) }))
      .sort(byRisk),
    clients: recent.clients,
    isEstimate: recent.isEstimate,
    bytesSent: sumOf('bytesSent'),
    bytesReceived: sumOf('bytesReceived'),
    blocked: sumOf('blocked'),
    blockedOnly: recent.platforms.filter(({ use }) => use === 'blocked').length,
  }
}
