import { byPriority } from '../../engine/assess/publish.ts'
import { DAY_MS } from '../../engine/process/clock.ts'
import { effectiveRisk } from '../../engine/scan/risk.ts'
import type { DecisionState } from '../../engine/store/decisions.ts'
import type { Recommendation } from '../../engine/store/recommendations.ts'
import type { Visit } from '../http/visit.ts'
import { assessmentsView, type FrameworkRow } from './assessments.ts'
import { DecisionsByName } from './decisions.ts'
import type { ListedPlatform } from './discovery.ts'
import { type Findings, findingsSince } from './findings.ts'
import { type SensorsView, sensorsView, sourcesView } from './intake.ts'

const PLATFORMS_SHOWN = 7
const RECOMMENDATIONS_SHOWN = 5

export interface ReportPlatform {
  readonly name: string
  readonly risk: number
  readonly why: string
  readonly clients: number
  /** The number of clients is an estimate. */
  readonly isEstimate: boolean
  readonly state: DecisionState
  /** Who is responsible for the use; '' if nobody is named. */
  readonly owner: string
}

/** The findings, and their change in the period of the report. */
export interface ReportFindings extends Findings {
  /** The platforms that contribute the most to the overall risk. */
  readonly highest: readonly ReportPlatform[]
}

export interface ReportView {
  readonly organization: string
  readonly domain: string
  readonly fromMs: number
  readonly toMs: number
  readonly days: number
  /** undefined before the first completed scan. */
  readonly findings: ReportFindings | undefined
  readonly sensors: SensorsView
  readonly sources: number
  readonly silentSources: number
  /** The frameworks with a completed assessment. */
  readonly frameworks: readonly FrameworkRow[]
  /** Recommendations that are open or in progress, the most urgent ones. */
  readonly recommendations: readonly Recommendation[]
  readonly openRecommendations: number
  readonly openWithoutOwner: number
  readonly doneRecommendations: number
}

/** What a manager reads: the findings of the evidence window, and what follows from them. */
export function reportView(visit: Visit): ReportView {
  const { site, organization, nowMs } = visit
  const days = organization.evidenceWindowDays
  const recommendations = site.store.recommendations.ofOrganization(organization.id)
  const open = openRecommendations(visit)
  const sources = sourcesView(visit)
  return {
    organization: organization.name,
    domain: organization.domain,
    fromMs: nowMs - days * DAY_MS,
    toMs: nowMs,
    days,
    findings: findingsOf(visit),
    sensors: sensorsView(visit),
    sources: sources.length,
    silentSources: sources.filter(({ isSilent }) => isSilent).length,
    frameworks: reportFrameworks(visit),
    recommendations: open.slice(0, RECOMMENDATIONS_SHOWN),
    openRecommendations: open.length,
    openWithoutOwner: open.filter(({ owner }) => owner === '').length,
    doneRecommendations: recommendations.filter(({ status }) => status === 'completed').length,
  }
}

/** The frameworks with a completed assessment. */
export function reportFrameworks(visit: Visit): readonly FrameworkRow[] {
  return assessmentsView(visit).frameworks.filter(({ last }) => last !== undefined)
}

/** Recommendations that are open or in progress, the most urgent first. */
export function openRecommendations({ site, organization }: Visit): readonly Recommendation[] {
  return site.store.recommendations
    .ofOrganization(organization.id)
    .filter(({ status }) => status === 'open' || status === 'in_progress')
    .sort(byPriority)
}

/** Every platform of the last scan, the ones that contribute the most to the overall risk first. */
export function reportPlatforms(visit: Visit): readonly ReportPlatform[] {
  return platformsOf(visit, foundBy(visit)?.platforms ?? [])
}

function foundBy(visit: Visit) {
  return findingsSince(visit, visit.nowMs - visit.organization.evidenceWindowDays * DAY_MS)
}

function findingsOf(visit: Visit): ReportFindings | undefined {
  const found = foundBy(visit)
  if (found === undefined) return undefined
  return { ...found.findings, highest: platformsOf(visit, found.platforms, PLATFORMS_SHOWN) }
}

function platformsOf(
  visit: Visit,
  platforms: readonly ListedPlatform[],
  countMax = platforms.length,
): readonly ReportPlatform[] {
  const { site, organization } = visit
  const decisions = new DecisionsByName(visit)
  const ownerOf = (name: string): string => {
    const id = decisions.get(name)?.id
    return id === undefined ? '' : (site.store.decisions.get(organization.id, id)?.owner ?? '')
  }
  return [...platforms]
    .sort((a, b) => effectiveRisk(b) - effectiveRisk(a))
    .slice(0, countMax)
    .map((platform) => {
      const { name, risk, why, clients, isEstimate } = platform
      return { name, risk, why, clients, isEstimate, state: decisions.stateOf(platform), owner: ownerOf(name) }
    })
}
