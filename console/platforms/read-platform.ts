import { dayOf } from '../../engine/kernel/process/clock.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { strengths } from '../../engine/scan/confidence.ts'
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
import { type Decision, type DecisionState, decisionState } from '../../engine/store/decisions.ts'
import { type BlockListLink, statusOf } from '../../engine/store/secrets.ts'
import type { Platform } from '../../registry/platform.ts'
import { PLATFORM_TYPES } from '../../registry/platform-type.ts'
import { planRisks, plansOf, ratedRisk } from '../../registry/risk-sum.ts'
import type { DayBar } from '../design/chart.tsx'
import type { Tone } from '../design/parts.tsx'
import { type ChosenRange, rangeOf } from '../design/range.tsx'
import type { Visit } from '../http/visit.ts'

/** A label with its count, such as a name with its matches. */
export type Count = readonly [what: string, count: number]

const NAMES_SHOWN_MAX = 50

/** A platform. @throws Fault NOT_FOUND if neither the last scan nor the registry has it */
export function platformView(visit: Visit, name: string) {
  const { site, organization, nowMs } = visit
  const published = publishedPlatform(site.store, organization, name)
  const registered = site.registry.catalogOf(organization.id).platforms.find((each) => each.name === name)
  if (published === undefined && registered === undefined) {
    throw new Fault('NOT_FOUND', `No platform ${JSON.stringify(name)} in the last scan or in the registry`)
  }
  const range = rangeOf(visit.request.query, organization.evidenceWindowDays, nowMs)
  const decisions = registered === undefined ? [] : site.store.decisions.history(organization.id, registered.id)
  const [last] = decisions
  const state = registered === undefined ? (published?.metadata.decision ?? 'waiting') : decisionState(last, nowMs)
  const plan = state === 'approved' ? (last?.plan ?? '') : ''
  const risk = published?.metadata.risk ?? (registered && ratedRisk(registered, plan))
  return {
    name,
    vendor: published?.metadata.vendor ?? registered?.vendor ?? '',
    type: published?.metadata.category ?? PLATFORM_TYPES[registered?.platformType ?? 'llm_chat'].category,
    /** undefined: no match in the evidence window. */
    use: published?.metadata.use,
    url: published?.url ?? registered?.url ?? '',
    why: risk?.why ?? '',
    /** The terms of the registry's score; empty if it is no sum. */
    terms: risk?.terms ?? [],
    plans: registered === undefined ? [] : plansOf(registered.facts ?? []),
    planRisks: registered === undefined ? '' : planRisks(registered),
    sources: [...new Set((registered?.source ?? []).map(sourceName))],
    /** undefined: the member may not see them. */
    blockLists: visit.may('block-list-link.read')
      ? blockListsWith(visit, state, registered?.risk.score ?? 0)
      : undefined,
    /** The organization's decision, which the next scan applies. */
    state,
    last,
    history: registered === undefined ? [] : historyOf(visit, registered.id, decisions),
    /** The last scan applied an earlier decision. */
    decisionPending: published !== undefined && published.metadata.decision !== state,
    /** The use is that of this range. undefined: of the evidence window. */
    range,
    /** undefined if the platform was not seen in the evidence window. */
    finding: published && findingOf(visit, published, registered, range),
    /** The platform can be decided about. */
    isRegistered: registered !== undefined,
  }
}

export type PlatformView = ReturnType<typeof platformView>

/** Active links, by the state and the risk that they select. */
function blockListsWith({ site, organization, nowMs }: Visit, state: DecisionState, risk: number): BlockListLink[] {
  return site.store.blockListLinks.ofOrganization(organization.id).filter((link) => {
    const isChosen = link.blocks === 'rejected' ? state === 'rejected' : state !== 'approved'
    return statusOf(link, nowMs) === 'active' && isChosen && risk >= link.riskMin
  })
}

export type PlatformFinding = ReturnType<typeof findingOf>

/** The findings of the last scan about a platform. */
function findingOf(
  visit: Visit,
  published: PublishedPlatform,
  registered: Platform | undefined,
  range: ChosenRange | undefined,
) {
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
    /** As the last scan counted it. */
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
    /** Clients that used the API without a site or app; undefined if the API was not used. */
    programmaticClients: metadata.programmatic_clients,
    names: names.slice(0, NAMES_SHOWN_MAX),
    namesTotal: Math.max(names.length, metadata.domains_total),
    timeline: shown,
    /** undefined: the use is that of the evidence window. */
    inRange: range && useIn(visit, published, range, shown),
    groups: groupsOf(visit, registered, range),
    /** The contribution of each kind of evidence; undefined if the evidence has left the window. */
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
) {
  const listed = listedDiscovery(site.store, organization).platforms.filter(({ name }) => name === platform_name)
  const catalog = site.registry.catalogOf(organization.id).platforms
  const [found] = recentPlatforms(site.store, organization, listed, catalog, range).platforms
  const { used = 0, blocked = 0, clients = 0, isEstimate = false } = found ?? {}
  const { bytesSent = 0, bytesReceived = 0 } = found ?? {}
  const days = timeline.filter(({ approved, notApproved }) => approved + notApproved > 0).length
  return { used, blocked, clients, isEstimate, bytesSent, bytesReceived, days }
}

/**
 * What a platform adds to the overall risk, as a sum. Effective risk = risk of the registry ×
 * confidence × share; the terms are what each factor changes. Each product is rounded once, so that
 * the terms add up to the total.
 */
export function riskSum(finding: RiskOfPlatform) {
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

const TONES: Readonly<Record<Decision['kind'], Tone>> = { approved: 'good', rejected: 'bad', withdrawn: 'plain' }

/** An entry of a platform's history. */
interface HistoryEntry {
  readonly timeMs: number
  readonly tone: Tone
  readonly event: string
  readonly decision?: Decision
}

/** Everything that was decided about a platform, newest first; and when it was first detected. */
function historyOf(
  { site, organization, nowMs }: Visit,
  platformId: string,
  decisions: readonly Decision[],
): readonly HistoryEntry[] {
  const history = decisions.flatMap((decision, at): HistoryEntry[] => {
    const { kind, expiresAtMs, decidedAtMs } = decision
    const endedAtMs = decisions[at - 1]?.decidedAtMs ?? nowMs
    const isExpired = expiresAtMs !== 0 && expiresAtMs <= endedAtMs
    return [
      ...(isExpired ? [{ timeMs: expiresAtMs, tone: 'warn', event: 'expired' } as const] : []),
      { timeMs: decidedAtMs, tone: TONES[kind], event: kind, decision },
    ]
  })
  const detection = site.store.evidence.detection(organization.id, platformId)
  if (detection !== undefined) {
    history.push({ timeMs: detection.createdAtMs, tone: 'plain', event: 'first detected' })
  }
  // The clock may have been set back between two decisions: the sort is stable, so they keep their order.
  return history.sort((a, b) => b.timeMs - a.timeMs)
}
