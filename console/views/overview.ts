import { DAY_MS } from '../../engine/kernel/process/clock.ts'
import { aiPlatforms, type ListedPlatform } from '../../engine/scan/listed-discovery.ts'
import { nextScanMs } from '../../engine/scan/period.ts'
import { recentPlatforms } from '../../engine/scan/recent-use.ts'
import { byRisk } from '../../engine/scan/risk.ts'
import type { DecisionState } from '../../engine/store/decisions.ts'
import type { DayBar } from '../design/chart.tsx'
import { type ChosenRange, lastDaysRange, rangeOf } from '../design/range.tsx'
import type { Visit } from '../http/visit.ts'
import { dailyUse } from './daily-use.ts'
import { DecisionsByName, isWaiting } from './decisions.ts'
import { type Findings, findingsSince } from './findings.ts'
import { type LatestSources, latestSources, type SensorsView, sensorsView } from './sources.ts'

const CHANGE_DAYS = 7
export const WAITING_SHOWN = 5
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
  // Here the range of the whole window is one of them, too.
  const range = rangeOf(visit.request.query, visit.organization.evidenceWindowDays + 1, visit.nowMs)
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
