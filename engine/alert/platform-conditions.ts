import type { Use } from '../../registry/use.ts'
import { dayOf, isoSeconds } from '../process/clock.ts'
import { PublishedList } from '../store/published.ts'
import type { Store } from '../store/store.ts'
import { type Condition, type ConditionInput, lineOf, type RuleGroup } from './condition.ts'

const DAY_TEXT_CHARACTERS = '2026-11-22'.length
const DAY_MS = 86_400_000
/** Days for which late logs count, such as files that are sent after a weekend. */
const LATE_DAYS_MAX = 7

/** The fields that rules read of a platform in GET /api/v1/discovery. */
interface FoundPlatform {
  readonly id: string
  readonly platform_name: string
  readonly platform_type: string
  readonly metadata: {
    readonly vendor: string
    readonly use: Use
    readonly decision: 'waiting' | 'approved' | 'rejected' | 'expired'
    readonly risk: { readonly score: number }
    readonly matches: number
    readonly clients: number
    readonly first_seen: string
    readonly last_seen: string
  }
}

/** What the last scan of an organization published. */
export const PLATFORM_RULES: RuleGroup = {
  name: 'platforms',
  rules: ['new-platform', 'unapproved-platform', 'rejected-platform', 'platform-volume'],
  remembered: ['new-platform'],
  fingerprint: ({ store, organization }) => `${store.scanStates.get(organization.id).generation}`,
  conditions(input) {
    const found = foundPlatforms(input.store, input.organization.id)
    // Software with AI features is not shadow AI. Only its rejection is a reason for alerts.
    const ai = found.filter(({ metadata }) => metadata.use === 'ai')
    const unapproved = unapprovedPlatforms(input, ai)
    const reported = input.isMuted('unapproved-platform') ? [] : unapproved.map(({ subject }) => subject.id)
    const covered = new Set(reported)
    return {
      'unapproved-platform': unapproved,
      'new-platform': ai.map((platform) => ({
        subject: subjectOf(platform),
        title: `New AI platform: ${platform.platform_name} (${platform.metadata.vendor})`,
        details: detailsOf(platform),
        period: platform.id,
        isCovered: covered.has(platform.id),
      })),
      'rejected-platform': rejectedPlatforms(input, found),
      'platform-volume': highVolumes(input, ai),
    }
  },
}

function foundPlatforms({ published }: Store, organizationId: string): FoundPlatform[] {
  const count = published.head(organizationId, PublishedList.discovery)?.count ?? 0
  const json = Buffer.concat(published.elements(organizationId, PublishedList.discovery, count, 0, count))
  return JSON.parse(`[${json.toString()}]`) as FoundPlatform[]
}

function subjectOf({ id, platform_name }: FoundPlatform): Condition['subject'] {
  return { kind: 'platform', id, name: lineOf(platform_name) }
}

function detailsOf({ platform_type, metadata }: FoundPlatform): Condition['details'] {
  return {
    platform_type,
    vendor: lineOf(metadata.vendor),
    risk: metadata.risk.score,
    decision: metadata.decision,
    matches: metadata.matches,
    clients: metadata.clients,
    first_seen: metadata.first_seen,
    last_seen: metadata.last_seen,
  }
}

function unapprovedPlatforms({ threshold }: ConditionInput, found: readonly FoundPlatform[]): Condition[] {
  const riskMin = threshold('unapproved-platform')
  return found
    .filter(({ metadata: { decision, risk } }) => {
      return decision !== 'approved' && decision !== 'rejected' && risk.score >= riskMin
    })
    .map((platform) => ({
      subject: subjectOf(platform),
      title: `${platform.platform_name} is used without approval (risk ${platform.metadata.risk.score})`,
      details: detailsOf(platform),
    }))
}

/** Use on a day after the decision, or later on the day of the decision. */
function rejectedPlatforms({ store, organization }: ConditionInput, found: readonly FoundPlatform[]): Condition[] {
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
    if (Date.parse(metadata.last_seen) <= decidedAtMs) return []
    const day = metadata.last_seen.slice(0, DAY_TEXT_CHARACTERS)
    return {
      subject: subjectOf(platform),
      key: `${id} ${day}`,
      period: day,
      title: `${platform_name} is used although it was rejected`,
      details: { ...detailsOf(platform), rejected_at: isoSeconds(decidedAtMs) },
    }
  })
}

/** Today, and the days before it whose logs may still arrive. */
function highVolumes({ store, organization, nowMs, threshold }: ConditionInput, found: readonly FoundPlatform[]) {
  const matchesMax = threshold('platform-volume')
  const byId = new Map(found.map((platform) => [platform.id, platform]))
  const high: Condition[] = []
  for (const { day, platformId, evidence } of store.evidence.since(organization.id, dayOf(nowMs) - LATE_DAYS_MAX)) {
    const matches = evidence.byPurpose.use ?? 0
    if (matches <= matchesMax) continue
    const detection = store.evidence.detection(organization.id, platformId)
    const platform = detection && byId.get(detection.id)
    if (platform === undefined || platform.metadata.decision === 'approved') continue
    const date = isoSeconds(day * DAY_MS).slice(0, DAY_TEXT_CHARACTERS)
    high.push({
      subject: subjectOf(platform),
      key: `${platform.id} ${date}`,
      period: date,
      title: `${platform.platform_name} had more than ${matchesMax} matches on ${date}`,
      details: { ...detailsOf(platform), day: date, matches_of_day: matches, threshold: matchesMax },
    })
  }
  return high
}
