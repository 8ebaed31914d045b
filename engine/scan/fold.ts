import type { Platform } from '../../registry/platform.ts'
import type { NameMatcher } from '../ingest/match.ts'
import { type Clock, dayOf } from '../process/clock.ts'
import { Fault } from '../process/error-codes.ts'
import { faultPoint } from '../process/fault-point.ts'
import { newUuid } from '../store/keys.ts'
import type { Organization } from '../store/organizations.ts'
import { PublishedList } from '../store/published.ts'
import type { Scan, ScanTrigger } from '../store/scans.ts'
import type { Store } from '../store/store.ts'
import { confidence } from './confidence.ts'
import { Evidence } from './evidence.ts'
import { type Finding, inOrderOfConfidence, platformJson, scanJson } from './publish.ts'
import { overallRiskScore } from './risk.ts'

/** Events read from the buffer at a time; bounds memory, not the scan. */
const EVENTS_PER_READ = 1000
const NOTHING_FOUND = { platformsDiscovered: 0, shadowAiCount: 0, overallRiskScore: 0 } as const

/**
 * Runs one scan of an organization: folds its buffered events into its evidence, and publishes what the evidence of the
 * window says. All of that, and emptying the buffer, is one transaction: a kill at any instant leaves the buffer as it
 * was or the scan complete.
 *
 * @returns the completed scan.
 * @throws what made it fail, after the scan was recorded as failed with the reason; the events then wait for the next.
 */
export function runScan(
  store: Store,
  matcher: NameMatcher,
  organizationId: string,
  trigger: ScanTrigger,
  clock: Clock,
): Scan {
  const scan = recordStart(store, organizationId, trigger, clock)
  faultPoint('scan:started')
  try {
    // What it frees is more than it takes, so it may use what is held free for that.
    return store.environment.shrink(() => {
      const organization = existing(store, organizationId)
      const eventsFolded = foldBuffer(store, matcher, organizationId)
      faultPoint('scan:folded')
      const completed = publish(store, matcher, organization, { ...scan, eventsFolded }, clock)
      faultPoint('scan:published')
      return completed
    })
  } catch (error) {
    recordFailure(store, scan, error as Error, clock)
    throw error
  }
}

/** The oldest day (UTC) whose evidence still counts. */
export function firstDayOfWindow(organization: Organization, nowMs: number): number {
  return Math.max(0, dayOf(nowMs) - organization.evidenceWindowDays + 1)
}

function recordStart(store: Store, organizationId: string, trigger: ScanTrigger, clock: Clock): Scan {
  return store.environment.shrink(() => {
    failInterrupted(store, organizationId, clock)
    const scan: Scan = {
      id: newUuid(),
      organizationId,
      status: 'running',
      trigger,
      domain: existing(store, organizationId).domain,
      startedAtMs: clock.nowMs(),
      completedAtMs: 0,
      eventsFolded: 0,
      summary: NOTHING_FOUND,
      failure: '',
    }
    store.scans.put(scan)
    return scan
  })
}

/** A scan that is still `running` when the next one starts was killed; its transaction left no trace. */
function failInterrupted(store: Store, organizationId: string, clock: Clock): void {
  const interrupted = store.scans.last(organizationId, ({ status }) => status === 'running')
  if (interrupted === undefined) return
  store.scans.put({ ...interrupted, status: 'failed', completedAtMs: clock.nowMs(), failure: 'interrupted' })
}

function recordFailure(store: Store, scan: Scan, error: Error, clock: Clock): void {
  try {
    store.environment.shrink(() =>
      store.scans.put({ ...scan, status: 'failed', completedAtMs: clock.nowMs(), failure: error.message }),
    )
  } catch {
    // The same disk that failed the scan; the caller throws the first error, and the next scan marks this one.
  }
}

function existing(store: Store, organizationId: string): Organization {
  const organization = store.organizations.get(organizationId)
  if (organization === undefined) throw new Fault('NOT_FOUND', `no organization ${organizationId}`)
  return organization
}

/** Moves every buffered event into the evidence of its day and platform; answers how many there were. */
function foldBuffer(store: Store, matcher: NameMatcher, organizationId: string): number {
  const touched = new Map<string, { day: number; platformId: string; evidence: Evidence }>()
  let folded = 0
  let sequence = 0
  while (true) {
    const events = store.buffer.read(organizationId, sequence, EVENTS_PER_READ)
    const last = events.at(-1)
    if (last === undefined) break
    for (const { event } of events) {
      const rule = matcher.match(event.name)
      // The registry matched the name when the event was admitted; a later one may no longer list it.
      if (rule === undefined) continue
      const day = dayOf(event.lastSeenMs)
      const key = `${day} ${rule.platform.id}`
      let entry = touched.get(key)
      if (entry === undefined) {
        entry = { day, platformId: rule.platform.id, evidence: new Evidence() }
        const stored = store.evidence.day(organizationId, day, rule.platform.id)
        if (stored !== undefined) entry.evidence.addDay(stored)
        touched.set(key, entry)
      }
      entry.evidence.addEvent(event, rule)
    }
    folded += events.length
    sequence = last.sequence + 1
  }
  for (const { day, platformId, evidence } of touched.values()) {
    store.evidence.putDay(organizationId, day, platformId, evidence.toDay())
  }
  if (folded > 0) store.buffer.removeThrough(organizationId, sequence - 1)
  return folded
}

function publish(store: Store, matcher: NameMatcher, organization: Organization, scan: Scan, clock: Clock): Scan {
  const nowMs = clock.nowMs()
  const firstDay = firstDayOfWindow(organization, nowMs)
  store.evidence.removeBefore(organization.id, firstDay)
  const findings = inOrderOfConfidence(findingsSince(store, matcher, organization, firstDay, nowMs))
  const completed: Scan = {
    ...scan,
    status: 'completed',
    completedAtMs: nowMs,
    summary: {
      platformsDiscovered: findings.length,
      shadowAiCount: findings.filter(({ approved }) => !approved).length,
      overallRiskScore: overallRiskScore(
        findings.map(({ platform, confidence, approved }) => ({ risk: platform.risk.score, confidence, approved })),
      ),
    },
  }
  store.scans.put(completed)
  store.published.replace(organization.id, PublishedList.discovery, scanJson(completed), findings.map(platformJson))
  return completed
}

function findingsSince(
  store: Store,
  matcher: NameMatcher,
  organization: Organization,
  firstDay: number,
  nowMs: number,
): Finding[] {
  const approved = new Set(organization.approvedPlatformIds)
  const evidenceOf = new Map<Platform, Evidence>()
  for (const { platformId, evidence: day } of store.evidence.since(organization.id, firstDay)) {
    const platform = matcher.platform(platformId)
    if (platform === undefined) continue
    let evidence = evidenceOf.get(platform)
    if (evidence === undefined) {
      evidence = new Evidence()
      evidenceOf.set(platform, evidence)
    }
    evidence.addDay(day)
  }
  return [...evidenceOf].map(([platform, evidence]) => ({
    platform,
    evidence,
    confidence: confidence({
      domainStrength: evidence.domainStrength,
      clients: evidence.clients.estimate,
      matches: evidence.matches,
      days: evidence.days,
    }),
    approved: approved.has(platform.id),
    detection: store.evidence.detection(organization.id, platform.id, nowMs),
  }))
}
