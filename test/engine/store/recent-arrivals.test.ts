import t from 'tap'
import { HOUR_MS, MINUTE_MS } from '../../../engine/kernel/process/clock.ts'
import { combineRecent, type RecentSpan, recentSince } from '../../../engine/store/recent-arrivals.ts'
import * as fc from '../../support/property.ts'

const NOW = Date.parse('2026-11-20T12:00:00Z')
const SPANS_MAX = 18

t.test('arrivals are counted to the minute, then to ten minutes, for an hour', async (t) => {
  const minutesAgo = [90, 59, 55, 31, 30, 12, 9, 3, 0]
  const spans = minutesAgo.reduce<readonly RecentSpan[]>(
    (recent, minutes) => combineRecent(recent, [[NOW - minutes * MINUTE_MS, 2, 1, 1]]),
    [],
  )
  for (const [sinceMinutes, messages] of [
    [0, 2],
    [2, 2],
    [3, 4],
    [5, 4],
    [10, 6],
    [20, 8],
    [60, 16],
  ] as const) {
    const [, received, stored, duplicate] = recentSince(spans, NOW - sinceMinutes * MINUTE_MS)
    t.same([received, stored, duplicate], [messages, messages / 2, messages / 2], `since ${sinceMinutes} minutes`)
  }
  t.same(recentSince([], NOW), [0, 0])
})

t.test('whenever something arrives: nothing of the last hour is lost, and the spans are bounded', async () => {
  const arrival = fc.record({ afterMs: fc.nat(5 * MINUTE_MS), received: fc.integer({ min: 1, max: 1e6 }) })
  fc.assert(
    fc.property(fc.array(arrival, { maxLength: 200 }), (arrivals) => {
      let nowMs = NOW
      let spans: readonly RecentSpan[] = []
      const all: { readonly atMs: number; readonly received: number }[] = []
      for (const { afterMs, received } of arrivals) {
        nowMs += afterMs
        all.push({ atMs: nowMs, received })
        spans = combineRecent(spans, [[nowMs, received, received]])
        if (spans.length > SPANS_MAX) return false
      }
      // Since a moment of the last hour: at least what came since then, at most what came in the
      // ten minutes before also.
      return [0, 1, 5, 9, 20, 45].every((minutes) => {
        const sinceMs = nowMs - minutes * MINUTE_MS
        const from = (ms: number): number =>
          all.reduce((sum, { atMs, received }) => sum + (atMs >= ms && nowMs - atMs < HOUR_MS ? received : 0), 0)
        const [, received] = recentSince(spans, sinceMs)
        return received >= from(sinceMs) && received <= from(sinceMs - (minutes < 10 ? 1 : 10) * MINUTE_MS)
      })
    }),
  )
})
