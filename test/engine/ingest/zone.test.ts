import t from 'tap'
import { isZone, WallClock } from '../../../engine/ingest/zone.ts'
import { DAY_MS, MINUTE_MS } from '../../../engine/kernel/process/clock.ts'
import * as fc from '../../support/property.ts'

const rows: readonly (readonly [zone: string, name: string, wall: string, utc: string])[] = [
  ['UTC', 'UTC', '2026-11-20T09:15:02', '2026-11-20T09:15:02'],
  ['+05:30', 'half an hour', '2026-11-20T09:15:02', '2026-11-20T03:45:02'],
  ['-0930', 'without colon, west', '2026-11-20T20:00:00', '2026-11-21T05:30:00'],
  ['+11', 'hours only', '2026-11-20T09:00:00', '2026-11-19T22:00:00'],
  ['Asia/Kolkata', 'half an hour, by name', '2026-11-20T09:15:02', '2026-11-20T03:45:02'],
  ['Asia/Kathmandu', 'three quarters', '2026-11-20T09:15:02', '2026-11-20T03:30:02'],
  ['Europe/Berlin', 'winter', '2026-11-20T09:15:02', '2026-11-20T08:15:02'],
  ['Europe/Berlin', 'summer', '2026-07-20T09:15:02', '2026-07-20T07:15:02'],
  ['Europe/Berlin', 'the last second of winter', '2026-03-29T01:59:59', '2026-03-29T00:59:59'],
  ['Europe/Berlin', 'a nonexistent hour', '2026-03-29T02:30:00', '2026-03-29T01:30:00'],
  ['Europe/Berlin', 'the first second of summer', '2026-03-29T03:00:00', '2026-03-29T01:00:00'],
  ['Europe/Berlin', 'before the repeated hour', '2026-10-25T01:59:59', '2026-10-24T23:59:59'],
  ['Europe/Berlin', 'a repeated hour: the first', '2026-10-25T02:30:00', '2026-10-25T00:30:00'],
  ['Europe/Berlin', 'after the repeated hour', '2026-10-25T03:00:00', '2026-10-25T02:00:00'],
  ['America/New_York', 'spring, west', '2026-03-08T03:00:00', '2026-03-08T07:00:00'],
  ['America/New_York', 'autumn, west', '2026-11-01T01:30:00', '2026-11-01T05:30:00'],
  ['Australia/Lord_Howe', 'a nonexistent half hour', '2026-10-04T02:15:00', '2026-10-03T15:45:00'],
  ['Australia/Lord_Howe', 'the half hour after it', '2026-10-04T02:45:00', '2026-10-03T15:45:00'],
  ['Pacific/Apia', 'east of the date line', '2026-11-20T09:00:00', '2026-11-19T20:00:00'],
]

for (const [zone, name, wall, utc] of rows) {
  t.test(`${zone}: ${name}`, async (t) => {
    const found = new WallClock(zone).toUtc(Date.parse(`${wall}Z`))
    t.equal(new Date(found).toISOString(), `${utc}.000Z`)
  })
}

/** The wall-clock time in the zone at an instant, in milliseconds as if it were UTC. */
function wallAt(zone: string, timeMs: number): number {
  const text = new Date(timeMs).toLocaleString('sv-SE', { timeZone: zone })
  return Date.parse(`${text.replace(' ', 'T')}Z`)
}

t.test('a wall-clock time maps back to its instant, or to an earlier one with the same wall-clock time', async () => {
  const zones = [
    'Europe/Berlin',
    'America/New_York',
    'Australia/Lord_Howe',
    'Asia/Kolkata',
    'Africa/Casablanca',
  ] as const
  const clocks = new Map(zones.map((zone) => [zone, new WallClock(zone)]))
  const start = Date.parse('2024-01-01T00:00:00Z') / MINUTE_MS
  const end = Date.parse('2028-01-01T00:00:00Z') / MINUTE_MS
  fc.assert(
    fc.property(fc.constantFrom(...zones), fc.integer({ min: start, max: end }), (zone, minutes) => {
      const instant = minutes * MINUTE_MS
      const wall = wallAt(zone, instant)
      const found = clocks.get(zone)?.toUtc(wall) ?? Number.NaN
      return found <= instant && instant - found < DAY_MS && wallAt(zone, found) === wall
    }),
    { numRuns: 2000 },
  )
})

for (const [text, expected] of [
  ['UTC', true],
  ['Europe/Berlin', true],
  ['+01:00', true],
  ['-18:00', true],
  ['+18:01', false],
  ['+1', false],
  ['01:00', false],
  ['+25', false],
  ['Europe/Nowhere', false],
  ['', false],
  ['utc ', false],
] as const) {
  t.test(`${JSON.stringify(text)} is ${expected ? 'a' : 'not a'} zone`, async (t) => t.equal(isZone(text), expected))
}
