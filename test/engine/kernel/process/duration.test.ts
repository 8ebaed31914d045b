import t from 'tap'
import { DAY_MS, HOUR_MS } from '../../../../engine/kernel/process/clock.ts'
import { duration, durationMs, futureTime, pastTime, utcTimeMs } from '../../../../engine/kernel/process/duration.ts'

const NOON = Date.parse('2026-11-20T12:00:00Z')

t.test('durations', async (t) => {
  for (const [text, ms] of [
    ['0s', 0],
    ['90s', 90_000],
    ['5m', 300_000],
    ['12h', 12 * HOUR_MS],
    ['30d', 30 * DAY_MS],
  ] as const) {
    t.equal(durationMs(text), ms, text)
  }
  for (const text of ['', '5', 'm', '-5m', '5 m', '1h30m', '1.5h', '5M', '1e3s', '9999999999s']) {
    t.equal(durationMs(text), undefined, text)
  }
  const schema = duration('1s', '1h')
  t.equal(schema.parse('60m'), HOUR_MS)
  for (const text of ['0s', '61m', 'soon']) t.throws(() => schema.parse(text), { message: /from 1s to 1h/ }, text)
})

t.test('times in UTC: a day, or to the second', async (t) => {
  t.equal(utcTimeMs('2026-11-20'), NOON - 12 * HOUR_MS)
  t.equal(utcTimeMs('2026-11-20T12:00:00Z'), NOON)
  t.equal(utcTimeMs('2024-02-29'), Date.UTC(2024, 1, 29))
  for (const text of ['2026-02-29', '2026-02-30', '2026-13-01', '2026-11-20T24:00:01Z', '2026-11-20 12:00', '20261120'])
    t.equal(utcTimeMs(text), undefined, text)
})

t.test('a time to come, and a time in the past', async (t) => {
  const future = futureTime(() => NOON)
  t.equal(future.parse('90d'), NOON + 90 * DAY_MS)
  t.equal(future.parse('2026-11-21'), NOON + 12 * HOUR_MS)
  for (const text of ['0s', '2026-11-20', '2026-11-20T12:00:00Z', '4000d', '2999-01-01', '2027-02-30', 'never'])
    t.throws(() => future.parse(text), { message: /"expected a / }, text)
  const past = pastTime(() => NOON)
  t.equal(past.parse('2026-11-20T12:00:00Z'), NOON)
  t.equal(past.parse('2025-03-31'), Date.UTC(2025, 2, 31))
  for (const text of ['2026-11-20T12:00:01Z', '1969-12-31', '1970-01-01', '90d'])
    t.throws(() => past.parse(text), { message: /"expected a / }, text)
})
