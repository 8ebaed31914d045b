import { dayOf } from '../../engine/kernel/process/clock.ts'
import { type Strengths, strengths } from '../../engine/scan/confidence.ts'
import { DistinctClients } from '../../engine/scan/distinct-clients.ts'
import { Evidence } from '../../engine/scan/evidence.ts'
import {
  contactsOf,
  listedDiscovery,
  type PublishedPlatform,
  publishedPlatform,
} from '../../engine/scan/listed-discovery.ts'
import { lastDaysOf } from '../../engine/scan/periods.ts'
import { type PlatformGroup, platformGroups } from '../../engine/scan/platform-groups.ts'
import { recentPlatforms } from '../../engine/scan/recent-use.ts'
import { effectiveRisk, type RiskOfPlatform } from '../../engine/scan/risk.ts'
import type { DecisionState } from '../../engine/store/decisions.ts'
import type { BlockListLink } from '../../engine/store/secrets.ts'
import { statusOf } from '../../engine/store/secrets.ts'
import type { Use } from '../../registry/contact.ts'
import type { Platform } from '../../registry/platform.ts'
import { PLATFORM_TYPES } from '../../registry/platform-type.ts'
import { planRisks, plansOf, type RiskTerm, ratedRisk } from '../../registry/risk-sum.ts'
import type { DayBar } from '../design/chart.tsx'
import { type ChosenRange, rangeOf } from '../design/range.tsx'
import type { Visit } from '../http/visit.ts'
import { type DecisionView, decisionView } from './decisions.ts'

/** A label with its count, such as a name with its matches. */
export type Count = readonly [what: string, count: number]

/** The use of a platform in the chosen range. */
type UseInRange = Pick<
  PlatformFinding,
  'used' | 'blocked' | 'clients' | 'isEstimate' | 'bytesSent' | 'bytesReceived' | 'days'
>

/** The findings of the last scan about a platform. */
export interface PlatformFinding {
  readonly confidence: number
  readonly risk: RiskSum
  /** As the last scan counted it. */
  readonly isApproved: boolean
  /** Matches by contact. */
  readonly used: number
  readonly blocked: number
  readonly touched: number
  readonly clients: number
  /** The number of clients is an estimate. */
  readonly isEstimate: boolean
  /** 0: no log has byte counts. */
  readonly bytesSent: number
  readonly bytesReceived: number
  readonly days: number
  readonly firstSeenMs: number
  readonly lastSeenMs: number
  readonly methods: readonly Count[]
  readonly roles: readonly Count[]
  /** How it was used, with the names that show it. */
  readonly access: PublishedPlatform['metadata']['access']
  /** Clients that used the API without a site or app; undefined if the API was not used. */
  readonly programmaticClients: number | undefined
  /** The names with the most matches. */
  readonly names: readonly Count[]
  readonly namesTotal: number
  /** undefined: the use is that of the evidence window. */
  readonly inRange: UseInRange | undefined
  /** Distinct clients on each day of the range. */
  readonly timeline: readonly DayBar[]
  /** Who used it, the most clients first. Empty: there are no groups, or the member may not read clients. */
  readonly groups: readonly PlatformGroup[]
  /** The contribution of each kind of evidence; undefined if the evidence has left the window. */
  readonly strengths: Strengths | undefined
}

/**
 * What a platform adds to the overall risk, as a sum. Effective risk = risk of the registry ×
 * confidence × share; the terms are what each factor changes, rounded so that they add up.
 */
interface RiskSum {
  /** The registry's score. */
  readonly registry: number
  /** What the confidence in the evidence takes away. Not above 0. */
  readonly evidence: number
  /** What an approval takes away. Not above 0. */
  readonly decision: number
  readonly total: number
}

export interface PlatformView {
  readonly name: string
  readonly vendor: string
  readonly type: string
  /** undefined: no match in the evidence window. */
  readonly use: Use | undefined
  readonly url: string
  readonly why: string
  /** The terms of the registry's score; empty if it is no sum. */
  readonly terms: readonly RiskTerm[]
  /** Plans that the registry knows, and the risk of each. */
  readonly plans: readonly string[]
  readonly planRisks: string
  readonly sources: readonly string[]
  /** The links of block lists that block it, if the member may see them. */
  readonly blockLists: readonly BlockListLink[] | undefined
  /** The organization's decision, which the next scan applies. */
  readonly state: DecisionState
  /** The last scan applied an earlier decision. */
  readonly decisionPending: boolean
  readonly decision: DecisionView
  readonly windowDays: number
  /** The use is that of this range. undefined: of the evidence window. */
  readonly range: ChosenRange | undefined
  /** undefined if the platform was not seen in the evidence window. */
  readonly finding: PlatformFinding | undefined
  /** The platform is in the registry, so it can be decided about. */
  readonly isRegistered: boolean
}

const NAMES_SHOWN_MAX = 50

/** A platform by name; undefined if neither the last scan nor the registry has it. */
export function platformView(visit: Visit, name: string): PlatformView | undefined {
  const { site, organization } = visit
  const published = publishedPlatform(site.store, organization, name)
  const registered = site.registry.catalogOf(organization.id).platforms.find((each) => each.name === name)
  if (published === undefined && registered === undefined) return undefined
  const range = rangeOf(visit.request.query, organization.evidenceWindowDays, visit.nowMs)
  const decision = decisionView(visit, registered?.id)
  const state = registered === undefined ? (published?.metadata.decision ?? 'waiting') : decision.last.state
  const risk =
    published?.metadata.risk ?? (registered && ratedRisk(registered, state === 'approved' ? decision.last.plan : ''))
  return {
    name,
    vendor: published?.metadata.vendor ?? registered?.vendor ?? '',
    type: published?.metadata.category ?? PLATFORM_TYPES[registered?.platformType ?? 'llm_chat'].category,
    use: published?.metadata.use,
    url: published?.url ?? registered?.url ?? '',
    why: risk?.why ?? '',
    terms: risk?.terms ?? [],
    plans: registered === undefined ? [] : plansOf(registered.facts ?? []),
    planRisks: registered === undefined ? '' : planRisks(registered),
    sources: [...new Set((registered?.source ?? []).map(sourceName))],
    blockLists: visit.may('block-list-link.read')
      ? blockListsWith(visit, state, registered?.risk.score ?? 0)
      : undefined,
    state,
    decisionPending: published !== undefined && published.metadata.decision !== state,
    decision,
    windowDays: organization.evidenceWindowDays,
    range,
    finding: published && findingOf(visit, published, registered, range),
    isRegistered: registered !== undefined,
  }
}

/** Active links, by the state and the risk that they select. */
function blockListsWith({ site, organization, nowMs }: Visit, state: DecisionState, risk: number): BlockListLink[] {
  return site.store.blockListLinks.ofOrganization(organization.id).filter((link) => {
    const isChosen = link.blocks === 'rejected' ? state === 'rejected' : state !== 'approved'
    return statusOf(link, nowMs) === 'active' && isChosen && risk >= link.riskMin
  })
}

function findingOf(
  visit: Visit,
  published: PublishedPlatform,
  registered: Platform | undefined,
  range: ChosenRange | undefined,
): PlatformFinding {
  const { confidence, metadata } = published
  const { risk, approved, clients, days } = metadata
  const contacts = contactsOf(published)
  const { evidence, timeline } = evidenceOf(visit, registered?.id ?? '', approved)
  const shown = timeline.filter(({ day }) => range === undefined || (day >= range.firstDay && day <= range.lastDay))
  const names =
    evidence.byName.size > 0 ? largestFirst(evidence.byName) : metadata.domains.map((each) => [each, 0] as const)
  return {
    confidence,
    risk: riskSum({ risk: risk.score, confidence, approved }),
    isApproved: approved,
    ...contacts,
    clients,
    isEstimate: metadata.clients_error > 0,
    bytesSent: metadata.bytes_sent ?? 0,
    bytesReceived: metadata.bytes_received ?? 0,
    days,
    firstSeenMs: Date.parse(metadata.first_seen),
    lastSeenMs: Date.parse(metadata.last_seen),
    methods: largestFirst(Object.entries(metadata.methods)),
    roles: largestFirst(Object.entries(metadata.roles)),
    access: metadata.access,
    programmaticClients: metadata.programmatic_clients,
    names: names.slice(0, NAMES_SHOWN_MAX),
    namesTotal: Math.max(names.length, metadata.domains_total),
    timeline: shown,
    inRange: range && useIn(visit, published, range, shown),
    groups: groupsOf(visit, registered, range),
    strengths:
      evidence.days === 0
        ? undefined
        : strengths({ domainStrength: evidence.domainStrength, clients, matches: contacts.used, days }),
  }
}

/** Empty: there are no groups, or the member may not read clients. */
function groupsOf(visit: Visit, platform: Platform | undefined, range: ChosenRange | undefined): PlatformGroup[] {
  const { site, organization, nowMs } = visit
  if (platform === undefined || !visit.may('client.read')) return []
  const days = range ?? lastDaysOf(organization.evidenceWindowDays, nowMs)
  return platformGroups(site.store, organization, platform.id, days)
}

function useIn(
  { site, organization }: Visit,
  { platform_name }: PublishedPlatform,
  range: ChosenRange,
  timeline: readonly DayBar[],
): UseInRange {
  const listed = listedDiscovery(site.store, organization).platforms.filter(({ name }) => name === platform_name)
  const catalog = site.registry.catalogOf(organization.id).platforms
  const [found] = recentPlatforms(site.store, organization, listed, catalog, range).platforms
  const { used = 0, blocked = 0, clients = 0, isEstimate = false } = found ?? {}
  const { bytesSent = 0, bytesReceived = 0 } = found ?? {}
  const days = timeline.filter(({ approved, notApproved }) => approved + notApproved > 0).length
  return { used, blocked, clients, isEstimate, bytesSent, bytesReceived, days }
}

/** Each product is rounded once, so that the terms add up to the total. */
export function riskSum(finding: RiskOfPlatform): RiskSum {
  const seen = Math.round(effectiveRisk({ ...finding, approved: false }))
  const total = Math.round(effectiveRisk(finding))
  return { registry: finding.risk, evidence: seen - finding.risk, decision: total - seen, total }
}

/**
 * The evidence of the days that the last scan counted. It is read day by day, without the evidence
 * of other platforms.
 */
function evidenceOf({ site, organization, nowMs }: Visit, platformId: string, approved: boolean) {
  const { store } = site
  const today = dayOf(nowMs)
  const firstDay = Math.max(store.scanStates.get(organization.id).firstDay, today - organization.evidenceWindowDays + 1)
  const evidence = new Evidence()
  const timeline: DayBar[] = []
  for (let day = firstDay; day <= today; day++) {
    const found = platformId === '' ? undefined : store.evidence.day(organization.id, day, platformId)
    if (found !== undefined) evidence.addDay(found)
    const clients = found === undefined || found.used === 0 ? 0 : DistinctClients.fromBytes(found.clients).estimate
    timeline.push({ day, approved: approved ? clients : 0, notApproved: approved ? 0 : clients })
  }
  return { evidence, timeline }
}

function largestFirst(counts: Iterable<Count>): Count[] {
  return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
}

/** `anomalyco/models.dev:providers` is a location in the source `anomalyco/models.dev`. */
function sourceName(source: string): string {
  return /^([\w.-]+\/[\w.-]+):/.exec(source)?.[1] ?? source
}
