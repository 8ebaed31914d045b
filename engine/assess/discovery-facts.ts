import { DAY_MS, dayOf } from '../kernel/process/clock.ts'
import { coverageJson } from '../scan/coverage.ts'
import { aiPlatforms, listedDiscovery } from '../scan/listed-discovery.ts'
import type {
  Assessment,
  AssessmentCategory,
  AssessmentItem,
  DiscoveryFacts,
  DiscoveryTopic,
} from '../store/assessments.ts'
import type { AnyFrameworkId } from '../store/framework.ts'
import { isShared } from '../store/sources.ts'
import type { Store } from '../store/store.ts'
import { topicOf } from './discovery-topics.ts'
import { pointsOf } from './score.ts'
import { itemsOf } from './states.ts'

/*
 * What discovery knows about the items in discovery-topics.ts, and the answer that this supports:
 *
 *   topic       yes                                 no                             otherwise
 *   inventory   every AI platform has a decision    the last scan is old           partial
 *   shadow_ai   every AI platform is approved       none is approved               partial
 *   suppliers   every AI platform is approved, and  no approval is in force        partial
 *               each approval has owner and expiry
 *   logging     no source of logs is silent         all are silent                 partial
 *   monitoring  nothing is silent, and most names   all are silent, or the last    partial
 *               are visible                         scan is old
 *
 * Without a completed scan, or without anything to count, there are no facts.
 */

/** A scan of an earlier time says nothing about today. */
const SCAN_AGE_MAX_MS = 7 * DAY_MS
/** Longer than a night, so that quiet hours change no answer. */
const SILENT_MS = DAY_MS
const VISIBLE_SHARE_MIN = 0.8

export type FactsByTopic = ReadonlyMap<DiscoveryTopic, DiscoveryFacts>

/** The facts about an organization. Call it inside Environment.read. */
export function discoveryFacts(store: Store, organizationId: string, nowMs: number): FactsByTopic {
  const organization = store.organizations.get(organizationId)
  const facts = new Map<DiscoveryTopic, DiscoveryFacts>()
  if (organization === undefined) return facts
  const { scan, platforms: listed } = listedDiscovery(store, organization)
  if (scan === undefined) return facts
  const isOld = nowMs - Date.parse(scan.completed_at) > SCAN_AGE_MAX_MS
  const add = (topic: DiscoveryTopic, level: DiscoveryFacts['level'], text: string): void => {
    facts.set(topic, { topic, level, text: `${text}; last scan ${scan.completed_at}`, atMs: nowMs })
  }
  const platforms = aiPlatforms(listed)
  const found = `AI platforms found: ${platforms.length}`
  const undecided = platforms.filter(({ decision }) => decision === 'waiting' || decision === 'expired').length
  const notApproved = platforms.filter(({ approved }) => !approved).length
  add(
    'inventory',
    isOld ? 'no' : undecided === 0 ? 'yes' : 'partial',
    `${found}; without a decision: ${undecided}; other products with AI: ${listed.filter(({ use }) => use === 'ai_capable').length}`,
  )
  if (platforms.length > 0) {
    add(
      'shadow_ai',
      notApproved === platforms.length ? 'no' : notApproved > 0 || isOld ? 'partial' : 'yes',
      `${found}; not approved: ${notApproved}`,
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
  if (watching > 0) {
    const firstDay = dayOf(nowMs) - organization.evidenceWindowDays + 1
    const { visible_share } = coverageJson(store.coverage.sumSince(organizationId, firstDay))
    const isBlind = visible_share !== null && visible_share < VISIBLE_SHARE_MIN
    const share = visible_share === null ? '' : `; names visible: ${Math.round(100 * visible_share)}%`
    add(
      'monitoring',
      isOld || silent === watching ? 'no' : silent > 0 || isBlind ? 'partial' : 'yes',
      `${sourcesText}; sensors: ${sensors.length}; silent for a day: ${silentSensors}${share}`,
    )
  }
  return facts
}

/**
 * The answer that facts suggest. Discovery sees only AI, so for the items of a general framework it
 * is `partial` at best.
 */
export function suggestedBy(frameworkId: AnyFrameworkId, { level }: DiscoveryFacts): DiscoveryFacts['level'] {
  return level === 'yes' && frameworkId !== 'ai-security' ? 'partial' : level
}

/** The categories with the facts about their items, to be kept with a completed assessment. */
export function withFacts(
  { frameworkId }: Assessment,
  categories: readonly AssessmentCategory[],
  facts: FactsByTopic,
): AssessmentCategory[] {
  const known = ({ facts: _, ...item }: AssessmentItem): AssessmentItem => {
    const topic = topicOf(frameworkId, item.id)
    const found = topic && facts.get(topic)
    return found === undefined ? item : { ...item, facts: found }
  }
  return categories.map((category) => ({ ...category, items: category.items.map(known) }))
}

/** An answer of a completed assessment that the facts supported then and do not support now. */
export interface UnsupportedAnswer {
  readonly item: AssessmentItem
  readonly facts: DiscoveryFacts
}

export function unsupportedAnswers(
  { frameworkId, status }: Assessment,
  categories: readonly AssessmentCategory[],
  facts: FactsByTopic,
): UnsupportedAnswer[] {
  if (status !== 'completed') return []
  return itemsOf(categories).flatMap((item) => {
    const now = item.facts && facts.get(item.facts.topic)
    const answered = pointsOf(item.answer)
    if (item.facts === undefined || now === undefined || answered === undefined) return []
    const gotWorse = pointsFor(now.level) < pointsFor(item.facts.level)
    return gotWorse && pointsFor(suggestedBy(frameworkId, now)) < answered ? [{ item, facts: now }] : []
  })
}

function pointsFor(level: DiscoveryFacts['level']): number {
  return pointsOf(level) ?? 0
}
