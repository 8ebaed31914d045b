import { createHash } from 'node:crypto'
import { isUsed, type Use, useOf } from '../../registry/contact.ts'
import type { Matcher } from '../../registry/match.ts'
import { RISK_FORMULA, scoreOf } from '../../registry/risk-sum.ts'
import { type Clock, dayOf, isoSeconds } from '../kernel/process/clock.ts'
import { programVersion } from '../kernel/process/version.ts'
import { CLIENT_BYTES_PER_SCAN_MAX } from '../limits.ts'
import type { ClientDay } from '../store/client-days.ts'
import { ClientSum } from '../store/client-sum.ts'
import { bytesOfChange, type SummaryChange } from '../store/client-summaries.ts'
import type { DayUse } from '../store/daily-use.ts'
import type { DecisionsInForce } from '../store/decisions.ts'
import { sourceOfInstance } from '../store/event-source.ts'
import { type Detection, packDay } from '../store/evidence.ts'
import type { HistoryDay } from '../store/history.ts'
import { newUuid } from '../store/keys.ts'
import type { Organization } from '../store/organizations.ts'
import { type PackedList, PublishedList, packList } from '../store/published.ts'
import { retentionOf } from '../store/retention.ts'
import type { ScanState } from '../store/scan-states.ts'
import type { Scan, ScanTrigger } from '../store/scans.ts'
import type { Store } from '../store/store.ts'
import { accessFound, programmaticClients } from './access.ts'
import { SummaryUpdate } from './client-summaries.ts'
import { confidence } from './confidence.ts'
import { coverageJson } from './coverage.ts'
import type { EventAggregator } from './event-aggregator.ts'
import { Evidence } from './evidence.ts'
import { lastDaysOf } from './periods.ts'
import { byConfidence, type Finding, platformJson, scanJson, TOP_CLIENTS_MAX } from './publish.ts'
import { overallRiskScore } from './risk.ts'
import type { ScanBudget } from './scan-budget.ts'
import {
  affectedBy,
  detectionIn,
  lastFindings,
  NEVER_FOUND,
  type PublishedFinding,
  withVisibleShare,
} from './unchanged-findings.ts'
import { matchUnmatched, type UnmatchedChange } from './unmatched.ts'
import { UseCount } from './use-count.ts'
import { type ChangedDay, evidenceInWindow, evidenceOf, type SummedDay } from './window-evidence.ts'

/** New pages of a client record, with the pages of its tree, before LMDB frees the old ones. */
const PAGES_PER_BYTE = 2

/**
 * Everything that a scan will write, prepared in advance, so that its transaction is short: it
 * blocks all other writers.
 */
export interface PreparedScan {
  readonly completed: Scan
  /** The trigger of the request. A pending scan may also be due by the schedule. */
  readonly trigger: ScanTrigger
  /** The state before the scan, and the state to be written. */
  readonly stateBefore: ScanState
  readonly state: ScanState
  /** The sequence of the last processed event. 0: none. */
  readonly addedThrough: number
  readonly evidence: readonly ChangedDay[]
  readonly clients: readonly ClientDay[]
  /** Client records that a full disk has no space for. */
  readonly clientsLost: number
  /** Client records of earlier days are removed. */
  readonly clientsFrom: number
  /** undefined if a full disk has no space for them. */
  readonly summaries: SummaryChange | undefined
  readonly dailyUse: readonly DayUse[]
  readonly history: HistoryDay
  readonly newDetections: readonly { readonly platformId: string; readonly detection: Detection }[]
  readonly discovery: PackedList
  /** Platforms that the discovery does not count. */
  readonly others: PackedList
  /** Evidence before this day is removed. */
  readonly removeBefore: number
  readonly unmatched: UnmatchedChange
  /** Events left in the buffer because a limit was reached. */
  readonly left: number
}

/** The oldest day (UTC) in the evidence window. */
export function firstDayOfWindow(organization: Organization, nowMs: number): number {
  return lastDaysOf(organization.evidenceWindowDays, nowMs).firstDay
}

/** Another release may compute or write a finding differently. */
const VERSION = programVersion()

/** Hash of all inputs of a scan except evidence. If it changes, the result may change. */
export function inputsOf(organization: Organization, { states, plans }: DecisionsInForce, matcher: Matcher): string {
  const { evidenceWindowDays, domain } = organization
  const decided = [...states].filter(([, state]) => state !== 'waiting').sort(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256')
    .update(
      JSON.stringify([
        VERSION,
        RISK_FORMULA,
        decided,
        [...plans].sort(),
        evidenceWindowDays,
        domain,
        matcher.fingerprint,
      ]),
    )
    .digest('hex')
    .slice(0, 32)
}

/**
 * Reads the buffer and the evidence of an organization and computes what a scan writes. Writes
 * nothing. `aggregator` is scratch space.
 */
export function prepareScan(
  store: Store,
  matcher: Matcher,
  aggregator: EventAggregator,
  organization: Organization,
  { running, trigger, budget }: { readonly running: Scan; readonly trigger: ScanTrigger; readonly budget: ScanBudget },
  clock: Clock,
): PreparedScan {
  const organizationId = organization.id
  const stateBefore = store.scanStates.get(organizationId)
  const horizon = horizonOf(organization, stateBefore, clock.nowMs())
  const { addedThrough, left } = aggregateBuffer(store, matcher, aggregator, organizationId, horizon, budget)
  const unmatched = matchUnmatched(store, matcher, aggregator, organizationId, stateBefore, {
    horizon,
    isFull: left > 0,
  })
  const clientWindow = { ...organization, evidenceWindowDays: retentionOf(organization).clientDays }
  const summaries = new SummaryUpdate({
    ...{ store, organizationId, generation: stateBefore.generation, budget },
    firstDay: firstDayOfWindow(clientWindow, clock.nowMs()),
    // The clock of a sender may be ahead.
    lastDay: store.clientDays.lastDay(organizationId),
  })
  const clients: ClientDay[] = []
  let clientBytes = 0
  let clientsLost = 0
  const tokenIds = store.monitoringTokens.ofOrganization(organizationId).map(({ id }) => id)
  const changed = Array.from(
    aggregator.days(),
    ({ day, platformId, addTo, eachClient, mergeClients, instances }): SummedDay => {
      budget.check()
      const sum = new Evidence()
      store.evidence.addDayTo(organizationId, day, platformId, sum)
      addTo(sum)
      for (const [instance, matches] of instances()) sum.addSource(sourceOfInstance(instance, tokenIds), matches)
      eachClient((client, user, numbers) => summaries.add(day, platformId, client, user, numbers))
      const bytes = mergeClients(store.clientDays.get(organizationId, day, platformId))
      if (bytes !== undefined) {
        clientBytes += bytes.length
        // On a full disk a scan must still free the buffer, so it may write only little.
        if (store.environment.fitsShrink(PAGES_PER_BYTE * clientBytes)) clients.push({ day, platformId, bytes })
        else clientsLost++
      }
      const sketches = sum.sketches()
      return { day, platformId, record: packDay(sum, sketches), evidence: sum, clients: sketches.clients }
    },
  )

  // If the clock is set back during the scan, the scan must not end before it began.
  const nowMs = Math.max(clock.nowMs(), running.startedAtMs)
  const firstDay = firstDayOfWindow(organization, nowMs)
  const newDetections: { platformId: string; detection: Detection }[] = []
  const decisions = store.decisions.inForce(organizationId, nowMs)
  const inputs = inputsOf(organization, decisions, matcher)
  const isUseKnown = inputs === stateBefore.inputs
  const use = new UseCount(isUseKnown ? store.dailyUse.get(organizationId) : [], changed, decisions.approved)
  const topClients = topClientsOf(store, organization, firstDay, clients)
  const visibleShare = coverageJson(store.coverage.sumSince(organizationId, firstDay)).visible_share
  const isSameView = isUseKnown && firstDay === stateBefore.firstDay && organization.apiClients !== true
  const last = isSameView ? lastFindings(store, matcher, organizationId, dayOf(nowMs)) : undefined
  const window = { store, matcher, organizationId, firstDay, changed, budget }
  const affected = last && affectedBy(new Set(changed.map(({ platformId }) => platformId)), last, matcher)
  const inWindow = affected ? evidenceOf(affected, window, use) : evidenceInWindow(window, use)
  const programmatic = programmaticClients(inWindow)
  const isUnchanged = ({ platform }: PublishedFinding): boolean => affected?.has(platform.id) === false
  const unchanged = withVisibleShare([...(last?.values() ?? [])].filter(isUnchanged), visibleShare)
  const found = [...inWindow].map(([platform, found]): PublishedFinding => {
    budget.check()
    const published = last?.get(platform.id)
    const use = useOf(found)
    const isInUse = isUsed(use)
    let detection = published && isUsed(published.use) ? detectionIn(published) : undefined
    if (detection === undefined) {
      let known = store.evidence.detection(organizationId, platform.id)
      if (known === undefined && !isInUse) known = NEVER_FOUND
      if (known === undefined) {
        known = { id: newUuid(), createdAtMs: nowMs, registry: matcher.version }
        newDetections.push({ platformId: platform.id, detection: known })
      }
      detection = { id: known.id, createdAt: isoSeconds(known.createdAtMs) }
    }
    const plan = decisions.plans.get(platform.id)
    const finding: Finding = {
      platform,
      plan,
      use,
      evidence: found,
      confidence: !isInUse
        ? 0
        : confidence({
            domainStrength: found.domainStrength,
            clients: found.clients.estimate,
            matches: found.used,
            days: found.days,
          }),
      decision: decisions.states.get(platform.id) ?? 'waiting',
      detection,
      access: accessFound(platform, found, matcher),
      programmaticClients: programmatic.get(platform.id),
      ...(isInUse ? topClients(platform.id) : {}),
    }
    const { confidence: sure, decision } = finding
    const clients = found.clients.estimate
    const json = platformJson(finding, visibleShare)
    const risk = scoreOf(platform, decisions.plans)
    return { platform, risk, use, confidence: sure, decision, clients, matches: found.matches, json }
  })
  const findings = byConfidence([...unchanged, ...found])
  const ai = findings.filter((finding) => finding.use === 'ai')
  // General software with AI features, and platforms that nobody used, are not shadow AI.
  const others = findings.filter((finding) => finding.use !== 'ai')
  const countOf = (wanted: Use): number => others.filter(({ use }) => use === wanted).length
  const completed: Scan = {
    ...running,
    status: 'completed',
    registry: matcher.version,
    completedAtMs: nowMs,
    eventsAdded: aggregator.added,
    eventsUnmatched: aggregator.unmatched,
    eventsDamaged: aggregator.damaged + unmatched.damaged,
    eventsTooOld: aggregator.tooOld,
    waiting: unmatched.waiting,
    summary: {
      platformsDiscovered: ai.length,
      aiCapableCount: countOf('ai_capable'),
      blockedCount: countOf('blocked'),
      touchedCount: countOf('touched'),
      shadowAiCount: ai.filter(({ decision }) => decision !== 'approved').length,
      overallRiskScore: overallRiskScore(
        ai.map((finding) => ({
          risk: finding.risk,
          confidence: finding.confidence,
          approved: finding.decision === 'approved',
        })),
      ),
    },
  }
  const isScheduled = trigger === 'schedule'
  const summaryChange = summaries.change()
  const summaryBytes = bytesOfChange(summaryChange)
  return {
    completed,
    trigger,
    stateBefore,
    state: {
      ...stateBefore,
      generation: stateBefore.generation + 1,
      scheduledAtMs: isScheduled ? running.startedAtMs : stateBefore.scheduledAtMs,
      firstDay,
      inputs,
      riskFormula: RISK_FORMULA,
      decisionExpiresAtMs: decisions.nextExpiryMs,
      ...unmatched.state,
    },
    addedThrough,
    // Without the sums, which take far more memory than the records.
    evidence: changed.map(({ day, platformId, record }) => ({ day, platformId, record })),
    clients,
    clientsLost,
    clientsFrom: isScheduled ? horizonOf(clientWindow, stateBefore, nowMs) : 0,
    summaries: store.environment.fitsShrink(PAGES_PER_BYTE * (clientBytes + summaryBytes)) ? summaryChange : undefined,
    dailyUse: use.days(firstDay),
    newDetections,
    history: historyOf(completed, findings),
    discovery: packList(
      PublishedList.discovery,
      scanJson(completed),
      ai.map(({ json }) => json),
      store.published.stored(organizationId, PublishedList.discovery),
    ),
    others: packList(
      PublishedList.others,
      '',
      others.map(({ json }) => json),
    ),
    removeBefore: isScheduled ? horizon : 0,
    unmatched,
    left: left + unmatched.left,
  }
}

/** Of each list in the order of publication, which lastFindings() relies on. */
function historyOf({ id, completedAtMs, summary }: Scan, findings: readonly PublishedFinding[]): HistoryDay {
  const platforms = findings.map(({ platform, use, decision, risk, clients, matches }) => {
    return { id: platform.id, use, decision, risk, clients, matches }
  })
  return { scanId: id, completedAtMs, summary, platforms }
}

/**
 * Returns the clients of a platform for API responses, if the organization allows it. Records about
 * to be written replace their stored versions.
 */
function topClientsOf(
  store: Store,
  { id, apiClients = false }: Organization,
  firstDay: number,
  changed: readonly ClientDay[],
): (platformId: string) => Pick<Finding, 'topClients'> {
  if (!apiClients) return () => ({})
  const changedBytes = new Map(changed.map(({ day, platformId, bytes }) => [`${day} ${platformId}`, bytes]))
  const lastDay = changed.reduce((last, { day }) => Math.max(last, day), store.clientDays.lastDay(id))
  // One platform at a time: the sum of one has up to 40,000 clients.
  return (platformId) => {
    const sum = new ClientSum()
    for (let day = firstDay; day <= lastDay; day++) {
      const bytes = changedBytes.get(`${day} ${platformId}`) ?? store.clientDays.get(id, day, platformId)
      if (bytes !== undefined) sum.add({ day, platformId, bytes })
    }
    return { topClients: sum.clients(TOP_CLIENTS_MAX).filter(({ used }) => used !== 0) }
  }
}

/**
 * The first day that is kept: the first day that the previous scheduled scan counted. So a clock
 * that is far ahead for less than a period loses no evidence, and events of very old days cannot
 * fill the store.
 */
function horizonOf(organization: Organization, { scheduledAtMs }: ScanState, nowMs: number): number {
  return firstDayOfWindow(organization, Math.min(Math.max(scheduledAtMs, organization.createdAtMs), nowMs))
}

/** Adds all buffered events, or as many as the limits of the aggregator and the budget allow. */
function aggregateBuffer(
  store: Store,
  matcher: Matcher,
  aggregator: EventAggregator,
  organizationId: string,
  firstDay: number,
  budget: ScanBudget,
): { addedThrough: number; left: number } {
  const { clientDays } = store
  const isSmall = clientDays.totals(organizationId).bytes <= CLIENT_BYTES_PER_SCAN_MAX
  const storedBytesOf = (day: number, platformId: string) => clientDays.bytesOf(organizationId, day, platformId)
  aggregator.clear(matcher, firstDay, isSmall ? undefined : storedBytesOf)
  let next = 0
  for (const chunk of store.buffer.chunks(organizationId)) {
    next = aggregator.addChunk(chunk)
    if (next < chunk.end || !budget.mayAdd)
      return { addedThrough: next - 1, left: store.buffer.next(organizationId) - next }
  }
  return { addedThrough: Math.max(0, next - 1), left: 0 }
}
