import { createHash } from 'node:crypto'
import type { Matcher } from '../../registry/match.ts'
import type { Platform } from '../../registry/platform.ts'
import { type Clock, dayOf } from '../process/clock.ts'
import type { DayEvidence, Detection } from '../store/evidence.ts'
import { newUuid } from '../store/keys.ts'
import type { Organization } from '../store/organizations.ts'
import { type PackedList, PublishedList, packList } from '../store/published.ts'
import type { ScanState } from '../store/scan-states.ts'
import type { Scan, ScanTrigger } from '../store/scans.ts'
import type { Store } from '../store/store.ts'
import { confidence } from './confidence.ts'
import { coverageJson } from './coverage.ts'
import type { EventFold } from './event-fold.ts'
import { Evidence } from './evidence.ts'
import { type Finding, inOrderOfConfidence, platformJson, scanJson } from './publish.ts'
import { overallRiskScore } from './risk.ts'
import { matchUnmatched, type UnmatchedChange } from './unmatched.ts'

/** Names of one platform that a finding is made of. */
const NAMES_IN_WINDOW_MAX = 512

/** What a scan will write, all of it ready: so that its transaction, which holds up all other writers, is short. */
export interface PreparedScan {
  readonly completed: Scan
  /** Of the request: one that was pending may be due by the schedule, too. */
  readonly trigger: ScanTrigger
  /** The state that all of this was read in, and the one that follows. */
  readonly stateBefore: ScanState
  readonly state: ScanState
  /** The last event that was folded; 0 where there was none. */
  readonly foldedThrough: number
  readonly evidence: readonly { readonly day: number; readonly platformId: string; readonly record: DayEvidence }[]
  readonly newDetections: readonly { readonly platformId: string; readonly detection: Detection }[]
  readonly discovery: PackedList
  /** Evidence before this day is not needed any more. */
  readonly removeBefore: number
  readonly unmatched: UnmatchedChange
  /** Events that were not folded, because a bound was reached. */
  readonly left: number
}

/** The oldest day (UTC) whose evidence still counts. */
export function firstDayOfWindow(organization: Organization, nowMs: number): number {
  return Math.max(0, dayOf(nowMs) - organization.evidenceWindowDays + 1)
}

/** What else than evidence decides how a scan reads: where this changes, so may the next scan. */
export function inputsOf(organization: Organization, matcher: Matcher): string {
  const { approvedPlatformIds, evidenceWindowDays, domain } = organization
  return createHash('sha256')
    .update(JSON.stringify([[...approvedPlatformIds].sort(), evidenceWindowDays, domain, matcher.fingerprint]))
    .digest('hex')
    .slice(0, 32)
}

/** Reads the buffer and the evidence of an organization, and makes what a scan of them writes. Writes nothing itself. `fold` is scratch. */
export function prepareScan(
  store: Store,
  matcher: Matcher,
  fold: EventFold,
  organization: Organization,
  { running, trigger }: { readonly running: Scan; readonly trigger: ScanTrigger },
  clock: Clock,
): PreparedScan {
  const organizationId = organization.id
  const stateBefore = store.scanStates.get(organizationId)
  const horizon = horizonOf(organization, stateBefore, clock.nowMs())
  const { foldedThrough, left } = foldBuffer(store, matcher, fold, organizationId, horizon)
  const unmatched = matchUnmatched(store, matcher, fold, organizationId, stateBefore, { horizon, isFull: left > 0 })
  const evidence = Array.from(fold.days(), ({ day, platformId, addTo }) => {
    const sum = new Evidence()
    const stored = store.evidence.day(organizationId, day, platformId)
    if (stored !== undefined) sum.addDay(stored)
    addTo(sum)
    return { day, platformId, record: sum.toDay() }
  })

  // A clock that is set back while the scan runs must not make it end before it began.
  const nowMs = Math.max(clock.nowMs(), running.startedAtMs)
  const firstDay = firstDayOfWindow(organization, nowMs)
  const newDetections: { platformId: string; detection: Detection }[] = []
  const approved = new Set(organization.approvedPlatformIds)
  const findings = [...evidenceInWindow(store, organizationId, matcher, firstDay, evidence)].map(
    ([platform, found]): Finding => {
      let detection = store.evidence.detection(organizationId, platform.id)
      if (detection === undefined) {
        detection = { id: newUuid(), createdAtMs: nowMs }
        newDetections.push({ platformId: platform.id, detection })
      }
      return {
        platform,
        evidence: found,
        confidence: confidence({
          domainStrength: found.domainStrength,
          clients: found.clients.estimate,
          matches: found.matches,
          days: found.days,
        }),
        approved: approved.has(platform.id),
        detection,
      }
    },
  )
  const completed: Scan = {
    ...running,
    status: 'completed',
    completedAtMs: nowMs,
    eventsFolded: fold.folded,
    eventsUnmatched: fold.unmatched,
    eventsDamaged: fold.damaged + unmatched.damaged,
    eventsTooOld: fold.tooOld,
    waiting: unmatched.waiting,
    summary: {
      platformsDiscovered: findings.length,
      shadowAiCount: findings.filter((finding) => !finding.approved).length,
      overallRiskScore: overallRiskScore(
        findings.map((finding) => ({
          risk: finding.platform.risk.score,
          confidence: finding.confidence,
          approved: finding.approved,
        })),
      ),
    },
  }
  const coverage = coverageJson(store.coverage.sumSince(organizationId, firstDay))
  const isScheduled = trigger === 'schedule'
  return {
    completed,
    trigger,
    stateBefore,
    state: {
      ...stateBefore,
      generation: stateBefore.generation + 1,
      scheduledAtMs: isScheduled ? running.startedAtMs : stateBefore.scheduledAtMs,
      firstDay,
      inputs: inputsOf(organization, matcher),
      ...unmatched.state,
    },
    foldedThrough,
    evidence,
    newDetections,
    discovery: packList(
      PublishedList.discovery,
      scanJson(completed),
      inOrderOfConfidence(findings).map((finding) => platformJson(finding, coverage)),
    ),
    removeBefore: isScheduled ? horizon : 0,
    unmatched,
    left: left + unmatched.left,
  }
}

/**
 * The day before which nothing is kept: what the scheduled scan before did not count either. So a clock that was set far ahead for less than a period costs
 * nothing; and who sends events of long gone days fills no store with them.
 */
function horizonOf(organization: Organization, { scheduledAtMs }: ScanState, nowMs: number): number {
  return firstDayOfWindow(organization, Math.min(Math.max(scheduledAtMs, organization.createdAtMs), nowMs))
}

/** Sums up every buffered event, or as many as the fold's bounds allow. */
function foldBuffer(
  store: Store,
  matcher: Matcher,
  fold: EventFold,
  organizationId: string,
  firstDay: number,
): { foldedThrough: number; left: number } {
  fold.clear(matcher, firstDay)
  let next = 0
  for (const chunk of store.buffer.chunks(organizationId)) {
    next = fold.addChunk(chunk)
    if (next < chunk.end) return { foldedThrough: next - 1, left: store.buffer.next(organizationId) - next }
  }
  return { foldedThrough: Math.max(0, next - 1), left: 0 }
}

/** What is known of each platform in the window, with days that are about to be written instead of what is stored of them. */
function evidenceInWindow(
  store: Store,
  organizationId: string,
  matcher: Matcher,
  firstDay: number,
  changed: PreparedScan['evidence'],
): Map<Platform, Evidence> {
  const found = new Map<Platform, Evidence>()
  const add = (platformId: string, record: DayEvidence): void => {
    const platform = matcher.platform(platformId)
    if (platform === undefined) return
    let evidence = found.get(platform)
    if (evidence === undefined) {
      evidence = new Evidence(NAMES_IN_WINDOW_MAX)
      found.set(platform, evidence)
    }
    evidence.addDay(record)
  }
  const isChanged = new Set(changed.map(({ day, platformId }) => `${day} ${platformId}`))
  for (const { day, platformId, evidence } of store.evidence.since(organizationId, firstDay)) {
    if (!isChanged.has(`${day} ${platformId}`)) add(platformId, evidence)
  }
  // In the order in which they will be stored: names beyond a bound are those that came last, whichever way they are read.
  for (const { day, platformId, record } of changed.toSorted((a, b) => a.day - b.day)) {
    if (day >= firstDay) add(platformId, record)
  }
  return found
}
