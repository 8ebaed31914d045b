import { DAY_MS, dayOf } from '../kernel/process/clock.ts'
import { coverageJson } from '../scan/coverage.ts'
import { aiPlatforms, type ListedDiscovery, type ListedPlatform, listedDiscovery } from '../scan/listed-discovery.ts'
import type { Assessment, AssessmentCategory, AssessmentItem, DiscoveryFacts } from '../store/assessments.ts'
import { type Decision, type DecisionState, decisionState } from '../store/decisions.ts'
import { type AnyFrameworkId, type DiscoveryTopic, type ItemDiscovery, isBuiltIn } from '../store/framework.ts'
import { isShared } from '../store/sources.ts'
import type { Store } from '../store/store.ts'
import { itemKey } from './rules.ts'
import { pointsOf } from './score.ts'
import { itemsOf } from './states.ts'
import { frameworkItems } from './templates.ts'

/** What discovery can show, by the facts. An item names its facts in frameworks/. */
export const CLAIMS: Readonly<Record<DiscoveryTopic, string>> = {
  inventory: 'each AI platform found on the network has a decision',
  shadow_ai: 'each AI platform found gets a decision within 30 days, and no rejected platform is used',
  suppliers: 'only approved AI platforms are used, and each approval has an owner and an end',
  logging: 'the sources of logs send',
  monitoring: 'use of AI platforms is seen on the network',
}

/*
 * The facts, and the answer to their claim that they support:
 *
 *   inventory   yes      every AI platform has a decision, and the last scan is recent
 *               no       the last scan is old
 *   shadow_ai   yes      every AI platform found in the last 90 days was decided within 30 days,
 *                        every other one is decided, none is used after its rejection, and the last
 *                        scan is recent
 *               no       every AI platform waits for longer than 30 days, or is used after its
 *                        rejection
 *   suppliers   yes      every AI platform is approved, each approval has owner and expiry, and the
 *                        last scan is recent
 *               no       no approval is in force
 *   logging     yes      no source of logs is silent, and the last scan is recent
 *               no       all are silent
 *   monitoring  yes      the last scan is recent, nothing is silent, and most names are visible
 *               no       all are silent, or the last scan is old
 *
 * Otherwise partial. Without a completed scan, or without anything to count, there are no facts.
 */

/** A scan of an earlier time says nothing about today. */
const SCAN_AGE_MAX_MS = 7 * DAY_MS
/** Longer than a night, so that quiet hours change no answer. */
const SILENT_MS = DAY_MS
const VISIBLE_SHARE_MIN = 0.8
const DECISION_DUE_MS = 30 * DAY_MS
/** Late decisions count for a quarter. */
const LATE_COUNTS_MS = 90 * DAY_MS

export type Level = DiscoveryFacts['level']
export const LEVELS: readonly Level[] = ['no', 'partial', 'yes']

export type FactsByTopic = ReadonlyMap<DiscoveryTopic, DiscoveryFacts>

/**
 * The facts about an organization. Call it inside Environment.read.
 *
 * @param discovery if the caller has read it
 */
export function discoveryFacts(
  store: Store,
  organizationId: string,
  nowMs: number,
  discovery?: ListedDiscovery,
): FactsByTopic {
  const organization = store.organizations.get(organizationId)
  const facts = new Map<DiscoveryTopic, DiscoveryFacts>()
  if (organization === undefined) return facts
  const { scan, platforms: listed } = discovery ?? listedDiscovery(store, organization)
  if (scan === undefined) return facts
  const isOld = nowMs - Date.parse(scan.completed_at) > SCAN_AGE_MAX_MS
  const add = (topic: DiscoveryTopic, level: Level, text: string): void => {
    facts.set(topic, { topic, level, text: `${text}; last scan ${scan.completed_at}`, atMs: nowMs })
  }
  const platforms = decided(store, organizationId, aiPlatforms(listed), nowMs)
  const found = `AI platforms found: ${platforms.length}`
  const undecided = platforms.filter(({ isDecided }) => !isDecided).length
  const notApproved = platforms.filter(({ state }) => state !== 'approved').length
  add(
    'inventory',
    isOld ? 'no' : undecided === 0 ? 'yes' : 'partial',
    `${found}; without a decision: ${undecided}; other products with AI: ${listed.filter(({ use }) => use === 'ai_capable').length}`,
  )
  if (platforms.length > 0) {
    const late = platforms.filter(({ isLate }) => isLate).length
    const usedRejected = platforms.filter(({ isUsedRejected }) => isUsedRejected).length
    const failed = platforms.filter(({ isDecided, isLate, isUsedRejected }) => isUsedRejected || (isLate && !isDecided))
    add(
      'shadow_ai',
      failed.length === platforms.length ? 'no' : undecided + late + usedRejected > 0 || isOld ? 'partial' : 'yes',
      `${found}; not approved: ${notApproved}; without a decision: ${undecided}; not decided within 30 days: ${late}; used after rejection: ${usedRejected}`,
    )
    const inForce = store.decisions.inForce(organizationId, nowMs).approved
    const approvals = [...store.decisions.ofPlatforms(organizationId, [...inForce]).values()]
    const owned = approvals.filter(({ owner }) => owner !== '').length
    const expiring = approvals.filter(({ expiresAtMs }) => expiresAtMs !== 0).length
    const isReviewed = owned === approvals.length && expiring === approvals.length
    add(
      'suppliers',
      approvals.length === 0 ? 'no' : isReviewed && notApproved === 0 && !isOld ? 'yes' : 'partial',
      `approvals in force: ${approvals.length}; with an owner: ${owned}; with an expiry: ${expiring}; ${found}; not approved: ${notApproved}`,
    )
  }
  const sources = store.sources
    .ofOrganization(organizationId)
    .filter((source) => source.listener !== 'file' && !isShared(source))
  const silentSources = sources.filter(({ lastSeenMs }) => nowMs - lastSeenMs > SILENT_MS).length
  const sourcesText = `sources of logs: ${sources.length}; silent for a day: ${silentSources}`
  if (sources.length > 0) {
    const level = silentSources === sources.length ? 'no' : silentSources > 0 ? 'partial' : 'yes'
    add('logging', level === 'yes' && isOld ? 'partial' : level, sourcesText)
  }
  const sensors = store.coverage.sensors(organizationId).filter(({ sensor }) => !sensor.ended)
  const silentSensors = sensors.filter(({ sensor }) => nowMs - sensor.heardMs > SILENT_MS).length
  const watching = sources.length + sensors.length
  const silent = silentSources + silentSensors
  if (watching + platforms.length > 0) {
    const firstDay = dayOf(nowMs) - organization.evidenceWindowDays + 1
    const { visible_share: share } = coverageJson(store.coverage.sumSince(organizationId, firstDay))
    const isComplete = watching > 0 && silent === 0 && share !== null && share >= VISIBLE_SHARE_MIN
    const isBlind = isOld || (watching > 0 && silent === watching)
    const shareText = share === null ? 'not known' : `${Math.round(100 * share)}%`
    add(
      'monitoring',
      isBlind ? 'no' : isComplete ? 'yes' : 'partial',
      `${found}; ${sourcesText}; sensors: ${sensors.length}; silent for a day: ${silentSensors}; names visible: ${shareText}`,
    )
  }
  return facts
}

/** What was decided about a platform that was found. */
interface DecidedPlatform {
  readonly state: DecisionState
  readonly isDecided: boolean
  /** It waits, or waited, for longer than it should. */
  readonly isLate: boolean
  readonly isUsedRejected: boolean
}

function decided(
  { decisions, evidence }: Store,
  organizationId: string,
  platforms: readonly ListedPlatform[],
  nowMs: number,
): DecidedPlatform[] {
  const last = new Map(
    [...decisions.last(organizationId)].flatMap(([platformId, decision]) => {
      const detection = evidence.detection(organizationId, platformId)
      return detection === undefined ? [] : [[detection.id, { platformId, decision }] as const]
    }),
  )
  return platforms.map(({ id, createdMs, lastSeenMs }) => {
    const known = last.get(id)
    const state = decisionState(known?.decision, nowMs)
    if (known === undefined) {
      return { state, isDecided: false, isLate: nowMs > createdMs + DECISION_DUE_MS, isUsedRejected: false }
    }
    const { platformId, decision } = known
    const isDecided = state === 'approved' || state === 'rejected'
    if (!isDecided) {
      const endedMs = decision.kind === 'withdrawn' ? decision.decidedAtMs : decision.expiresAtMs
      const isLate = nowMs > Math.max(createdMs, endedMs) + DECISION_DUE_MS
      return { state, isDecided, isLate, isUsedRejected: false }
    }
    const dueMs = createdMs + DECISION_DUE_MS
    // A decision may have been renewed since.
    const history = () => decisions.history(organizationId, platformId)
    const isLate =
      decision.decidedAtMs > dueMs &&
      nowMs - createdMs <= LATE_COUNTS_MS &&
      history().every(({ kind, decidedAtMs }) => kind === 'withdrawn' || decidedAtMs > dueMs)
    return { state, isDecided, isLate, isUsedRejected: state === 'rejected' && lastSeenMs > rejectedSinceMs(history()) }
  })
}

/** When the last rejection began: a rejection of a platform that is rejected only renews it. */
function rejectedSinceMs(newestFirst: readonly Decision[]): number {
  let sinceMs = 0
  for (const { kind, decidedAtMs, expiresAtMs } of newestFirst) {
    const hasEnded = expiresAtMs !== 0 && expiresAtMs <= sinceMs
    if (kind !== 'rejected' || hasEnded) break
    sinceMs = decidedAtMs
  }
  return sinceMs
}

/** The facts that an item names. undefined: discovery shows nothing about it. */
export function discoveryOf(frameworkId: AnyFrameworkId, id: string): ItemDiscovery | undefined {
  return isBuiltIn(frameworkId) ? frameworkItems(frameworkId).get(itemKey(id))?.discovery : undefined
}

/**
 * The answer to an item that facts support. Where they show only a part of what the item asks for,
 * they support no `yes`, and prove no `no`.
 */
export function supportedAnswer({ decides }: ItemDiscovery, { level }: DiscoveryFacts): Level | undefined {
  return decides ? level : level === 'no' ? undefined : 'partial'
}

/** The categories with the facts about their items, to be kept with a completed assessment. */
export function withFacts(
  { frameworkId }: Assessment,
  categories: readonly AssessmentCategory[],
  facts: FactsByTopic,
): AssessmentCategory[] {
  const known = ({ facts: _, ...item }: AssessmentItem): AssessmentItem => {
    const discovery = discoveryOf(frameworkId, item.id)
    const found = discovery && facts.get(discovery.topic)
    return found === undefined ? item : { ...item, facts: found }
  }
  return categories.map((category) => ({ ...category, items: category.items.map(known) }))
}

/** An answer that is better than the facts that its item names. */
export interface UnsupportedAnswer {
  readonly item: AssessmentItem
  readonly facts: DiscoveryFacts
  /** The facts were better when the assessment was completed. */
  readonly gotWorse: boolean
}

/** @param facts of today, or none; then those at completion count */
export function unsupportedAnswers(
  { frameworkId }: Assessment,
  categories: readonly AssessmentCategory[],
  facts: FactsByTopic,
): UnsupportedAnswer[] {
  return itemsOf(categories).flatMap((item) => {
    const discovery = discoveryOf(frameworkId, item.id)
    const answered = pointsOf(item.answer)
    if (discovery === undefined || answered === undefined) return []
    const then = item.facts?.topic === discovery.topic ? item.facts : undefined
    const now = facts.get(discovery.topic) ?? then
    if (now === undefined || answered <= pointsWith(discovery, now)) return []
    return [
      { item, facts: now, gotWorse: then !== undefined && pointsWith(discovery, now) < pointsWith(discovery, then) },
    ]
  })
}

/** The most points that do not contradict the facts. */
function pointsWith({ decides }: ItemDiscovery, { level }: DiscoveryFacts): number {
  return decides ? POINTS_OF_LEVEL[level] : level === 'yes' ? 100 : 50
}

const POINTS_OF_LEVEL = { no: 0, partial: 50, yes: 100 } as const
