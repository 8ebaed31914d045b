import {
  AT,
  COLON,
  COMMA,
  DOT,
  digitsEnd,
  HYPHEN,
  isDigit,
  isFoldedText,
  isLetter,
  isUpper,
  NOT_FOUND,
  SLASH,
  SPACE,
  skipBlanks,
  TAB,
  wholeNumberAt,
} from './bytes.ts'

/** Whether there was a time: none, one that can be, or one of a day or hour that no calendar has. */
export const TimeFound = { none: 0, found: 1, impossible: 2 } as const
export type TimeFound = (typeof TimeFound)[keyof typeof TimeFound]

/** Which number of `05/06/2026` is the day. A source writes one way; `unknown` until it has shown which, or somebody has said. */
export const DayOrder = { unknown: 0, monthFirst: 1, dayFirst: 2 } as const
export type DayOrder = (typeof DayOrder)[keyof typeof DayOrder]

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
/** A time without a year may lie this far ahead of when it came. */
const AHEAD_MS_MAX = DAY_MS
/** A reading of a day so near to when the message came speaks for itself, where the other is AHEAD_DAYS ahead or DISTANT_DAYS away. */
const NEAR_DAYS = 2
const DISTANT_DAYS = 20
const AHEAD_DAYS = 1
/** So much nearer than the other must be a reading that is not NEAR_DAYS: files are older than when they were last written, but seldom by seasons. */
const RECENT_DAYS = 45
const OLD_DAYS = 90
/** A line comes on the day of the one before, or so many days later. */
const STEP_DAYS = 2
/** So often must one order be near, each time at another reference, to be the source's. A file has one reference only, so it never is. */
const NEAR_TIMES = 3

const PLUS = 0x2b
const STAR = 0x2a
const LETTER_T = 0x54
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'] as const
const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const
/** Three letters, five bits each, to the number of the month (from 1) or 20 for a day of the week. */
const WORDS = new Uint8Array(1 << 15)
const WEEKDAY = 20
for (const [index, month] of MONTHS.entries()) WORDS[wordOf(month)] = index + 1
for (const weekday of WEEKDAYS) WORDS[wordOf(weekday)] = WEEKDAY

function wordOf(text: string): number {
  return ((text.charCodeAt(0) & 31) << 10) | ((text.charCodeAt(1) & 31) << 5) | (text.charCodeAt(2) & 31)
}

/** What the ambiguous days of a source have shown of its order. Kept with the source; reading a day changes it. */
export class DayHints {
  /** The last ambiguous day in both readings, in days since 1970, and what it was read as. NaN: none yet. */
  monthFirst = Number.NaN
  dayFirst = Number.NaN
  order: DayOrder = DayOrder.unknown
  /** Which order was near to the reference, how often, and what the reference was the last time. */
  near: DayOrder = DayOrder.unknown
  nearTimes = 0
  nearReferenceMs = Number.NaN
}

/**
 * The halves of the day, as bytes: morning and afternoon in turn. Behind the time with dots and blanks in the Spanish way, or before it, as in East Asia.
 */
const HALF_WORDS: readonly Uint8Array[] = [
  ...['a.m.', 'p.m.', 'a. m.', 'p. m.', 'a.\u00a0m.', 'p.\u00a0m.', 'a.\u202fm.', 'p.\u202fm.'],
  ...['am', 'pm', 'πμ', 'μμ', 'π.μ.', 'μ.μ.', '오전', '오후', '上午', '下午', '午前', '午後', 'ص', 'م'],
].map((word) => new TextEncoder().encode(word))
/** 1 for the bytes that a half of the day begins with. */
const HALF_STARTS = new Uint8Array(256)
for (const word of HALF_WORDS) for (const byte of [word[0] ?? 0, (word[0] ?? 0) & 0xdf]) HALF_STARTS[byte] = 1
HALF_STARTS[0] = 0
/** Behind the year in Bulgarian: `г.` */
const BULGARIAN_YEAR = new TextEncoder().encode('г.')

/**
 * Reads the times of all formats: epochs (10, 13, 16, 19 digits, or seconds with a fraction), year first with `-`, `/` or `:`, day first with the
 * month's name, RFC 3164's without a year, asctime's, and numbers whose order the source must tell.
 */
export class LogTime {
  /** Milliseconds since 1970: in UTC, or, where `isLocal`, of a clock on the wall in a zone that the message does not name. */
  ms = 0
  isLocal = false
  /** Behind the last byte that was read. */
  end = 0
  /** What this source has shown; the caller keeps it with the source. */
  dayOrder: DayOrder = DayOrder.unknown
  hints = new DayHints()

  /** Reads the time at the beginning of [start, end), blanks aside. `referenceMs` is when the message came, or the file was last written. */
  read(view: DataView, start: number, end: number, referenceMs: number): TimeFound {
    let at = skipBlanks(view, start, end)
    // Cisco marks a clock that was never set.
    if (at < end && view.getUint8(at) === STAR) at++
    if (at >= end) return TimeFound.none
    const first = view.getUint8(at)
    if (isLetter(first)) return this.#monthFirst(view, at, end, referenceMs)
    if (!isDigit(first)) return TimeFound.none
    const digits = digitsEnd(view, at, end)
    const length = digits - at
    if (length >= 10) return this.#epoch(view, at, digits, end)
    if (digits >= end) return TimeFound.none
    const separator = view.getUint8(digits)
    if (length === 4) return this.#yearFirst(view, at, digits, separator, end)
    if (length > 2 || digits + 1 >= end) return TimeFound.none
    const month = isLetter(view.getUint8(digits + 1)) ? wordAt(view, digits + 1, end) : 0
    if (month > 0) return month < WEEKDAY ? this.#dayAndName(view, at, digits, month, end) : TimeFound.none
    return this.#numbers(view, at, digits, separator, end, referenceMs)
  }

  /** RFC 3339 in all the looseness that is seen, and what differs from it in the separators only. */
  #yearFirst(view: DataView, at: number, digits: number, separator: number, end: number): TimeFound {
    if (separator !== HYPHEN && separator !== SLASH && separator !== COLON && separator !== DOT) return TimeFound.none
    const year = wholeNumberAt(view, at, digits)
    const isDotted = separator === DOT
    const monthAt = isDotted ? skipBlanks(view, digits + 1, end) : digits + 1
    const monthEnd = digitsEnd(view, monthAt, end)
    if (monthEnd >= end || view.getUint8(monthEnd) !== separator) return TimeFound.none
    const dayAt = isDotted ? skipBlanks(view, monthEnd + 1, end) : monthEnd + 1
    let dayEnd = digitsEnd(view, dayAt, end)
    const month = twoDigits(view, monthAt, monthEnd)
    const day = twoDigits(view, dayAt, dayEnd)
    if (month < 0 || day < 0) return TimeFound.none
    // Hungarian and Korean: `2026. 11. 20. 9:15:02`.
    if (isDotted && dayEnd < end && view.getUint8(dayEnd) === DOT) dayEnd++
    return this.#withTime(view, dayEnd, end, year, month, day)
  }

  /** `20-Nov-2026 09:15:02.123`, `20/Nov/2026:09:15:02 +0100`, `20 Nov 2026 09:15:02`, `20-Nov-26 9:15:02 AM`. */
  #dayAndName(view: DataView, at: number, digits: number, month: number, end: number): TimeFound {
    const yearAt = digits + 5
    const yearEnd = digitsEnd(view, yearAt, end)
    let year = wholeNumberAt(view, yearAt, yearEnd)
    if (yearEnd - yearAt === 2) {
      // Two digits and a colon are the hour of a time without a year.
      if (yearEnd >= end || view.getUint8(yearEnd) === COLON) return TimeFound.none
      year += 2000
    } else if (yearEnd - yearAt !== 4) return TimeFound.none
    return this.#withTime(view, yearEnd, end, year, month, twoDigits(view, at, digits))
  }

  /**
   * `Nov 20 09:15:02`, `Nov  5 2026 09:15:02`, `Nov 20 09:15:02.123 2026`, `Fri Nov 20 09:15:02 2026`, `Fri, 20 Nov 2026 09:15:02`,
   * `Fri Nov 20 09:15:02 CET 2026`, `Nov 20, 2026 9:15:02 PM`, `Nov 20, 2026 @ 09:15:02.123`.
   */
  #monthFirst(view: DataView, at: number, end: number, referenceMs: number): TimeFound {
    let month = wordAt(view, at, end)
    if (month === 0) return TimeFound.none
    const hasWeekday = month === WEEKDAY
    if (hasWeekday) {
      at += 3
      if (at < end && view.getUint8(at) === COMMA) at++
      at = skipBlanks(view, at, end)
      if (at < end && isDigit(view.getUint8(at))) {
        const digits = digitsEnd(view, at, end)
        month = digits - at <= 2 ? wordAt(view, digits + 1, end) : 0
        return month > 0 && month < WEEKDAY ? this.#dayAndName(view, at, digits, month, end) : TimeFound.none
      }
      month = wordAt(view, at, end)
      if (month === 0 || month === WEEKDAY) return TimeFound.none
    }
    at += 3
    if (at >= end || view.getUint8(at) !== SPACE) return TimeFound.none
    at = skipBlanks(view, at, end)
    const dayEnd = digitsEnd(view, at, end)
    const day = twoDigits(view, at, dayEnd)
    if (day < 0) return TimeFound.none
    let next = behindComma(view, dayEnd, end)
    const yearEnd = digitsEnd(view, next, end)
    let year = 0
    if (yearEnd - next === 4) {
      year = wholeNumberAt(view, next, yearEnd)
      next = behindComma(view, yearEnd, end)
      if (next < end && view.getUint8(next) === AT) next = skipBlanks(view, next + 1, end)
    }
    if (next === dayEnd) return TimeFound.none
    const msOfDay = this.#timeOfDay(view, next, end)
    if (msOfDay < 0) return msOfDay === IMPOSSIBLE ? TimeFound.impossible : TimeFound.none
    this.isLocal = true
    this.#offsetMs = 0
    let hasZone = false
    if (year === 0) {
      const timeEnd = this.end
      let after = skipBlanks(view, timeEnd, end)
      if (hasWeekday && after > timeEnd) {
        // date(1) writes the zone before the year.
        const word = after
        while (after < end && isUpper(view.getUint8(after))) after++
        hasZone = after - word >= 3 && after - word <= 5
        after = hasZone ? skipBlanks(view, after, end) : word
      }
      const afterEnd = digitsEnd(view, after, end)
      const number = after > timeEnd && afterEnd - after === 4 ? wholeNumberAt(view, after, afterEnd) : 0
      if (number >= 1970 && number < 2200 && (afterEnd === end || !isNameByte(view.getUint8(afterEnd)))) {
        year = number
        if (hasZone) this.#zone(view, after)
        this.end = afterEnd
      } else hasZone = false
    }
    if (!hasZone) this.#zone(view, end)
    if (year !== 0) return this.#set(year, month, day, msOfDay)
    return this.#nearestYear(month, day, msOfDay, referenceMs)
  }

  /** `11/20/2026 9:15:02 AM`, `20.11.2026 09:15:02`, `20. 11. 26 09:15`, `20.11.2026, 21:15:02`, `20.11.2026 г. 9:15:02`, `20.11.2026 9.15.02`. */
  #numbers(view: DataView, at: number, digits: number, separator: number, end: number, referenceMs: number): TimeFound {
    if (separator !== SLASH && separator !== DOT && separator !== HYPHEN) return TimeFound.none
    const secondAt = separator === DOT ? skipBlanks(view, digits + 1, end) : digits + 1
    const secondEnd = digitsEnd(view, secondAt, end)
    if (secondEnd >= end || view.getUint8(secondEnd) !== separator) return TimeFound.none
    const yearAt = separator === DOT ? skipBlanks(view, secondEnd + 1, end) : secondEnd + 1
    const yearEnd = digitsEnd(view, yearAt, end)
    const first = twoDigits(view, at, digits)
    const second = twoDigits(view, secondAt, secondEnd)
    if (second < 0 || (yearEnd - yearAt !== 4 && yearEnd - yearAt !== 2)) return TimeFound.none
    let year = wholeNumberAt(view, yearAt, yearEnd)
    if (year < 100) year += 2000
    let timeAt = behindComma(view, yearEnd, end)
    if (timeAt === yearEnd && timeAt < end) {
      // Blue Coat's gmttime has a colon there; Serbian has another dot.
      const mark = view.getUint8(timeAt)
      if (mark !== COLON && (mark !== DOT || separator !== DOT)) return TimeFound.none
      timeAt = mark === COLON ? timeAt + 1 : skipBlanks(view, timeAt + 1, end)
    }
    if (bytesAt(view, timeAt, end, BULGARIAN_YEAR)) timeAt = skipBlanks(view, timeAt + BULGARIAN_YEAR.length, end)
    const msOfDay = this.#timeOfDay(view, timeAt, end, true)
    if (msOfDay < 0) return msOfDay === IMPOSSIBLE ? TimeFound.impossible : TimeFound.none
    const halves = this.#halves
    this.isLocal = true
    this.#zone(view, end)
    const order = this.#orderOf(first, second, separator, year, msOfDay, halves, referenceMs)
    const monthFirst = order === DayOrder.monthFirst
    return this.#set(year, monthFirst ? first : second, monthFirst ? second : first, msOfDay)
  }

  /**
   * Which number is the day. A number above twelve says so, and is remembered. Without one there are only hints, the strongest first; they are
   * worked out for each day anew, because a source that shows a number above twelve later must not have been settled wrongly:
   *
   *   1. a reading that is ahead of the reference is not the one, where the other is not
   *   2. a reading that was near at several references is the source's from then on: it is written as it happens
   *   3. the same day as on the line before is read as there; a day soon after it, in one reading only, in that one
   *   4. a reading near the reference, the other far from it; but once is not enough against AM or PM
   *   5. a reading of the last weeks rather than one of another season
   *   6. twelve hours and slashes are the way of the United States, others begin with the day
   */
  #orderOf(
    first: number,
    second: number,
    separator: number,
    year: number,
    msOfDay: number,
    halves: boolean,
    referenceMs: number,
  ): DayOrder {
    if (separator === DOT) return DayOrder.dayFirst
    if (first > 12) {
      if (second <= 12) this.dayOrder = DayOrder.dayFirst
      return DayOrder.dayFirst
    }
    if (second > 12) {
      this.dayOrder = DayOrder.monthFirst
      return DayOrder.monthFirst
    }
    if (this.dayOrder !== DayOrder.unknown) return this.dayOrder
    const { hints } = this
    const monthFirst = daysSince1970(year, first, second)
    const dayFirst = daysSince1970(year, second, first)
    const order = this.#orderByHints(monthFirst, dayFirst, (referenceMs - msOfDay) / DAY_MS, halves, referenceMs)
    hints.monthFirst = monthFirst
    hints.dayFirst = dayFirst
    hints.order = order
    return order
  }

  #orderByHints(
    monthFirst: number,
    dayFirst: number,
    referenceDay: number,
    halves: boolean,
    referenceMs: number,
  ): DayOrder {
    const { hints } = this
    const usual = halves ? DayOrder.monthFirst : DayOrder.dayFirst
    if (monthFirst === dayFirst) return usual
    const monthFirstAge = referenceDay - monthFirst
    const dayFirstAge = referenceDay - dayFirst
    const isMonthFirstNear = isNear(monthFirstAge, dayFirstAge)
    const isDayFirstNear = isNear(dayFirstAge, monthFirstAge)
    let near: DayOrder = DayOrder.unknown
    if (isMonthFirstNear !== isDayFirstNear) near = isMonthFirstNear ? DayOrder.monthFirst : DayOrder.dayFirst
    if (near !== DayOrder.unknown && this.#isNearAgain(near, referenceMs)) {
      this.dayOrder = near
      return near
    }
    const isMonthFirstAhead = monthFirstAge < -AHEAD_DAYS
    if (isMonthFirstAhead !== dayFirstAge < -AHEAD_DAYS) {
      return isMonthFirstAhead ? DayOrder.dayFirst : DayOrder.monthFirst
    }
    if (monthFirst === hints.monthFirst && dayFirst === hints.dayFirst) return hints.order
    const isMonthFirstNext = isSoonAfter(hints.monthFirst, monthFirst)
    if (isMonthFirstNext !== isSoonAfter(hints.dayFirst, dayFirst)) {
      return isMonthFirstNext ? DayOrder.monthFirst : DayOrder.dayFirst
    }
    if (near !== DayOrder.unknown && (near === usual || !halves)) return near
    if (isRecent(monthFirstAge) && dayFirstAge > OLD_DAYS) return DayOrder.monthFirst
    if (isRecent(dayFirstAge) && monthFirstAge > OLD_DAYS) return DayOrder.dayFirst
    return usual
  }

  /** Counts that an order was near, if the reference is another than the last time. True if it was so often enough. */
  #isNearAgain(order: DayOrder, referenceMs: number): boolean {
    const { hints } = this
    if (hints.near !== order) {
      hints.near = order
      hints.nearTimes = 0
    } else if (hints.nearReferenceMs === referenceMs) return false
    hints.nearReferenceMs = referenceMs
    return ++hints.nearTimes >= NEAR_TIMES
  }

  /** 10 digits are seconds, 13 milliseconds, 16 microseconds, 19 nanoseconds; a double would lose digits of the last. */
  #epoch(view: DataView, at: number, digits: number, end: number): TimeFound {
    const length = digits - at
    if (length !== 10 && length !== 13 && length !== 16 && length !== 19) return TimeFound.none
    this.isLocal = false
    this.end = digits
    if (length !== 10) {
      this.ms = wholeNumberAt(view, at, at + 13)
      return TimeFound.found
    }
    this.ms = wholeNumberAt(view, at, digits) * 1000
    if (digits + 1 < end && view.getUint8(digits) === DOT && isDigit(view.getUint8(digits + 1))) {
      this.ms += this.#fraction(view, digits + 1, end)
    }
    return TimeFound.found
  }

  #withTime(view: DataView, at: number, end: number, year: number, month: number, day: number): TimeFound {
    if (at >= end) return TimeFound.none
    const separator = view.getUint8(at)
    let timeAt = at + 1
    if (separator === SPACE || separator === TAB || separator === COMMA) timeAt = behindComma(view, at, end)
    else if ((separator & 0xdf) !== LETTER_T && separator !== COLON && separator !== HYPHEN) return TimeFound.none
    const msOfDay = this.#timeOfDay(view, timeAt, end)
    if (msOfDay < 0) return msOfDay === IMPOSSIBLE ? TimeFound.impossible : TimeFound.none
    this.isLocal = true
    this.#zone(view, end)
    return this.#set(year, month, day, msOfDay)
  }

  /** Whether the last time of day had AM or PM. */
  #halves = false

  /**
   * `9:15`, `09:15:02`, `09:15:02,123`, each with AM or PM, and `9.15.02` where dots may stand. Answers milliseconds of the day, NO_TIME or
   * IMPOSSIBLE; `end` stands behind it.
   */
  #timeOfDay(view: DataView, at: number, end: number, mayBeDotted = false): number {
    this.#halves = false
    const half = halfWordAt(view, at, end)
    if (half !== NOT_FOUND) at = behindWideBlank(view, at + (HALF_WORDS[half]?.length ?? 0), end)
    const hourEnd = digitsEnd(view, at, end)
    let hour = twoDigits(view, at, hourEnd)
    if (hour < 0 || hourEnd + 2 >= end) return NO_TIME
    const isDotted = mayBeDotted && isDottedTime(view, hourEnd, end)
    if (!isDotted && view.getUint8(hourEnd) !== COLON) return NO_TIME
    const mark = isDotted ? DOT : COLON
    const minuteEnd = digitsEnd(view, hourEnd + 1, end)
    const minute = twoDigits(view, hourEnd + 1, minuteEnd)
    if (minute < 0) return NO_TIME
    let second = 0
    let fractionMs = 0
    this.end = minuteEnd
    if (minuteEnd + 1 < end && view.getUint8(minuteEnd) === mark) {
      const secondEnd = digitsEnd(view, minuteEnd + 1, end)
      second = twoDigits(view, minuteEnd + 1, secondEnd)
      if (second < 0) return NO_TIME
      this.end = secondEnd
      if (secondEnd + 1 < end && isDigit(view.getUint8(secondEnd + 1))) {
        const next = view.getUint8(secondEnd)
        // A comma may be the fraction's, or the next column's: the fraction has exactly three digits then.
        const fractionEnd = digitsEnd(view, secondEnd + 1, end)
        if (next === DOT || (next === COMMA && fractionEnd - secondEnd === 4 && !isColumn(view, fractionEnd, end))) {
          fractionMs = this.#fraction(view, secondEnd + 1, end)
        }
      }
    }
    hour = half === NOT_FOUND ? this.#half(view, end, hour) : this.#ofHalf(half, hour)
    // A leap second (RFC 3339 §5.7) counts as the one before it.
    if (second === 60) second = 59
    if (hour > 23 || minute > 59 || second > 59) return IMPOSSIBLE
    return hour * HOUR_MS + minute * MINUTE_MS + second * 1000 + fractionMs
  }

  /** AM or PM in any language behind a blank, which new Windows writes as U+202F and others as U+00A0. */
  #half(view: DataView, end: number, hour: number): number {
    const at = behindWideBlank(view, this.end, end)
    const half = halfWordAt(view, at, end)
    if (half === NOT_FOUND) return hour
    const stop = at + (HALF_WORDS[half]?.length ?? 0)
    if (stop < end && isNameByte(view.getUint8(stop))) return hour
    this.end = stop
    return this.#ofHalf(half, hour)
  }

  #ofHalf(half: number, hour: number): number {
    this.#halves = true
    return hour > 12 ? hour : (hour % 12) + (half % 2 === 1 ? 12 : 0)
  }

  /** Milliseconds of a fraction of any number of digits; `end` stands behind them. */
  #fraction(view: DataView, at: number, end: number): number {
    const digits = digitsEnd(view, at, end)
    let ms = 0
    for (let place = 0; place < 3; place++) {
      ms = ms * 10 + (at + place < digits ? view.getUint8(at + place) - 0x30 : 0)
    }
    this.end = digits
    return ms
  }

  #offsetMs = 0

  /** `Z`, `UTC`, `GMT`, `+01:00`, `+0100`, `+01`, with or without a blank before. Other names of zones are ambiguous and not read. */
  #zone(view: DataView, end: number): void {
    this.#offsetMs = 0
    let at = this.end
    if (at < end && view.getUint8(at) === SPACE) at++
    if (at >= end) return
    const sign = view.getUint8(at)
    if (sign === PLUS || sign === HYPHEN) {
      const hoursEnd = digitsEnd(view, at + 1, end)
      const length = hoursEnd - at - 1
      let minutes = NOT_FOUND
      let stop = hoursEnd
      if (length === 4) {
        minutes = twoDigits(view, at + 1, at + 3) * 60 + twoDigits(view, at + 3, at + 5)
      } else if (length === 2) {
        minutes = twoDigits(view, at + 1, at + 3) * 60
        if (hoursEnd + 2 < end && view.getUint8(hoursEnd) === COLON) {
          const minutesEnd = digitsEnd(view, hoursEnd + 1, end)
          if (minutesEnd - hoursEnd === 3) {
            minutes += twoDigits(view, hoursEnd + 1, minutesEnd)
            stop = minutesEnd
          }
        }
      }
      if (minutes < 0 || minutes > 18 * 60 || (stop < end && isNameByte(view.getUint8(stop)))) return
      this.#offsetMs = (sign === PLUS ? minutes : -minutes) * MINUTE_MS
      this.isLocal = false
      this.end = stop
      return
    }
    const isZulu = (sign | 0x20) === 0x7a && (at + 1 >= end || !isNameByte(view.getUint8(at + 1)))
    if (isZulu) {
      this.isLocal = false
      this.end = at + 1
      return
    }
    if (at + 3 > end || (at + 3 < end && isNameByte(view.getUint8(at + 3)))) return
    if (!isFoldedText(view, at, at + 3, 'utc') && !isFoldedText(view, at, at + 3, 'gmt')) return
    this.isLocal = false
    this.end = at + 3
  }

  #set(year: number, month: number, day: number, msOfDay: number): TimeFound {
    if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return TimeFound.impossible
    this.ms = daysSince1970(year, month, day) * DAY_MS + msOfDay - this.#offsetMs
    return TimeFound.found
  }

  /** The year that brings the time nearest to when the message came; a little ahead at most (RFC 3164 has no year). */
  #nearestYear(month: number, day: number, msOfDay: number, referenceMs: number): TimeFound {
    if (month < 1 || month > 12 || day < 1 || day > daysIn(2000, month)) return TimeFound.impossible
    // Each message of a day asks for the same; the year of the reference is worked out once for many.
    if (referenceMs < this.#yearStartMs || referenceMs >= this.#yearEndMs) {
      this.#year = new Date(referenceMs).getUTCFullYear()
      this.#yearStartMs = Date.UTC(this.#year, 0, 1)
      this.#yearEndMs = Date.UTC(this.#year + 1, 0, 1)
    }
    let best = Number.NaN
    for (let year = this.#year + 1; year >= this.#year - 4; year--) {
      if (day > daysIn(year, month)) continue
      const ms = daysSince1970(year, month, day) * DAY_MS + msOfDay - this.#offsetMs
      if (ms > referenceMs + AHEAD_MS_MAX) continue
      best = ms
      break
    }
    if (Number.isNaN(best)) return TimeFound.impossible
    this.ms = best
    return TimeFound.found
  }
  #year = 0
  #yearStartMs = 0
  #yearEndMs = 0
}

const NO_TIME = -1
const IMPOSSIBLE = -2

/** The number that one or two digits are, or NOT_FOUND. */
function twoDigits(view: DataView, start: number, end: number): number {
  if (end - start === 2) return (view.getUint8(start) - 0x30) * 10 + view.getUint8(start + 1) - 0x30
  return end - start === 1 ? view.getUint8(start) - 0x30 : NOT_FOUND
}

/** The month or weekday whose first three letters stand at `at`, which must not go on for longer than its name; else 0. */
function wordAt(view: DataView, at: number, end: number): number {
  if (at + 3 > end) return 0
  const first = view.getUint8(at)
  const second = view.getUint8(at + 1)
  const third = view.getUint8(at + 2)
  if (!isLetter(first) || !isLetter(second) || !isLetter(third)) return 0
  return WORDS[((first & 31) << 10) | ((second & 31) << 5) | (third & 31)] ?? 0
}

function isNameByte(byte: number): boolean {
  return isDigit(byte) || isLetter(byte) || byte === DOT || byte === COLON
}

/** Which of HALF_WORDS stands at `at`, letters in any case, or NOT_FOUND. */
function halfWordAt(view: DataView, at: number, end: number): number {
  if (at + 1 >= end || HALF_STARTS[view.getUint8(at)] !== 1) return NOT_FOUND
  // Many hosts begin with these letters, and stand behind the time of their messages.
  const second = view.getUint8(at + 1)
  if (second < 0x80 && second !== DOT && (second | 0x20) !== 0x6d) return NOT_FOUND
  for (let index = 0; index < HALF_WORDS.length; index++) {
    const word = HALF_WORDS[index]
    if (word !== undefined && bytesAt(view, at, end, word)) return index
  }
  return NOT_FOUND
}

/** Whether these bytes stand at `at`, ASCII letters in any case; `word` is lower case. */
function bytesAt(view: DataView, at: number, end: number, word: Uint8Array): boolean {
  if (at + word.length > end) return false
  for (let index = 0; index < word.length; index++) {
    const byte = view.getUint8(at + index)
    if ((isUpper(byte) ? byte | 0x20 : byte) !== word[index]) return false
  }
  return true
}

/** Behind a comma, if there is one, and blanks. */
function behindComma(view: DataView, at: number, end: number): number {
  return skipBlanks(view, at < end && view.getUint8(at) === COMMA ? at + 1 : at, end)
}

/** Behind one blank, of ASCII, U+00A0 or U+202F. */
function behindWideBlank(view: DataView, at: number, end: number): number {
  if (at >= end) return at
  const first = view.getUint8(at)
  if (first === SPACE) return at + 1
  if (first === 0xc2 && at + 1 < end && view.getUint8(at + 1) === 0xa0) return at + 2
  return first === 0xe2 && at + 2 < end && view.getUint16(at + 1) === 0x80af ? at + 3 : at
}

/** Whether `.15.02` stands behind the hour, and not the rest of an address. */
function isDottedTime(view: DataView, hourEnd: number, end: number): boolean {
  const stop = hourEnd + 6
  if (stop > end || view.getUint8(hourEnd) !== DOT || view.getUint8(hourEnd + 3) !== DOT) return false
  if (digitsEnd(view, hourEnd + 1, end) !== hourEnd + 3 || digitsEnd(view, hourEnd + 4, end) !== stop) return false
  return stop === end || !isNameByte(view.getUint8(stop))
}

/** Whether a day of this age is near, and of the other age can hardly be. Ages are days before the reference. */
function isNear(age: number, otherAge: number): boolean {
  return Math.abs(age) <= NEAR_DAYS && (otherAge < -AHEAD_DAYS || otherAge > DISTANT_DAYS)
}

function isRecent(age: number): boolean {
  return age >= -AHEAD_DAYS && age <= RECENT_DAYS
}

function isSoonAfter(before: number, day: number): boolean {
  return day >= before && day <= before + STEP_DAYS
}

/** What stands here goes on as a number with a comma or a dot behind it: a column of its own. */
function isColumn(view: DataView, at: number, end: number): boolean {
  return at < end && (view.getUint8(at) === COMMA || view.getUint8(at) === DOT)
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/** Days of the proleptic Gregorian calendar, with March as the first month of the year so that the leap day is the last. */
function daysSince1970(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year
  const era = Math.floor(y / 400)
  const yearOfEra = y - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}
