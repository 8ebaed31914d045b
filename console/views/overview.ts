import { DAY_MS } from '../../engine/kernel/process/clock.ts'
import type { ListedPlatform } from '../../engine/scan/listed-discovery.ts'
import { nextScanMs } from '../../engine/scan/period.ts'
import { byRisk } from '../../engine/scan/risk.ts'
import type { DecisionState } from '../../engine/store/decisions.ts'
import type { DayBar } from '../design/chart.tsx'
import type { Visit } from '../http/visit.ts'
import { dailyUse } from './daily-use.ts'
import { DecisionsByName, isWaiting } from './decisions.ts'
import { type Findings, findingsSince } from './findings.ts'
import { type LatestSources, latestSources, type SensorsView, sensorsView } from './intake.ts'

const CHANGE_DAYS = 7
export const WAITING_SHOWN = 5
const SOURCES_SHOWN = 5

/** A platform that waits for a decision. */
export interface WaitingRow extends ListedPlatform {
  /** There was a decision. */
  readonly isExpired: boolean
}

/** A platform that is new this week, so that all of its figures are of the week. */
export interface WeekRow extends ListedPlatform {
  readonly state: DecisionState
}

/** The findings, and their change in a week. */
export interface OverviewFindings extends Findings {
  readonly waitingTotal: number
  /** The platforms that wait for a decision, with the highest risk. */
  readonly waiting: readonly WaitingRow[]
  /** The platforms that were new in the week, the highest risk first. */
  readonly week: readonly WeekRow[]
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
  const { findings, platforms } = found
  const decisions = new DecisionsByName(visit)
  const waiting = platforms.filter((platform) => isWaiting(decisions.stateOf(platform)))
  return {
    ...findings,
    waitingTotal: waiting.length,
    waiting: waiting
      .sort(byRisk)
      .slice(0, WAITING_SHOWN)
      .map((platform) => ({ ...platform, isExpired: decisions.stateOf(platform) === 'expired' })),
    week: platforms
      .filter(({ newMs }) => newMs > sinceMs)
      .map((platform) => ({ ...platform, state: decisions.stateOf(platform) }))
      .sort(byRisk),
    dots: platforms,
    days: dailyUse(visit),
  }
}
