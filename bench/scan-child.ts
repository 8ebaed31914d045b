import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { METHODS } from '../engine/event/event.ts'
import { SCANS_PER_TRANSACTION_MAX } from '../engine/limits.ts'
import { DAY_MS, systemClock } from '../engine/process/clock.ts'
import { EventAggregator } from '../engine/scan/event-aggregator.ts'
import { ScanRunner } from '../engine/scan/scan-runner.ts'
import { Store } from '../engine/store/store.ts'
import { NameMatcher } from '../registry/match.ts'
import { print, shown } from './compare.ts'
import { megabytes, memoryBytes } from './machine.ts'
import type { ScanSums } from './peers/scan-sql.ts'
import type { ScanBenchAnswer } from './scan-answer.ts'
import { ScanEvents } from './workload/scan-events.ts'

/** The measured process of bench/scan.ts, with our store and no peer. Sends one message. */
const [what = '', ...words] = process.argv.slice(2)
const numbers = words.map(Number)
const directory = mkdtempSync(join(tmpdir(), 'posture-bench-'))
const store = new Store(directory)
const work = new ScanEvents(Date.now(), !words.includes('no-clients'))
const matcher = new NameMatcher(work.catalog)
const runner = new ScanRunner(store, { matcherOf: () => matcher }, systemClock)
const answer = { rates: [] as number[], aggregateRates: [] as number[], platforms: 0, days: 0, milliseconds: 0 }
let anonymousBytes = 0

try {
  if (what === 'scan') scanBuffers(numbers[0] ?? 1, numbers[1] ?? 1, numbers[2] ?? 1)
  else if (what === 'publish') publish(numbers[0] ?? 1)
  else pairs(numbers[0] ?? 1)
  const sums = what === 'scan' ? sumsOf() : { matches: 0, days: 0, names: 0 }
  process.send?.({ ...answer, sums, anonymousMegabytes: megabytes(anonymousBytes) } satisfies ScanBenchAnswer)
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
  answer.platforms = 0
  for (let from = 0; from < ids.length; from += SCANS_PER_TRANSACTION_MAX) {
    const group = ids.slice(from, from + SCANS_PER_TRANSACTION_MAX)
    for (const { scan } of runner.run(group.map((organizationId) => ({ organizationId, trigger: 'buffer' })))) {
      if (scan.status !== 'completed') throw new Error(scan.failure)
      answer.platforms += scan.summary.platformsDiscovered
      events += scan.eventsAdded
    }
  }
  return events
}

function scanBuffers(organizations: number, each: number, rounds: number): void {
  const ids = makeOrganizations(organizations)
  const alone = new EventAggregator()
  for (let round = 0; round < rounds; round++) {
    work.fill(store, ids, round * each, (round + 1) * each)
    const aggregateStart = performance.now()
    for (const id of ids) {
      alone.clear(matcher)
      for (const chunk of store.buffer.chunks(id)) alone.addChunk(chunk)
    }
    const start = performance.now()
    // The schedule checks organizations in the order of their keys.
    const events = scan(ids.toSorted())
    const end = performance.now()
    if (events !== organizations * each) throw new Error(`${events} events were added`)
    answer.aggregateRates.push(events / ((start - aggregateStart) / 1000))
    answer.rates.push(events / ((end - start) / 1000))
    anonymousBytes = Math.max(anonymousBytes, memoryBytes('self', 'RssAnon'))
  }
}

/** Every platform of the registry, seen each day. */
function publish(days: number): void {
  const [id = ''] = makeOrganizations(1)
  const nowMs = Date.now()
  const seen = new Set<string>()
  for (let day = 0; day < days; day++) {
    let sequence = day * 10_000
    const events = work.catalog.platforms.flatMap((platform) => {
      const name = platform.domains.map(({ domain }) => domain).find((domain) => matcher.match(domain) !== undefined)
      if (name === undefined) return []
      seen.add(platform.id)
      return Array.from({ length: 20 }, (_, client) => {
        const event = work.event(day, ++sequence)
        const timeMs = nowMs - day * DAY_MS
        return { ...event, name, client: `10.0.${day}.${client}`, firstSeenMs: timeMs, lastSeenMs: timeMs }
      })
    })
    for (let from = 0; from < events.length; from += 5000) {
      store.environment.write(() => store.buffer.append(id, events.slice(from, from + 5000)))
    }
    scan([id])
  }
  answer.days = days
  const times = Array.from({ length: 7 }, () => {
    store.environment.write(() => store.buffer.append(id, [work.event(0, 1)]))
    const start = performance.now()
    scan([id])
    return performance.now() - start
  })
  answer.milliseconds = times.sort((a, b) => a - b)[3] ?? 0
}

/**
 * Evidence of `count` pairs of a client and a name: 10,000 clients, each with the names of all
 * platforms.
 */
function pairs(count: number): void {
  const [id = ''] = makeOrganizations(1)
  const names = work.catalog.rules.filter(({ match }) => match !== 'pattern').map(({ domain }) => domain)
  const nowMs = Date.now()
  const step = Math.min(count, 500_000)
  let milliseconds = 0
  for (let done = 0; done < count; done += step) {
    for (let from = done; from < done + step; from += 5000) {
      const events = Array.from({ length: 5000 }, (_, at) => {
        const pair = from + at
        const client = Math.floor(pair / 1000) % 10_000
        return {
          ...work.event(0, pair),
          name: names[pair % 1000] ?? '',
          client: `10.1.${client >> 8}.${client & 255}`,
          firstSeenMs: nowMs,
          lastSeenMs: nowMs,
          method: METHODS[0],
        }
      })
      store.environment.write(() => store.buffer.append(id, events))
    }
    const start = performance.now()
    scan([id])
    milliseconds += performance.now() - start
    anonymousBytes = Math.max(anonymousBytes, memoryBytes('self', 'RssAnon'))
  }
  const evidenceBytes = store.environment.tableBytes('evidence')
  const clients = store.clientDays.totals(id)
  print(
    `evidence of ${shown(count)} pairs of client and name: ${shown(count / (milliseconds / 1000))} events/s, anonymous memory ${megabytes(anonymousBytes)} MB, evidence ${(evidenceBytes / 1e6).toFixed(1)} MB and clients ${(clients.bytes / 1e6).toFixed(1)} MB in the store (${megabytes(statSync(join(directory, 'store/data.mdb')).size)} MB with the buffer's free pages)`,
  )
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
