import {
  COLON,
  COMMA,
  DOT,
  digitsEnd,
  HYPHEN,
  isDigit,
  isFoldedText,
  isLetter,
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
/** Of two readings of a day, the one so near to when the message came decides for the source. */
const NEAR_MS = 2 * DAY_MS

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
    const monthEnd = digitsEnd(view, digits + 1, end)
    if (monthEnd >= end || view.getUint8(monthEnd) !== separator) return TimeFound.none
    const dayEnd = digitsEnd(view, monthEnd + 1, end)
    const month = twoDigits(view, digits + 1, monthEnd)
    const day = twoDigits(view, monthEnd + 1, dayEnd)
    if (month < 0 || day < 0) return TimeFound.none
    return this.#withTime(view, dayEnd, end, year, month, day)
  }

  /** `20-Nov-2026 09:15:02.123`, `20/Nov/2026:09:15:02 +0100`, `20 Nov 2026 09:15:02`. */
  #dayAndName(view: DataView, at: number, digits: number, month: number, end: number): TimeFound {
    const yearAt = digits + 5
    const yearEnd = digitsEnd(view, yearAt, end)
    if (yearEnd - yearAt !== 4) return TimeFound.none
    return this.#withTime(view, yearEnd, end, wholeNumberAt(view, yearAt, yearEnd), month, twoDigits(view, at, digits))
  }

  /** `Nov 20 09:15:02`, `Nov  5 2026 09:15:02`, `Nov 20 09:15:02.123 2026`, `Fri Nov 20 09:15:02 2026`, `Fri, 20 Nov 2026 09:15:02`. */
  #monthFirst(view: DataView, at: number, end: number, referenceMs: number): TimeFound {
    let month = wordAt(view, at, end)
    if (month === 0) return TimeFound.none
    if (month === WEEKDAY) {
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
    let next = skipBlanks(view, dayEnd, end)
    const yearEnd = digitsEnd(view, next, end)
    let year = 0
    if (yearEnd - next === 4) {
      year = wholeNumberAt(view, next, yearEnd)
      next = skipBlanks(view, yearEnd, end)
    }
    if (next === dayEnd) return TimeFound.none
    const msOfDay = this.#timeOfDay(view, next, end)
    if (msOfDay < 0) return msOfDay === IMPOSSIBLE ? TimeFound.impossible : TimeFound.none
    if (year === 0) {
      const after = skipBlanks(view, this.end, end)
      const afterEnd = digitsEnd(view, after, end)
      const number = after > this.end && afterEnd - after === 4 ? wholeNumberAt(view, after, afterEnd) : 0
      if (number >= 1970 && number < 2200 && (afterEnd === end || !isNameByte(view.getUint8(afterEnd)))) {
        year = number
        this.end = afterEnd
      }
    }
    this.isLocal = true
    this.#zone(view, end)
    if (year !== 0) return this.#set(year, month, day, msOfDay)
    return this.#nearestYear(month, day, msOfDay, referenceMs)
  }

  /** `11/20/2026 9:15:02 AM`, `20.11.2026 09:15:02`, `20. 11. 26 09:15`. */
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
    let timeAt = skipBlanks(view, yearEnd, end)
    if (timeAt === yearEnd && timeAt < end) {
      // Blue Coat's gmttime has a colon there.
      if (view.getUint8(timeAt) === COLON) timeAt++
      else if (view.getUint8(timeAt) !== COMMA) return TimeFound.none
    }
    const msOfDay = this.#timeOfDay(view, timeAt, end)
    if (msOfDay < 0) return msOfDay === IMPOSSIBLE ? TimeFound.impossible : TimeFound.none
    const halves = this.#halves
    this.isLocal = true
    this.#zone(view, end)
    const order = this.#orderOf(first, second, separator, year, msOfDay, halves, referenceMs)
    const monthFirst = order === DayOrder.monthFirst
    return this.#set(year, monthFirst ? first : second, monthFirst ? second : first, msOfDay)
  }

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
    if (first !== second) {
      const asMonthFirst = Math.abs(daysSince1970(year, first, second) * DAY_MS + msOfDay - referenceMs) <= NEAR_MS
      const asDayFirst = Math.abs(daysSince1970(year, second, first) * DAY_MS + msOfDay - referenceMs) <= NEAR_MS
      if (asMonthFirst !== asDayFirst) {
        this.dayOrder = asMonthFirst ? DayOrder.monthFirst : DayOrder.dayFirst
        return this.dayOrder
      }
    }
    // Twelve hours and slashes are the way of the United States.
    return halves ? DayOrder.monthFirst : DayOrder.dayFirst
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
    if (separator === SPACE || separator === TAB) timeAt = skipBlanks(view, at, end)
    else if ((separator & 0xdf) !== LETTER_T && separator !== COLON && separator !== HYPHEN && separator !== COMMA) {
      return TimeFound.none
    }
    const msOfDay = this.#timeOfDay(view, timeAt, end)
    if (msOfDay < 0) return msOfDay === IMPOSSIBLE ? TimeFound.impossible : TimeFound.none
    this.isLocal = true
    this.#zone(view, end)
    return this.#set(year, month, day, msOfDay)
  }

  /** Whether the last time of day had AM or PM. */
  #halves = false

  /** `9:15`, `09:15:02`, `09:15:02,123`, each with AM or PM. Answers milliseconds of the day, NO_TIME or IMPOSSIBLE; `end` stands behind it. */
  #timeOfDay(view: DataView, at: number, end: number): number {
    this.#halves = false
    const hourEnd = digitsEnd(view, at, end)
    let hour = twoDigits(view, at, hourEnd)
    if (hour < 0 || hourEnd + 2 >= end || view.getUint8(hourEnd) !== COLON) return NO_TIME
    const minuteEnd = digitsEnd(view, hourEnd + 1, end)
    const minute = twoDigits(view, hourEnd + 1, minuteEnd)
    if (minute < 0) return NO_TIME
    let second = 0
    let fractionMs = 0
    this.end = minuteEnd
    if (minuteEnd + 1 < end && view.getUint8(minuteEnd) === COLON) {
      const secondEnd = digitsEnd(view, minuteEnd + 1, end)
      second = twoDigits(view, minuteEnd + 1, secondEnd)
      if (second < 0) return NO_TIME
      this.end = secondEnd
      if (secondEnd + 1 < end && isDigit(view.getUint8(secondEnd + 1))) {
        const mark = view.getUint8(secondEnd)
        // A comma may be the fraction's, or the next column's: the fraction has exactly three digits then.
        const fractionEnd = digitsEnd(view, secondEnd + 1, end)
        if (mark === DOT || (mark === COMMA && fractionEnd - secondEnd === 4 && !isColumn(view, fractionEnd, end))) {
          fractionMs = this.#fraction(view, secondEnd + 1, end)
        }
      }
    }
    hour = this.#half(view, end, hour)
    // A leap second (RFC 3339 §5.7) counts as the one before it.
    if (second === 60) second = 59
    if (hour > 23 || minute > 59 || second > 59) return IMPOSSIBLE
    return hour * HOUR_MS + minute * MINUTE_MS + second * 1000 + fractionMs
  }

  /** AM or PM behind a blank, which new Windows writes as U+202F and others as U+00A0. */
  #half(view: DataView, end: number, hour: number): number {
    let at = this.end
    if (at + 1 >= end) return hour
    const first = view.getUint8(at)
    if (first === SPACE) at++
    else if (first === 0xc2) at += 2
    else if (first === 0xe2) at += 3
    if (at + 2 > end || (at + 2 < end && isNameByte(view.getUint8(at + 2)))) return hour
    const isPm = isFoldedText(view, at, at + 2, 'pm')
    if (!isPm && !isFoldedText(view, at, at + 2, 'am')) return hour
    this.#halves = true
    this.end = at + 2
    if (hour > 12) return hour
    return (hour % 12) + (isPm ? 12 : 0)
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
