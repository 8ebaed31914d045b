import { HOUR_MS, MINUTE_MS } from '../kernel/process/clock.ts'

/**
 * Arrivals from a source within one time span: the time of the last message in milliseconds since
 * 1970, the number of messages, and their counts in the order of OUTCOMES. Each source stores at
 * most 18 spans, because its record is rewritten every second while it sends.
 */
export type RecentSpan = readonly [lastMs: number, received: number, ...counts: readonly number[]]

/** Spans are kept this long. */
const RECENT_MS = HOUR_MS
/**
 * Spans of the last ten minutes are one minute long. Older spans are combined into spans of
 * COARSE_MS.
 */
const FINE_FOR_MS = 10 * MINUTE_MS
const FINE_MS = MINUTE_MS
const COARSE_MS = 10 * MINUTE_MS

/**
 * Merges both lists in ascending order. Drops spans that are RECENT_MS older than the newest one.
 */
export function combineRecent(some: readonly RecentSpan[], others: readonly RecentSpan[]): readonly RecentSpan[] {
  const all = [...some, ...others].sort(([a], [b]) => a - b)
  const newestMs = all.at(-1)?.[0] ?? 0
  const combined: RecentSpan[] = []
  for (const span of all) {
    const ageMs = newestMs - span[0]
    if (ageMs >= RECENT_MS) continue
    const stepMs = ageMs < FINE_FOR_MS ? FINE_MS : COARSE_MS
    const last = combined.at(-1)
    if (last !== undefined && Math.floor(last[0] / stepMs) === Math.floor(span[0] / stepMs)) {
      combined[combined.length - 1] = sumOf(last, span)
    } else combined.push(span)
  }
  return combined
}

/** Sums the arrivals since `sinceMs`. A span that began earlier counts in full. */
export function recentSince(spans: readonly RecentSpan[], sinceMs: number): RecentSpan {
  return spans.filter(([lastMs]) => lastMs >= sinceMs).reduce(sumOf, [0, 0])
}

function sumOf([aMs, ...a]: RecentSpan, [bMs, ...b]: RecentSpan): RecentSpan {
  const [received = 0, ...counts] = Array.from(
    { length: Math.max(a.length, b.length) },
    (_, at) => (a[at] ?? 0) + (b[at] ?? 0),
  )
  return [Math.max(aMs, bMs), received, ...counts]
}
