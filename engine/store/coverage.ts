import { COVERAGE_COUNTER_NAMES, type CoverageCounters, type CoverageReport } from '../kernel/event/coverage-report.ts'
import type { Environment } from '../kernel/lmdb/environment.ts'
import { dayOf } from '../kernel/process/clock.ts'
import { COVERAGE_INSTANCES_MAX, COVERAGE_INTERVAL_MS } from '../limits.ts'
import { Family } from './family.ts'
import { u32Bytes, uuidBytes } from './keys.ts'

/** Counters by name. Counters introduced after the record was written are missing. */
type StoredCounters = Readonly<Partial<CoverageCounters>>

/** The last report of one instance. Each counter has the maximum of all reports. */
export interface StoredSensor {
  /**
   * When the report arrived, by this host's clock. `madeMs` is when it was made, by the sensor's
   * clock.
   */
  readonly heardMs: number
  readonly madeMs: number
  readonly ended: boolean
  readonly counters: StoredCounters
  /** The version of the registry's data in use. Absent if the sensor does not report it. */
  readonly registry?: string
  /** What the day (UTC) of `heardMs` and the day before it added. Missing in older records. */
  readonly added?: { readonly day: StoredCounters; readonly before: StoredCounters }
}

/**
 * Sums over all sensors of an organization for one day (UTC, by this host's clock), and the number
 * of reporting instances.
 */
export interface StoredDay {
  readonly sensors: number
  readonly counters: StoredCounters
}

/**
 * The outcome of a report. `known`: the same content was stored before. `tooSoon`: the previous
 * report is too recent.
 */
export type CoverageAddition = 'added' | 'known' | 'tooSoon'

/** What the sensors of an organization saw, and what they could not see. */
export interface Coverage {
  /** Instances that reported. */
  readonly sensors: number
  /** Days with a report. */
  readonly days: number
  readonly counters: CoverageCounters
}

const DAY_OFFSET = 16
const INSTANCE_OFFSET = 16
/** Maximum records removed per transaction, so that none is long. The next scan continues. */
const REMOVED_AT_ONCE_MAX = 20_000

/**
 * The coverage reports of sensors. Reports are cumulative: a report adds to its day the increase of
 * each counter over the maximum that its instance reported before. A duplicate, late or lost report
 * therefore never inflates a sum, and the last report of an instance makes the sums complete.
 */
export class CoverageStore {
  readonly #sensors: Family<StoredSensor>
  readonly #days: Family<StoredDay>
  readonly #instancesMax: number
  /**
   * Number of instances by organization, once counted. An aborted transaction may leave it too high
   * by one, which only causes an earlier recount.
   */
  readonly #counts = new Map<string, number>()

  constructor(environment: Environment, instancesMax = COVERAGE_INSTANCES_MAX) {
    this.#sensors = new Family(environment.table('coverage-sensors'), "sensor's coverage")
    this.#days = new Family(environment.table('coverage-days'), 'coverage of a day')
    this.#instancesMax = instancesMax
  }

  /** What add() would return, without writing. */
  preview(organizationId: string, report: CoverageReport, nowMs: number): CoverageAddition {
    return fateOf(report, this.#sensors.get(sensorKey(organizationId, report.instance)), nowMs)
  }

  add(organizationId: string, report: CoverageReport, nowMs: number): CoverageAddition {
    const key = sensorKey(organizationId, report.instance)
    const last = this.#sensors.get(key)
    const fate = fateOf(report, last, nowMs)
    if (fate !== 'added') return fate
    const { madeMs, ended, registry } = report
    const day = dayOf(nowMs)
    // Read before writing, so that a damaged record does not leave a partial report.
    const before = this.#days.get(dayKey(organizationId, day)) ?? { sensors: 0, counters: {} }
    const increase = growth(last?.counters ?? {}, report.counters)
    this.#sensors.put(key, {
      heardMs: nowMs,
      madeMs,
      ended,
      counters: most(last?.counters ?? {}, report.counters),
      ...(registry === undefined ? {} : { registry }),
      added: { day: sum(addedOn(day, last), increase), before: addedOn(day - 1, last) },
    })
    const isFirstToday = last === undefined || dayOf(last.heardMs) < day
    this.#days.put(dayKey(organizationId, day), {
      sensors: before.sensors + (isFirstToday ? 1 : 0),
      counters: sum(before.counters, increase),
    })
    if (last === undefined) this.#bound(organizationId)
    return fate
  }

  /**
   * Sums from `firstDay` (days since 1970) on. `sensors` counts only instances whose last report is
   * still stored.
   */
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

  /** The instances whose last report is stored, with that report. */
  sensors(organizationId: string): { readonly instance: string; readonly sensor: StoredSensor }[] {
    return Array.from(this.#sensors.range(uuidBytes(organizationId)), ({ key, value }) => {
      return { instance: key.toString('hex', INSTANCE_OFFSET), sensor: value }
    })
  }

  /**
   * Removes the days before `firstDay`. Keeps the last report of each instance, from which the next
   * increase is computed.
   */
  removeBefore(organizationId: string, firstDay: number): void {
    const old: Buffer[] = []
    for (const key of this.#days.keys(uuidBytes(organizationId))) {
      if (key.readUInt32BE(DAY_OFFSET) >= firstDay || old.length === REMOVED_AT_ONCE_MAX) break
      old.push(key)
    }
    for (const key of old) this.#days.remove(key)
  }

  /**
   * Counts a new instance. Beyond the limit, removes the instances that were inactive the longest;
   * their next report would count in full.
   */
  #bound(organizationId: string): void {
    const before = this.#counts.get(organizationId)
    let count = before === undefined ? this.#all(organizationId).length : before + 1
    if (count > this.#instancesMax) {
      const all = this.#all(organizationId).sort((a, b) => a.heardMs - b.heardMs)
      // Remove a tenth at once, so that not every new instance causes a scan of all records.
      const expired = all.slice(0, Math.max(0, all.length - Math.floor(this.#instancesMax * 0.9)))
      for (const { key } of expired) this.#sensors.remove(key)
      count = all.length - expired.length
    }
    this.#counts.set(organizationId, count)
  }

  #all(organizationId: string): { key: Buffer; heardMs: number }[] {
    const all = this.#sensors.range(uuidBytes(organizationId))
    return Array.from(all, ({ key, value }) => ({ key, heardMs: value.heardMs }))
  }
}

/** What a sensor reported on this day (UTC, by this host's clock) and on the day before. */
export function recentCoverage(sensor: StoredSensor, day: number): Coverage {
  return { sensors: 1, days: 2, counters: sum(addedOn(day, sensor), addedOn(day - 1, sensor)) }
}

function addedOn(day: number, sensor: StoredSensor | undefined): StoredCounters {
  if (sensor?.added === undefined) return {}
  const last = dayOf(sensor.heardMs)
  if (day === last) return sensor.added.day
  return day === last - 1 ? sensor.added.before : {}
}

/**
 * At most one report of an instance per COVERAGE_INTERVAL_MS, plus the final report of a run, since
 * no later report would include it.
 */
function fateOf(report: CoverageReport, last: StoredSensor | undefined, nowMs: number): CoverageAddition {
  if (last === undefined) return 'added'
  if (report.madeMs <= last.madeMs) return 'known'
  // Absolute: after the clock was set back, the sensor's reports must not be ignored until the
  // clock catches up.
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

/** Saturates at the largest exact integer, which only forged counters reach. */
function sum(a: StoredCounters, b: StoredCounters): CoverageCounters {
  return each((name) => Math.min(Number.MAX_SAFE_INTEGER, (a[name] ?? 0) + (b[name] ?? 0)))
}

function sensorKey(organizationId: string, instance: string): Buffer {
  return Buffer.concat([uuidBytes(organizationId), Buffer.from(instance, 'hex')])
}

function dayKey(organizationId: string, day: number): Buffer {
  return Buffer.concat([uuidBytes(organizationId), u32Bytes(day)])
}
