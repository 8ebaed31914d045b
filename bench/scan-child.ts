import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DAY_MS, systemClock } from '../engine/kernel/process/clock.ts'
import { SCANS_PER_TRANSACTION_MAX } from '../engine/limits.ts'
import { ScanRunner } from '../engine/scan/scan-runner.ts'
import { Store } from '../engine/store/store.ts'
import { NameMatcher } from '../registry/match.ts'
import { memoryMb, same } from './harness.ts'
import type { ScanSums } from './peers/scan-sql.ts'
import { ScanEvents } from './workload/scan-events.ts'

/** What the measured process of bench/scan.ts sends. */
export interface ScanMeasured {
  /** Of each scan. */
  readonly ms: readonly number[]
  /** Published by the last scans. */
  readonly platforms: number
  readonly anonymousMb: number
  readonly sums: ScanSums
}

const [what = '', ...words] = process.argv.slice(2)
const [first = 1, each = 1, rounds = 1] = words.map(Number)
const directory = mkdtempSync(join(tmpdir(), 'posture-bench-'))
const store = new Store(directory)
const work = new ScanEvents(Date.now())
const matcher = new NameMatcher(work.catalog)
const runner = new ScanRunner(store, { matcherOf: () => matcher }, systemClock)
const ms: number[] = []
let platforms = 0
let anonymousMb = 0

try {
  if (what === 'scan') scanBuffers(first, each, rounds)
  else publish(first)
  process.send?.({ ms, platforms, anonymousMb, sums: sumsOf() } satisfies ScanMeasured)
} finally {
  await store.close()
  rmSync(directory, { recursive: true })
  process.disconnect()
}

function makeOrganizations(count: number): string[] {
  return store.environment.write(() =>
    Array.from({ length: count }, (_, index) => {
      return store.organizations.create({ name: `O${index}`, domain: 'o.example', plan: 'enterprise' }, Date.now()).id
    }),
  )
}

/** Scans groups of organizations, as the schedule does. Returns the number of added events. */
function scan(ids: readonly string[]): number {
  let events = 0
  platforms = 0
  for (let from = 0; from < ids.length; from += SCANS_PER_TRANSACTION_MAX) {
    const group = ids.slice(from, from + SCANS_PER_TRANSACTION_MAX)
    for (const { scan } of runner.run(group.map((organizationId) => ({ organizationId, trigger: 'buffer' })))) {
      if (scan.status !== 'completed') throw new Error(scan.failure)
      platforms += scan.summary.platformsDiscovered
      events += scan.eventsAdded
    }
  }
  return events
}

function scanBuffers(organizations: number, each: number, rounds: number): void {
  const ids = makeOrganizations(organizations)
  for (let round = 0; round < rounds; round++) {
    work.fill(store, ids, round * each, (round + 1) * each)
    const start = performance.now()
    // The schedule checks organizations in the order of their keys.
    const events = scan(ids.toSorted())
    ms.push(performance.now() - start)
    same('ours', events, organizations * each)
    anonymousMb = Math.max(anonymousMb, memoryMb('self', 'RssAnon'))
  }
}

/** Every platform of the registry, seen each day; then scans that add one event. */
function publish(days: number): void {
  const [id = ''] = makeOrganizations(1)
  const nowMs = Date.now()
  for (let day = 0; day < days; day++) {
    const timeMs = nowMs - day * DAY_MS
    const events = work.catalog.platforms.flatMap((platform, index) => {
      const name = platform.domains.map(({ domain }) => domain).find((domain) => matcher.match(domain) !== undefined)
      if (name === undefined) return []
      return Array.from({ length: 20 }, (_, client) => {
        const event = work.event(day, day * 100_000 + index * 20 + client)
        return { ...event, name, client: `10.0.${day}.${client}`, firstSeenMs: timeMs, lastSeenMs: timeMs }
      })
    })
    for (let from = 0; from < events.length; from += 5000) {
      store.environment.write(() => store.buffer.append(id, events.slice(from, from + 5000)))
    }
    scan([id])
  }
  for (let time = 0; time < 7; time++) {
    store.environment.write(() => store.buffer.append(id, [work.event(0, 1)]))
    const start = performance.now()
    scan([id])
    ms.push(performance.now() - start)
  }
}

function sumsOf(): ScanSums {
  let matches = 0
  let days = 0
  let names = 0
  for (const { id } of store.organizations.all()) {
    for (const { evidence } of store.evidence.since(id, 0)) {
      matches += evidence.matches
      days++
      names += Object.keys(evidence.byName).length
      if (evidence.otherNames > 0) throw new Error('more names than are kept')
    }
  }
  return { matches, days, names }
}
