import { COVERAGE_COUNTER_NAMES, type CoverageCounters, type CoverageReport } from '../event/coverage-report.ts'
import { COVERAGE_INSTANCES_MAX, COVERAGE_INTERVAL_MS } from '../limits.ts'
import type { Environment } from '../lmdb/environment.ts'
import { dayOf } from '../process/clock.ts'
import { Family } from './family.ts'
import { u32Bytes, uuidBytes } from './keys.ts'

/** Counters by name; a name that is missing is of a later release than the record, and was not counted. */
type StoredCounters = Readonly<Partial<CoverageCounters>>

/** The last report of one instance: of each counter the most that was ever told. */
export interface StoredSensor {
  /** When it came, by our clock, and when it was made, by the sensor's. */
  readonly heardMs: number
  readonly madeMs: number
  readonly ended: boolean
  readonly counters: StoredCounters
}

/** What all sensors of an organization have counted on one day (UTC) by our clock, and how many instances were heard then. */
export interface StoredDay {
  readonly sensors: number
  readonly counters: StoredCounters
}

/** What became of a report. `known`: its content was stored before. `tooSoon`: it came too soon after the previous one. */
export type CoverageAddition = 'added' | 'known' | 'tooSoon'

/** What the sensors of an organization saw, and what was hidden from them. */
export interface Coverage {
  /** Instances that were heard. */
  readonly sensors: number
  /** Days with a report. */
  readonly days: number
  readonly counters: CoverageCounters
}

const DAY_OFFSET = 16
/** Records that one transaction takes away, so that none is long: the rest goes with the next scan. */
const REMOVED_AT_ONCE_MAX = 20_000

/**
 * What sensors report of their coverage. Reports are cumulative: what a report adds to its day is by how much each counter is above the most
 * that its instance has told before. So a report that comes twice, late or not at all makes no sum too large, and the last one of an
 * instance makes it right.
 */
export class CoverageStore {
  readonly #sensors: Family<StoredSensor>
  readonly #days: Family<StoredDay>
  readonly #instancesMax: number
  /** Instances by organization, where they were counted. One too many, of a transaction that failed, only has them counted sooner. */
  readonly #counts = new Map<string, number>()

  constructor(environment: Environment, instancesMax = COVERAGE_INSTANCES_MAX) {
    this.#sensors = new Family(environment.table('coverage-sensors'), "sensor's coverage")
    this.#days = new Family(environment.table('coverage-days'), 'coverage of a day')
    this.#instancesMax = instancesMax
  }

  /** What add() would answer. */
  poll(organizationId: string, report: CoverageReport, nowMs: number): CoverageAddition {
    return fateOf(report, this.#sensors.get(sensorKey(organizationId, report.instance)), nowMs)
  }

  /** Inside a transaction of the caller. */
  add(organizationId: string, report: CoverageReport, nowMs: number): CoverageAddition {
    const key = sensorKey(organizationId, report.instance)
    const last = this.#sensors.get(key)
    const fate = fateOf(report, last, nowMs)
    if (fate !== 'added') return fate
    const { madeMs, ended } = report
    const day = dayOf(nowMs)
    // Read before anything is written, so that a damaged record leaves no half of a report.
    const before = this.#days.get(dayKey(organizationId, day)) ?? { sensors: 0, counters: {} }
    this.#sensors.put(key, { heardMs: nowMs, madeMs, ended, counters: most(last?.counters ?? {}, report.counters) })
    const isFirstToday = last === undefined || dayOf(last.heardMs) < day
    this.#days.put(dayKey(organizationId, day), {
      sensors: before.sensors + (isFirstToday ? 1 : 0),
      counters: sum(before.counters, growth(last?.counters ?? {}, report.counters)),
    })
    if (last === undefined) this.#bound(organizationId)
    return fate
  }

  /** Of `firstDay` (days since 1970) and later. Of more instances than are remembered, those that are. */
  sumSince(organizationId: string, firstDay: number): Coverage {
    let sensors = 0
    let days = 0
    let counters: StoredCounters = {}
    for (const { value } of this.#sensors.range(uuidBytes(organizationId))) {
      if (dayOf(value.heardMs) >= firstDay) sensors++
    }
    const prefix = uuidBytes(organizationId)
    for (const { value } of this.#days.range(prefix, Buffer.concat([prefix, u32Bytes(firstDay)]))) {
      days++
      counters = sum(counters, value.counters)
    }
    return { sensors, days, counters: sum(counters, {}) }
  }

  /** Instances that were heard on each day, ascending. */
  sensorsByDay(organizationId: string): { readonly day: number; readonly sensors: number }[] {
    return Array.from(this.#days.range(uuidBytes(organizationId)), ({ key, value }) => {
      return { day: key.readUInt32BE(DAY_OFFSET), sensors: value.sensors }
    })
  }

  /** Removes the days before `firstDay`, inside a transaction of the caller. What instances have told stays, for the next difference. */
  removeBefore(organizationId: string, firstDay: number): void {
    const old: Buffer[] = []
    for (const key of this.#days.keys(uuidBytes(organizationId))) {
      if (key.readUInt32BE(DAY_OFFSET) >= firstDay || old.length === REMOVED_AT_ONCE_MAX) break
      old.push(key)
    }
    for (const key of old) this.#days.remove(key)
  }

  /** One more instance. Beyond the limit those go that were silent the longest; what such a one tells again would count again. */
  #bound(organizationId: string): void {
    const before = this.#counts.get(organizationId)
    let count = before === undefined ? this.#all(organizationId).length : before + 1
    if (count > this.#instancesMax) {
      const all = this.#all(organizationId).sort((a, b) => a.heardMs - b.heardMs)
      // A tenth at once, so that they are not looked through for each new one.
      const leaving = all.slice(0, Math.max(0, all.length - Math.floor(this.#instancesMax * 0.9)))
      for (const { key } of leaving) this.#sensors.remove(key)
      count = all.length - leaving.length
    }
    this.#counts.set(organizationId, count)
  }

  #all(organizationId: string): { key: Buffer; heardMs: number }[] {
    const all = this.#sensors.range(uuidBytes(organizationId))
    return Array.from(all, ({ key, value }) => ({ key, heardMs: value.heardMs }))
  }
}

/** One report of an instance is stored in COVERAGE_INTERVAL_MS; the last one of a run besides, since none follows that would make up for it. */
function fateOf(report: CoverageReport, last: StoredSensor | undefined, nowMs: number): CoverageAddition {
  if (last === undefined) return 'added'
  if (report.madeMs <= last.madeMs) return 'known'
  // A clock that was set back must not silence the sensor until it is there again.
  const passedMs = Math.abs(nowMs - last.heardMs)
  return passedMs >= COVERAGE_INTERVAL_MS || (report.ended && !last.ended) ? 'added' : 'tooSoon'
}

function each(of: (name: keyof CoverageCounters) => number): CoverageCounters {
  return Object.fromEntries(COVERAGE_COUNTER_NAMES.map((name) => [name, of(name)])) as CoverageCounters
}

function most(a: StoredCounters, b: StoredCounters): CoverageCounters {
  return each((name) => Math.max(a[name] ?? 0, b[name] ?? 0))
}

function growth(before: StoredCounters, now: StoredCounters): CoverageCounters {
  return each((name) => Math.max(0, (now[name] ?? 0) - (before[name] ?? 0)))
}

/** Ends at the largest number that is exact, which only made-up counts reach. */
function sum(a: StoredCounters, b: StoredCounters): CoverageCounters {
  return each((name) => Math.min(Number.MAX_SAFE_INTEGER, (a[name] ?? 0) + (b[name] ?? 0)))
}

function sensorKey(organizationId: string, instance: string): Buffer {
  return Buffer.concat([uuidBytes(organizationId), Buffer.from(instance, 'hex')])
}

function dayKey(organizationId: string, day: number): Buffer {
  return Buffer.concat([uuidBytes(organizationId), u32Bytes(day)])
}
