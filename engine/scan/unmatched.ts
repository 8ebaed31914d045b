import type { Matcher } from '../../registry/match.ts'
import type { Slices } from '../kernel/lmdb/queue-chunk.ts'
import { UNMATCHED_EVENTS_MAX } from '../limits.ts'
import type { ScanState } from '../store/scan-states.ts'
import type { WaitingEvents } from '../store/scans.ts'
import type { Store } from '../store/store.ts'
import type { EventAggregator } from './event-aggregator.ts'

/** The changes that a scan makes to the waiting events: events that no rule has matched yet. */
export interface UnmatchedChange {
  /** New waiting events, in addition to the stored ones. */
  readonly added: Slices
  /** Replaces the stored waiting events. undefined: they stay. */
  readonly kept: Slices | undefined
  readonly waiting: WaitingEvents
  /** Waiting events that were damaged on disk. */
  readonly damaged: number
  /** Number of waiting events that the next scan has to match again. */
  readonly left: number
  readonly state: Pick<ScanState, 'unmatchedRegistry' | 'unmatchedDay'>
}

/**
 * Whether to match the waiting events again, because the registry changed or the evidence window
 * moved.
 */
function isRematchDue(
  store: Store,
  organizationId: string,
  matcher: Matcher,
  state: ScanState,
  horizon: number,
): boolean {
  if (store.unmatched.count(organizationId) === 0) return false
  return state.unmatchedRegistry !== matcher.fingerprint || state.unmatchedDay !== horizon
}

/**
 * Call after the buffered events were added to the evidence. Collects the events without a rule,
 * and matches the waiting events again if that is due. `isFull` means that the scan reached a
 * limit, so the next scan matches the waiting events.
 */
export function matchUnmatched(
  store: Store,
  matcher: Matcher,
  aggregator: EventAggregator,
  organizationId: string,
  state: ScanState,
  { horizon, isFull }: { readonly horizon: number; readonly isFull: boolean },
): UnmatchedChange {
  const { events: added, dropped } = aggregator.unmatchedCopies.take()
  const { unmatchedRegistry = '', unmatchedDay = 0 } = state
  const count = store.unmatched.count(organizationId)
  const unchanged = {
    added,
    kept: undefined,
    waiting: waitingAfter(count + added.count, { dropped, rematched: 0, expired: 0 }),
    damaged: 0,
    left: 0,
  }
  const current = { unmatchedRegistry: matcher.fingerprint, unmatchedDay: horizon }
  if (count === 0) return { ...unchanged, state: current }
  if (isFull || !isRematchDue(store, organizationId, matcher, state, horizon)) {
    return { ...unchanged, state: { unmatchedRegistry, unmatchedDay } }
  }
  const before = {
    added: aggregator.added,
    unmatched: aggregator.unmatched,
    tooOld: aggregator.tooOld,
    damaged: aggregator.damaged,
  }
  let left = 0
  for (const chunk of store.unmatched.chunks(organizationId)) {
    const next = left > 0 ? chunk.sequence : aggregator.addChunk(chunk)
    left += chunk.end - next
    if (next < chunk.end) aggregator.copyUnmatched(chunk, next)
  }
  const kept = aggregator.unmatchedCopies.take().events
  const unmatched = aggregator.unmatched - before.unmatched
  const expired = aggregator.tooOld - before.tooOld
  const damaged = aggregator.damaged - before.damaged
  const rematched = aggregator.added - before.added - unmatched - expired
  // Only the buffered events count in the counters of the aggregator.
  Object.assign(aggregator, before)
  return {
    added,
    kept: rematched + expired + damaged > 0 ? kept : undefined,
    waiting: waitingAfter(kept.count + added.count, { dropped, rematched, expired }),
    damaged,
    left,
    state: left > 0 ? { unmatchedRegistry: '', unmatchedDay } : current,
  }
}

/** The record of `count` waiting events after the limit has removed the oldest. */
function waitingAfter(count: number, { dropped, ...changed }: Omit<WaitingEvents, 'count'>): WaitingEvents {
  const excess = Math.max(0, count - UNMATCHED_EVENTS_MAX)
  return { ...changed, count: count - excess, dropped: dropped + excess }
}

/** Requires the transaction of the scan. */
export function writeUnmatched(store: Store, organizationId: string, { added, kept }: UnmatchedChange): void {
  if (kept !== undefined) store.unmatched.clear(organizationId)
  for (const events of kept === undefined ? [added] : [kept, added]) {
    if (events.count > 0) store.unmatched.append(organizationId, events, UNMATCHED_EVENTS_MAX)
  }
}
