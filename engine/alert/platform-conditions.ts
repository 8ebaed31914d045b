import { isUsed } from '../../registry/contact.ts'
import { reasonOf } from '../../registry/risk-sum.ts'
import { dayOf, dayText, isoDay, isoSeconds } from '../kernel/process/clock.ts'
import { contactsOf, type PublishedPlatform, publishedPlatforms } from '../scan/listed-discovery.ts'
import { subjectHash } from '../store/alerts.ts'
import type { StoredDay } from '../store/evidence.ts'
import { type Condition, type ConditionInput, type ConditionUse, lineOf, type RuleGroup } from './condition.ts'
import { isClientListMade, sentVolumes, VOLUME_RULES } from './volume-conditions.ts'

/** Days for which late logs count, such as files that are sent after a weekend. */
const LATE_DAYS_MAX = 7

/** What the last scan of an organization published. */
export const PLATFORM_RULES: RuleGroup = {
  name: 'platforms',
  rules: [
    ...(['new-platform', 'unapproved-platform', 'rejected-platform', 'rejected-platform-blocked'] as const),
    'platform-volume',
    ...VOLUME_RULES,
  ],
  // While the clients are not known, what was reported about them has not ended.
  remembered: (input) => ['new-platform', ...(isClientListMade(input) ? [] : VOLUME_RULES)],
  fingerprint: ({ store, organization }) => {
    const { generation, riskFormula = 0 } = store.scanStates.get(organization.id)
    return `${generation} ${formulaText(riskFormula)}`
  },
  conditions(input) {
    const { store, organization, nowMs } = input
    // Software with AI features is not shadow AI. Only its rejection is a reason for alerts.
    const found = publishedPlatforms(store, organization.id).filter(({ metadata }) => isUsed(metadata.use))
    // Today, and the days before it whose logs may still arrive.
    const firstDay = dayOf(nowMs) - LATE_DAYS_MAX
    const recent = [...store.evidence.since(organization.id, firstDay)]
    const platformIds = store.evidence.platformIds(organization.id)
    const useOf = ({ id }: PublishedPlatform, more: Omit<ConditionUse, 'platformId'> = {}): Pick<Condition, 'use'> => {
      const platformId = platformIds.get(id)
      return platformId === undefined ? {} : { use: { platformId, ...more } }
    }
    const ai = found.filter(({ metadata }) => metadata.use === 'ai')
    const known = isSameFormula(input) ? undefined : store.alerts.reported(organization.id, 'new-platform')
    const unapproved = unapprovedPlatforms(input, ai, useOf).map((each) => ({
      ...each,
      isCovered: known?.has(subjectHash(each.subject.id)) === true,
    }))
    const raised = input.isMuted('unapproved-platform') ? [] : unapproved.filter(({ isCovered }) => !isCovered)
    const covered = new Set(raised.map(({ subject }) => subject.id))
    return {
      'unapproved-platform': unapproved,
      'new-platform': ai.map((platform) => ({
        subject: subjectOf(platform),
        title: `New AI platform: ${platform.platform_name} (${platform.metadata.vendor})`,
        details: detailsOf(platform),
        ...useOf(platform),
        period: platform.id,
        isCovered: covered.has(platform.id),
      })),
      'rejected-platform': rejectedPlatforms(input, found, useOf),
      'rejected-platform-blocked': blockedPlatforms(input, recent),
      'platform-volume': highVolumes(input, recent, ai),
      ...sentVolumes(input, ai, firstDay),
    }
  },
}

/**
 * Whether the risks of the last scan compare with those that were last evaluated. If the formula
 * changed, platforms that were known are above a threshold although nobody did anything.
 */
function isSameFormula({ store, organization, lastInput }: ConditionInput): boolean {
  const [generation = '0', formula] = lastInput('platforms')?.split(' ') ?? []
  return generation === '0' || formula === formulaText(store.scanStates.get(organization.id).riskFormula ?? 0)
}

function formulaText(formula: number): string {
  return `formula-${formula}`
}

function subjectOf({ id, platform_name }: PublishedPlatform): Condition['subject'] {
  return { kind: 'platform', id, name: lineOf(platform_name) }
}

function detailsOf(platform: PublishedPlatform): Condition['details'] {
  const { platform_type, metadata } = platform
  const { used, blocked } = contactsOf(platform)
  return {
    platform_type,
    category: metadata.category,
    vendor: lineOf(metadata.vendor),
    risk: metadata.risk.score,
    risk_reason: reasonOf(metadata.risk),
    decision: metadata.decision,
    matches: used,
    blocked_matches: blocked,
    clients: metadata.clients,
    first_seen: metadata.first_seen,
    last_seen: metadata.last_seen,
  }
}

/** The use of a platform, for its groups and people. */
type UseOf = (platform: PublishedPlatform, more?: Omit<ConditionUse, 'platformId'>) => Pick<Condition, 'use'>

function unapprovedPlatforms(
  { threshold }: ConditionInput,
  found: readonly PublishedPlatform[],
  useOf: UseOf,
): Condition[] {
  const riskMin = threshold('unapproved-platform')
  return found
    .filter(({ metadata: { decision, risk } }) => {
      return decision !== 'approved' && decision !== 'rejected' && risk.score >= riskMin
    })
    .map((platform) => ({
      subject: subjectOf(platform),
      title: `${platform.platform_name} is used without approval (risk ${platform.metadata.risk.score})`,
      details: detailsOf(platform),
      ...useOf(platform),
    }))
}

/** Use on a day after the decision, or later on the day of the decision. */
function rejectedPlatforms(
  { store, organization }: ConditionInput,
  found: readonly PublishedPlatform[],
  useOf: UseOf,
): Condition[] {
  const rejectedAtMs = new Map<string, number>()
  for (const [platformId, { kind, decidedAtMs }] of store.decisions.last(organization.id)) {
    if (kind !== 'rejected') continue
    const detection = store.evidence.detection(organization.id, platformId)
    if (detection !== undefined) rejectedAtMs.set(detection.id, decidedAtMs)
  }
  return found.flatMap((platform) => {
    const { id, platform_name, metadata } = platform
    const decidedAtMs = rejectedAtMs.get(id)
    if (metadata.decision !== 'rejected' || decidedAtMs === undefined) return []
    const lastSeenMs = Date.parse(metadata.last_seen)
    if (lastSeenMs <= decidedAtMs) return []
    const day = isoDay(lastSeenMs)
    return {
      subject: subjectOf(platform),
      key: `${id} ${day}`,
      period: day,
      title: `${platform_name} is used although it was rejected`,
      details: { ...detailsOf(platform), rejected_at: isoSeconds(decidedAtMs) },
      // Not those who used it earlier on the day of the decision.
      ...useOf(platform, {
        day: dayOf(lastSeenMs),
        isMeant: ({ firstSeenMs }) => firstSeenMs > decidedAtMs,
      }),
    }
  })
}

/** The last day since the decision on which requests were blocked, and none was use. */
function blockedPlatforms(
  { store, organization, nowMs, nameOf }: ConditionInput,
  recent: readonly StoredDay[],
): Condition[] {
  const { states } = store.decisions.inForce(organization.id, nowMs)
  const rejectedAtMs = new Map<string, number>()
  for (const [platformId, { decidedAtMs }] of store.decisions.last(organization.id)) {
    if (states.get(platformId) === 'rejected') rejectedAtMs.set(platformId, decidedAtMs)
  }
  const blocked = new Map<string, Condition>()
  for (const { day, platformId, evidence } of recent) {
    if (evidence.used > 0 || evidence.blocked === 0) continue
    if (evidence.lastSeenMs <= (rejectedAtMs.get(platformId) ?? Number.POSITIVE_INFINITY)) continue
    const date = dayText(day)
    const name = lineOf(nameOf(platformId))
    blocked.set(platformId, {
      subject: { kind: 'platform', id: platformId, name },
      key: `${platformId} ${date}`,
      period: date,
      title: `Requests for ${name}, which was rejected, are blocked`,
      details: { day: date, blocked_matches: evidence.blocked },
    })
  }
  return [...blocked.values()]
}

function highVolumes(
  { store, organization, threshold }: ConditionInput,
  recent: readonly StoredDay[],
  found: readonly PublishedPlatform[],
): Condition[] {
  const matchesMax = threshold('platform-volume')
  const byId = new Map(found.map((platform) => [platform.id, platform]))
  const high: Condition[] = []
  for (const { day, platformId, evidence } of recent) {
    const matches = evidence.used
    if (matches <= matchesMax) continue
    const detection = store.evidence.detection(organization.id, platformId)
    const platform = detection && byId.get(detection.id)
    if (platform === undefined) continue
    const date = dayText(day)
    high.push({
      subject: subjectOf(platform),
      key: `${platform.id} ${date}`,
      period: date,
      title: `${platform.platform_name} had more than ${matchesMax} matches on ${date}`,
      details: { ...detailsOf(platform), day: date, matches_of_day: matches, threshold: matchesMax },
      use: { platformId, day },
      // Its day is not reported again if the approval ends.
      isCovered: platform.metadata.decision === 'approved',
    })
  }
  return high
}
