import { type Arrival, arrivalsSince, VERIFY_MS, VERIFY_SINCE_MS } from '../../engine/admin/verify.ts'
import { type Instead, insteadOf } from '../../engine/admin/verify-instead.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../engine/kernel/process/clock.ts'
import { listedDiscovery } from '../../engine/scan/listed-discovery.ts'
import type { MonitoringToken } from '../../engine/store/monitoring-tokens.ts'
import { type SecretStatus, statusOf } from '../../engine/store/secrets.ts'
import type { Store } from '../../engine/store/store.ts'
import type { Visit } from '../http/visit.ts'

/** Senders on the page, most recently active first. */
const SENDERS_SHOWN = 20
/** The newest buffered events that are read for their platforms. */
const EVENTS_READ_MAX = 500
const PLATFORMS_SHOWN = 12
/** The service remembers arrivals for an hour, so an older verification cannot be shown. */
const STARTED_MAX_MS = HOUR_MS - VERIFY_SINCE_MS - MINUTE_MS
/** Without an event after this time, the page says what arrived so far. */
const EXPLAIN_AFTER_MS = 10 * SECOND_MS
/** The explanation reads many records, so it is read at most this often. */
const EXPLAIN_EVERY_MS = 2 * SECOND_MS

export interface VerificationView {
  readonly tokenId: string
  readonly label: string
  readonly visible: string
  readonly status: SecretStatus
  /**
   * `verified`: events arrived. `ended`: none arrived in time. `inactive`: the token is revoked or
   * expired.
   */
  readonly state: 'waiting' | 'verified' | 'ended' | 'inactive'
  readonly startedMs: number
  /** At most VERIFY_MS. */
  readonly elapsedMs: number
  readonly messages: number
  readonly events: number
  readonly firstSeenMs: number
  readonly lastSeenMs: number
  readonly senders: readonly Arrival[]
  readonly moreSenders: number
  /** Names of AI platforms in the events that arrived. */
  readonly platforms: readonly string[]
  readonly morePlatforms: number
  readonly instead: readonly Instead[]
}

/** The start of a verification in a query; undefined if a new one must begin. */
export function startOf(query: URLSearchParams, nowMs: number): number | undefined {
  const text = query.get('started') ?? ''
  const startedMs = /^\d{1,15}$/.test(text) ? Number(text) : 0
  return startedMs <= nowMs && startedMs > nowMs - STARTED_MAX_MS ? startedMs : undefined
}

/** All senders with a token, most recently active first. */
export function arrivalsOf({ site, organization }: Visit, { id }: MonitoringToken, startedMs: number): Arrival[] {
  return arrivalsSince(site.store, organization.id, new Set([id]), startedMs - VERIFY_SINCE_MS)
}

/**
 * What has arrived with a token since shortly before `startedMs`. The query has the start and the
 * store has the counts, so nothing is kept between two requests of a verification.
 */
export function verificationView(visit: Visit, token: MonitoringToken, startedMs: number): VerificationView {
  const { nowMs } = visit
  const sinceMs = startedMs - VERIFY_SINCE_MS
  const status = statusOf(token, nowMs)
  const tokenIds = new Set([token.id])
  const senders = arrivalsOf(visit, token, startedMs)
  const sum = (of: (arrival: Arrival) => number): number => senders.reduce((total, each) => total + of(each), 0)
  const events = sum((each) => each.events)
  const elapsedMs = Math.min(VERIFY_MS, nowMs - startedMs)
  const hasEnded = elapsedMs >= VERIFY_MS
  const isActive = status === 'active'
  const state = !isActive ? 'inactive' : events > 0 ? 'verified' : hasEnded ? 'ended' : 'waiting'
  const platforms = state === 'verified' ? platformsSince(visit, sinceMs, events) : []
  const explains = state === 'ended' || (state === 'waiting' && elapsedMs >= EXPLAIN_AFTER_MS)
  return {
    tokenId: token.id,
    label: token.label,
    visible: token.visible,
    status,
    state,
    startedMs,
    elapsedMs,
    messages: sum((each) => each.messages),
    events,
    firstSeenMs: senders.length === 0 ? 0 : Math.min(...senders.map((each) => each.firstSeenMs)),
    lastSeenMs: senders[0]?.timeMs ?? 0,
    senders: senders.slice(0, SENDERS_SHOWN),
    moreSenders: Math.max(0, senders.length - SENDERS_SHOWN),
    platforms: platforms.slice(0, PLATFORMS_SHOWN),
    morePlatforms: Math.max(0, platforms.length - PLATFORMS_SHOWN),
    instead: explains ? explanation(visit, tokenIds, sinceMs) : [],
  }
}

/**
 * Platforms in the organization's newest events: those that wait for a scan, and those that a scan
 * has just found. Events of logs can be old, so the order of arrival counts, not their time.
 */
function platformsSince({ site, organization }: Visit, sinceMs: number, events: number): readonly string[] {
  const { buffer } = site.store
  const matcher = site.registry.matcherOf(organization.id)
  const count = Math.min(EVENTS_READ_MAX, events)
  const waiting = buffer
    .read(organization.id, Math.max(0, buffer.next(organization.id) - count), count)
    .flatMap(({ event }) => matcher.match(event.name)?.platform.name ?? [])
  const found = listedDiscovery(site.store, organization)
    .platforms.filter(({ createdMs, lastSeenMs }) => createdMs >= sinceMs || lastSeenMs >= sinceMs)
    .map(({ name }) => name)
  return [...new Set([...waiting, ...found])].sort()
}

interface Explained {
  readonly key: string
  readonly readMs: number
  readonly instead: readonly Instead[]
}
/** The last explanation of each store: one entry, whatever the number of verifications. */
const EXPLAINED = new WeakMap<Store, Explained>()

function explanation(
  { site, organization, nowMs }: Visit,
  tokenIds: ReadonlySet<string>,
  sinceMs: number,
): readonly Instead[] {
  const key = [organization.id, ...tokenIds, sinceMs].join(' ')
  const last = EXPLAINED.get(site.store)
  if (last?.key === key && nowMs - last.readMs < EXPLAIN_EVERY_MS) return last.instead
  const instead = insteadOf(site.store, organization, tokenIds, sinceMs, nowMs)
  EXPLAINED.set(site.store, { key, readMs: nowMs, instead })
  return instead
}
