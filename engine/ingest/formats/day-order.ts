import { DAY_MS } from '../../process/clock.ts'
import { daysSince1970 } from './calendar.ts'

/**
 * Which number of `05/06/2026` is the day. `unknown`: neither the source nor an administrator has
 * settled it.
 */
export const DayOrder = { unknown: 0, monthFirst: 1, dayFirst: 2 } as const
export type DayOrder = (typeof DayOrder)[keyof typeof DayOrder]

/**
 * A reading of a date counts as near when it is at most NEAR_DAYS from the reference, and the other
 * reading is more than AHEAD_DAYS after the reference or more than DISTANT_DAYS before it.
 */
const NEAR_DAYS = 2
const DISTANT_DAYS = 20
const AHEAD_DAYS = 1
/**
 * A reading of the last RECENT_DAYS is preferred to one of more than OLD_DAYS ago. The lines of a
 * file are older than its last write, but seldom by seasons.
 */
const RECENT_DAYS = 45
const OLD_DAYS = 90
/** A line has the date of the line before, or a date at most this many days later. */
const STEP_DAYS = 2
/**
 * An order that was near at this many different references is settled. All lines of a file have the
 * same reference, so a file never settles its order this way.
 */
const NEAR_TIMES = 3

/** The order in which one source writes day and month, as far as its dates have shown it. */
export class SourceDayOrder {
  settled: DayOrder = DayOrder.unknown
  /**
   * Both readings of the last ambiguous date, in days since 1970, and the order chosen. NaN: none
   * yet.
   */
  #lastMonthFirst = Number.NaN
  #lastDayFirst = Number.NaN
  #lastOrder: DayOrder = DayOrder.unknown
  /** The order that was near to the reference, how many times, and the last of these references. */
  #near: DayOrder = DayOrder.unknown
  #nearTimes = 0
  #nearReferenceMs = Number.NaN

  /** Settles the order as an administrator did, unless the source has shown its own. */
  settleIfUnknown(order: DayOrder): void {
    if (this.settled === DayOrder.unknown) this.settled = order
  }

  /**
   * The order of a date that begins with `first` and `second`. A number above twelve settles the
   * order. Without one there are only hints, strongest first. They are evaluated again for each
   * date, because a source that shows a number above twelve later must not have been settled
   * wrongly:
   *
   *   1. one reading is after the reference, the other is not: take the other
   *   2. a reading that was near at several references settles the order: the source writes lines
   *      as they happen
   *   3. the date of the previous line keeps its reading; of other dates, take the only reading
   *      shortly after it
   *   4. one reading is near the reference and the other is far from it; once does not outweigh
   *      AM or PM
   *   5. one reading is of the last weeks, the other of another season
   *   6. a twelve-hour clock suggests the United States, so month first; otherwise day first
   */
  of(
    first: number,
    second: number,
    year: number,
    msOfDay: number,
    isTwelveHour: boolean,
    referenceMs: number,
  ): DayOrder {
    if (first > 12) {
      if (second <= 12) this.settled = DayOrder.dayFirst
      return DayOrder.dayFirst
    }
    if (second > 12) {
      this.settled = DayOrder.monthFirst
      return DayOrder.monthFirst
    }
    if (this.settled !== DayOrder.unknown) return this.settled
    const monthFirst = daysSince1970(year, first, second)
    const dayFirst = daysSince1970(year, second, first)
    const order = this.#byHints(monthFirst, dayFirst, (referenceMs - msOfDay) / DAY_MS, isTwelveHour, referenceMs)
    this.#lastMonthFirst = monthFirst
    this.#lastDayFirst = dayFirst
    this.#lastOrder = order
    return order
  }

  #byHints(
    monthFirst: number,
    dayFirst: number,
    referenceDay: number,
    isTwelveHour: boolean,
    referenceMs: number,
  ): DayOrder {
    const byClock = isTwelveHour ? DayOrder.monthFirst : DayOrder.dayFirst
    if (monthFirst === dayFirst) return byClock
    const monthFirstAge = referenceDay - monthFirst
    const dayFirstAge = referenceDay - dayFirst
    const isMonthFirstNear = isNear(monthFirstAge, dayFirstAge)
    const isDayFirstNear = isNear(dayFirstAge, monthFirstAge)
    let near: DayOrder = DayOrder.unknown
    if (isMonthFirstNear !== isDayFirstNear) near = isMonthFirstNear ? DayOrder.monthFirst : DayOrder.dayFirst
    if (near !== DayOrder.unknown && this.#isNearOftenEnough(near, referenceMs)) {
      this.settled = near
      return near
    }
    const isMonthFirstAhead = monthFirstAge < -AHEAD_DAYS
    if (isMonthFirstAhead !== dayFirstAge < -AHEAD_DAYS) {
      return isMonthFirstAhead ? DayOrder.dayFirst : DayOrder.monthFirst
    }
    if (monthFirst === this.#lastMonthFirst && dayFirst === this.#lastDayFirst) return this.#lastOrder
    const isMonthFirstNext = isSoonAfter(this.#lastMonthFirst, monthFirst)
    if (isMonthFirstNext !== isSoonAfter(this.#lastDayFirst, dayFirst)) {
      return isMonthFirstNext ? DayOrder.monthFirst : DayOrder.dayFirst
    }
    if (near !== DayOrder.unknown && (near === byClock || !isTwelveHour)) return near
    if (isRecent(monthFirstAge) && dayFirstAge > OLD_DAYS) return DayOrder.monthFirst
    if (isRecent(dayFirstAge) && monthFirstAge > OLD_DAYS) return DayOrder.dayFirst
    return byClock
  }

  /** Counts a reference at which this order was near, unless it is the previous reference. */
  #isNearOftenEnough(order: DayOrder, referenceMs: number): boolean {
    if (this.#near !== order) {
      this.#near = order
      this.#nearTimes = 0
    } else if (this.#nearReferenceMs === referenceMs) return false
    this.#nearReferenceMs = referenceMs
    return ++this.#nearTimes >= NEAR_TIMES
  }
}

/** Ages are days before the reference. */
function isNear(age: number, otherAge: number): boolean {
  return Math.abs(age) <= NEAR_DAYS && (otherAge < -AHEAD_DAYS || otherAge > DISTANT_DAYS)
}

function isRecent(age: number): boolean {
  return age >= -AHEAD_DAYS && age <= RECENT_DAYS
}

function isSoonAfter(before: number, day: number): boolean {
  return day >= before && day <= before + STEP_DAYS
}
