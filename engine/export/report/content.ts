import { basesOf, basisText } from '../../assess/basis.ts'
import { byUrgency } from '../../assess/publish.ts'
import { DAY_MS, dayOf } from '../../kernel/process/clock.ts'
import { GROUP_PEOPLE_MIN } from '../../limits.ts'
import { type CoverageJson, coverageJson } from '../../scan/coverage.ts'
import { type GroupUse, groupUse } from '../../scan/group-use.ts'
import { aiPlatforms, type ListedDiscovery, listedDiscovery } from '../../scan/listed-discovery.ts'
import type { DayRange } from '../../scan/periods.ts'
import { byRisk } from '../../scan/risk.ts'
import type { Decision, DecisionState } from '../../store/decisions.ts'
import { FRAMEWORK_IDS, FRAMEWORKS } from '../../store/framework.ts'
import type { Organization } from '../../store/organizations.ts'
import type { Recommendation } from '../../store/recommendations.ts'
import type { RegistryInForce } from '../../store/registry-in-force.ts'
import type { Scan } from '../../store/scans.ts'
import { isSourceSilent, sensorState } from '../../store/silence.ts'
import { isShared } from '../../store/sources.ts'
import type { Store } from '../../store/store.ts'

/** Rows of the tables. The text above each says how many there are in all. */
const RISKS_SHOWN = 10
const DECISIONS_SHOWN = 20
const RECOMMENDATIONS_SHOWN = 10
const NAMES_SHOWN = 10
const GROUPS_SHOWN = 10
/** Points of the chart of the risk. */
const POINTS_MAX = 60

export interface ReportedPlatform {
  readonly name: string
  readonly risk: number
  /** Why it is risky. */
  readonly why: string
  readonly clients: number
  /** The number of clients is an estimate. */
  readonly isEstimate: boolean
  readonly state: DecisionState
  /** Who is responsible for the use; '' if nobody is named. */
  readonly owner: string
}

/** A decision in force about a platform that was found. */
interface ReportedDecision {
  readonly name: string
  readonly state: DecisionState
  /** As in the audit log: `operator root`, or `member alice@acme.example`. */
  readonly by: string
  readonly owner: string
  readonly atMs: number
  /** 0: never. */
  readonly expiresAtMs: number
}

export interface ReportedScore {
  readonly name: string
  readonly score: number
  readonly grade: string
  /** Profile, share of items that are not applicable, and answers above the facts. */
  readonly basis: string
  readonly completedMs: number
  /** The change since the previous assessment; undefined if there is none. */
  readonly change: number | undefined
}

/** What happened between `sinceMs` and the report. */
interface ReportedChange {
  /** The change of the overall risk; undefined if no scan had completed at that time. */
  readonly risk: number | undefined
  /** The overall risk of completed scans, oldest first. */
  readonly risks: readonly { readonly atMs: number; readonly risk: number }[]
  readonly newPlatforms: number
  /** The first of them, by name. */
  readonly newNames: readonly string[]
  readonly approved: number
  readonly rejected: number
  readonly assessmentsCompleted: number
  readonly recommendationsOpened: number
  readonly recommendationsCompleted: number
}

export interface ReportedFindings {
  readonly completedMs: number
  readonly overallRisk: number
  /** AI platforms. All other fields are of them, too. */
  readonly platforms: number
  readonly bytesSent: number
  readonly bytesReceived: number
  /** Other software that was found, in which AI is one part. */
  readonly aiCapable: number
  readonly byState: Readonly<Record<DecisionState, number>>
  readonly change: ReportedChange
  /** The platforms with the highest risk. */
  readonly risks: readonly ReportedPlatform[]
  /** Those of GROUP_PEOPLE_MIN people or more, because reports are for many readers. Most matches first. */
  readonly groups: readonly GroupUse[]
  /** Newest first. */
  readonly decisions: readonly ReportedDecision[]
  readonly decided: number
}

export interface ReportContent {
  readonly organization: string
  readonly domain: string
  /** Days of evidence that the findings count. */
  readonly days: number
  readonly sinceMs: number
  /** The end of the compared period; `nowMs`, or before it. */
  readonly untilMs: number
  /** `sinceMs` is when the last report was made. */
  readonly isSinceLast: boolean
  readonly nowMs: number
  /** undefined before the first completed scan. */
  readonly findings: ReportedFindings | undefined
  readonly coverage: CoverageJson
  readonly silentSensors: number
  readonly sources: number
  readonly silentSources: number
  /** Frameworks with a completed assessment. */
  readonly scores: readonly ReportedScore[]
  /** The most urgent ones that are open or in progress. */
  readonly recommendations: readonly Recommendation[]
  readonly openRecommendations: number
  readonly openWithoutOwner: number
  readonly completedRecommendations: number
}

export interface ReportOptions {
  /**
   * The beginning of the compared period. By default the last report, or the first day of the
   * evidence window.
   */
  readonly sinceMs?: number | undefined
  /** Compares this period, and counts the use of groups in it. */
  readonly range?: DayRange | undefined
  /** The tables have all rows, for files. */
  readonly isWhole?: boolean
}

/** Where the content comes from. */
export interface ReportSource {
  readonly store: Store
  readonly registry: Pick<RegistryInForce, 'catalogOf'>
}

/**
 * The content of a report. Call it inside Environment.read.
 */
export function reportContent(
  source: ReportSource,
  organization: Organization,
  nowMs: number,
  { sinceMs: since, range, isWhole = false }: ReportOptions = {},
): ReportContent {
  const { store } = source
  const { id, name, domain, evidenceWindowDays: days, lastReportAtMs } = organization
  const givenSinceMs = range === undefined ? since : range.firstDay * DAY_MS
  const untilMs = range === undefined ? nowMs : Math.min(nowMs, (range.lastDay + 1) * DAY_MS)
  // The clock may have been set back since the last report.
  const isSinceLast = givenSinceMs === undefined && lastReportAtMs !== undefined && lastReportAtMs < nowMs
  const sinceMs = givenSinceMs ?? (isSinceLast ? lastReportAtMs : nowMs - days * DAY_MS)
  const discovery = listedDiscovery(store, organization)
  const recommendations = store.recommendations.ofOrganization(id).sort(byUrgency)
  const open = recommendations.filter(({ status }) => status === 'open' || status === 'in_progress')
  const sources = store.sources.heads(id).filter((each) => !isShared(each))
  return {
    organization: name,
    domain,
    days,
    sinceMs,
    untilMs,
    isSinceLast,
    nowMs,
    findings: findingsOf(source, organization, discovery, recommendations, {
      ...{ sinceMs, untilMs, nowMs, range, isWhole },
    }),
    coverage: coverageJson(store.coverage.sumSince(id, dayOf(nowMs) - days + 1)),
    silentSensors: store.coverage.sensors(id).filter(({ sensor }) => sensorState(sensor, nowMs) === 'silent').length,
    sources: sources.length,
    silentSources: sources.filter((each) => isSourceSilent(each, nowMs)).length,
    scores: scoresOf(store, id, nowMs, discovery),
    recommendations: isWhole ? open : open.slice(0, RECOMMENDATIONS_SHOWN),
    openRecommendations: open.length,
    openWithoutOwner: open.filter(({ owner }) => owner === '').length,
    completedRecommendations: recommendations.filter(({ status }) => status === 'completed').length,
  }
}

interface Period {
  readonly sinceMs: number
  readonly untilMs: number
  readonly range: DayRange | undefined
  readonly nowMs: number
  readonly isWhole: boolean
}

function findingsOf(
  { store, registry }: ReportSource,
  organization: Organization,
  { scan, platforms: listed }: ListedDiscovery,
  recommendations: readonly Recommendation[],
  { sinceMs, untilMs, nowMs, range, isWhole }: Period,
): ReportedFindings | undefined {
  const { id } = organization
  if (scan === undefined) return undefined
  const platforms = aiPlatforms(listed)
  const ids = new Map(registry.catalogOf(id).platforms.map((platform) => [platform.name, platform.id]))
  const { states } = store.decisions.inForce(id, nowMs)
  const decisions = store.decisions.ofOrganization(id)
  const decisionOf = new Map(decisions.map((decision) => [decision.platformId, decision]))
  // A decision shows at once. A platform that left the registry keeps the state of the scan.
  const found = platforms.map((platform) => {
    const platformId = ids.get(platform.name)
    const state = platformId === undefined ? platform.decision : (states.get(platformId) ?? 'waiting')
    return { platform, state, decision: platformId === undefined ? undefined : decisionOf.get(platformId) }
  })
  const byState = { waiting: 0, approved: 0, rejected: 0, expired: 0 }
  for (const { state } of found) byState[state]++
  const decided = found.flatMap(({ platform, state, decision }) =>
    decision === undefined || state === 'waiting' ? [] : [reportedDecision(platform.name, state, decision)],
  )
  const overallRisk = scan.summary.overall_risk_score
  const isIn = (timeMs: number): boolean => timeMs > sinceMs && timeMs <= untilMs
  return {
    completedMs: Date.parse(scan.completed_at),
    overallRisk,
    platforms: platforms.length,
    bytesSent: platforms.reduce((sum, each) => sum + each.bytesSent, 0),
    bytesReceived: platforms.reduce((sum, each) => sum + each.bytesReceived, 0),
    aiCapable: listed.filter(({ use }) => use === 'ai_capable').length,
    byState,
    change: {
      ...riskChange(store, id, sinceMs, untilMs),
      ...newPlatforms(platforms.filter(({ newMs }) => isIn(newMs))),
      approved: decisions.filter(({ kind, decidedAtMs }) => kind === 'approved' && isIn(decidedAtMs)).length,
      rejected: decisions.filter(({ kind, decidedAtMs }) => kind === 'rejected' && isIn(decidedAtMs)).length,
      assessmentsCompleted: store.assessments.completed(id).filter(({ completedAtMs }) => isIn(completedAtMs)).length,
      recommendationsOpened: recommendations.filter(({ createdAtMs }) => isIn(createdAtMs)).length,
      recommendationsCompleted: recommendations.filter(
        ({ status, statusChangedAtMs }) => status === 'completed' && isIn(statusChangedAtMs),
      ).length,
    },
    risks: found
      .toSorted((a, b) => byRisk(a.platform, b.platform))
      .slice(0, isWhole ? found.length : RISKS_SHOWN)
      .map(({ platform: { name, risk, why, clients, isEstimate }, state, decision }) => {
        return { name, risk, why, clients, isEstimate, state, owner: decision?.owner ?? '' }
      }),
    groups: groupUse(store, organization, nowMs, range)
      .filter(({ members, clients }) => members >= GROUP_PEOPLE_MIN && clients > 0)
      .slice(0, isWhole ? Number.POSITIVE_INFINITY : GROUPS_SHOWN),
    decisions: decided.toSorted((a, b) => b.atMs - a.atMs).slice(0, DECISIONS_SHOWN),
    decided: decided.length,
  }
}

function reportedDecision(name: string, state: DecisionState, decision: Decision): ReportedDecision {
  const { decidedBy: by, owner, decidedAtMs: atMs, expiresAtMs } = decision
  return { name, state, by, owner, atMs, expiresAtMs }
}

function riskChange(
  { scans }: Store,
  organizationId: string,
  sinceMs: number,
  untilMs: number,
): Pick<ReportedChange, 'risk' | 'risks'> {
  const isCompleted = ({ status, completedAtMs }: Scan): boolean => status === 'completed' && completedAtMs <= untilMs
  const before = scans.last(organizationId, (scan) => isCompleted(scan) && scan.completedAtMs <= sinceMs)
  const after = scans.ofOrganization(organizationId).filter((scan) => isCompleted(scan) && scan.completedAtMs > sinceMs)
  const all = (before === undefined ? after : [before, ...after]).map(({ completedAtMs, summary }) => {
    return { atMs: completedAtMs, risk: summary.overallRiskScore }
  })
  const last = all.at(-1)
  return { risk: before && last && last.risk - before.summary.overallRiskScore, risks: thinned(all) }
}

/** At most POINTS_MAX of them, evenly, with the first and the last. */
function thinned<Point>(points: readonly Point[]): readonly Point[] {
  if (points.length <= POINTS_MAX) return points
  const step = (points.length - 1) / (POINTS_MAX - 1)
  return Array.from({ length: POINTS_MAX }, (_, index) => points[Math.round(index * step)] as Point)
}

function newPlatforms(
  platforms: readonly { readonly name: string }[],
): Pick<ReportedChange, 'newPlatforms' | 'newNames'> {
  const names = platforms.map(({ name }) => name)
  return { newPlatforms: names.length, newNames: names.sort().slice(0, NAMES_SHOWN) }
}

function scoresOf(store: Store, organizationId: string, nowMs: number, discovery: ListedDiscovery): ReportedScore[] {
  const completed = store.assessments.completed(organizationId)
  const basis = basesOf(store, organizationId, nowMs, discovery)
  return FRAMEWORK_IDS.flatMap((id) => {
    const [last, before] = completed.filter(({ frameworkId, result }) => frameworkId === id && result !== null)
    if (last?.result === undefined || last.result === null) return []
    const { overallScore: score, grade } = last.result
    const scoreBefore = before?.result?.overallScore
    const change = scoreBefore === undefined ? undefined : score - scoreBefore
    const { completedAtMs: completedMs } = last
    return [{ name: FRAMEWORKS[id], score, grade, basis: basisText(basis(last)), completedMs, change }]
  })
}
