import { MINUTE_MS } from '../kernel/process/clock.ts'
import { POLL_EVENTS_EVERY_MS } from '../limits.ts'
import { OUTCOMES, Outcome, type OutcomeName } from '../store/outcomes.ts'
import { recentSince } from '../store/recent-arrivals.ts'
import type { StoredSource } from '../store/sources.ts'
import type { Store } from '../store/store.ts'

/** Milliseconds to wait for the first event, from the specification. */
export const VERIFY_MS = 5 * MINUTE_MS
/** A sender is usually started before it is verified. */
export const VERIFY_SINCE_MS = 5 * MINUTE_MS
/** Milliseconds to keep polling after the first events, to show further events and senders. */
const KEEP_POLLING_MS = 3000

/** What arrived from one source since the previous poll, or in the window before the first one. */
export interface Arrival {
  /** The last contact. */
  readonly timeMs: number
  readonly firstSeenMs: number
  readonly tokenId: string
  readonly listener: string
  readonly address: string
  readonly host: string
  /** The most frequent format of its messages so far. */
  readonly format: string
  readonly messages: number
  /** Of these, events that were stored now or before. */
  readonly events: number
  /** Other messages by outcome. */
  readonly otherwise: Readonly<Partial<Record<OutcomeName, number>>>
  /** The last message that was not understood, redacted; '' if none. */
  readonly sample: string
}

export interface Verdict {
  readonly messages: number
  readonly events: number
}

/** When `verify` starts to count, and when it stops. */
export interface VerifyOptions {
  /**
   * Counts what arrived since then, to the minute: milliseconds since 1970. At most an hour ago.
   */
  readonly sinceMs: number
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/**
 * Waits for events of tokens. The running service stores about once a second who sent what. Events
 * that arrived between `sinceMs` and the call count also, because people start a sender before they
 * verify it.
 *
 * @param tokenIds of the organization; empty: any of its tokens.
 * @param onArrival called for everything that arrives, whether it is an event or not.
 * @returns what arrived, shortly after the first event, or when `timeoutMs` have passed, or when
 *   `signal` is aborted.
 */
export async function verify(
  store: Store,
  organizationId: string,
  tokenIds: ReadonlySet<string>,
  onArrival: (arrival: Arrival) => void,
  { sinceMs, timeoutMs, signal }: VerifyOptions,
): Promise<Verdict> {
  const read = (): Map<string, StoredSource> =>
    // Also inactive ones: what they had sent before is not counted.
    new Map(activeSources(store, organizationId, tokenIds, 0).map((source) => [keyOf(source), source]))
  let now = read()
  let before: ReadonlyMap<string, Before> = new Map(
    Array.from(now, ([key, source]) => [key, countsBefore(source, sinceMs)]),
  )
  let endMs = performance.now() + timeoutMs
  const verdict = { messages: 0, events: 0 }
  while (true) {
    for (const [key, source] of now) {
      const arrival = arrivalOf(source, before.get(key))
      if (arrival.messages === 0 && arrival.events === 0) continue
      if (arrival.events > 0 && verdict.events === 0) endMs = Math.min(endMs, performance.now() + KEEP_POLLING_MS)
      verdict.messages += arrival.messages
      verdict.events += arrival.events
      onArrival(arrival)
    }
    if (signal.aborted || performance.now() >= endMs) return verdict
    await pause(Math.min(POLL_EVENTS_EVERY_MS, endMs - performance.now()), signal)
    before = now
    now = read()
  }
}

/**
 * Returns what arrived since `sinceMs`, to the minute: one entry for each source with a message or
 * another contact, such as a coverage report. Most recently active first.
 *
 * @param tokenIds of the organization; empty: any of its tokens.
 */
export function arrivalsSince(
  store: Store,
  organizationId: string,
  tokenIds: ReadonlySet<string>,
  sinceMs: number,
): Arrival[] {
  return activeSources(store, organizationId, tokenIds, sinceMs)
    .map((source) => arrivalOf(source, countsBefore(source, sinceMs)))
    .sort((a, b) => b.timeMs - a.timeMs || (keyOf(a) < keyOf(b) ? -1 : 1))
}

/** @param tokenIds empty: all */
function activeSources(
  { environment, sources }: Store,
  organizationId: string,
  tokenIds: ReadonlySet<string>,
  sinceMs: number,
): readonly StoredSource[] {
  return environment.read(() => {
    const heads =
      tokenIds.size === 0
        ? sources.heads(organizationId)
        : [...tokenIds].flatMap((id) => sources.heads(organizationId, id))
    return sources.ofHeads(heads.filter(({ lastSeenMs }) => lastSeenMs >= sinceMs))
  })
}

function keyOf({
  tokenId,
  listener,
  address,
  host,
}: Pick<Arrival, 'tokenId' | 'listener' | 'address' | 'host'>): string {
  return [tokenId, listener, address, host].join('\n')
}

/** What a source had sent by a time. */
type Before = Pick<StoredSource, 'received' | 'counts'>

function countsBefore({ received, counts, recent = [] }: StoredSource, sinceMs: number): Before {
  const [, receivedSince, ...countsSince] = recentSince(recent, sinceMs)
  return { received: received - receivedSince, counts: counts.map((count, index) => count - (countsSince[index] ?? 0)) }
}

function arrivalOf(source: StoredSource, before: Before | undefined): Arrival {
  const since = OUTCOMES.map((outcome, index) => {
    return [outcome, (source.counts[index] ?? 0) - (before?.counts[index] ?? 0)] as const
  })
  const count = (outcome: keyof typeof Outcome): number => since[Outcome[outcome]]?.[1] ?? 0
  const [format = ''] = Object.entries(source.formats).sort(([, a], [, b]) => b - a)[0] ?? []
  const notUnderstood = count('rejected') + count('unknown') + count('ambiguous') > 0
  return {
    timeMs: source.lastSeenMs,
    firstSeenMs: source.firstSeenMs,
    tokenId: source.tokenId,
    listener: source.listener,
    address: source.address,
    host: source.host,
    format,
    messages: source.received - (before?.received ?? 0),
    events: count('stored') + count('duplicate'),
    otherwise: Object.fromEntries(
      since.filter(([outcome, messages]) => messages > 0 && outcome !== 'stored' && outcome !== 'duplicate'),
    ),
    sample: notUnderstood ? source.sample : '',
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, Math.max(0, milliseconds))
    signal.addEventListener('abort', end)
  })
}
