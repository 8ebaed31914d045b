import { DAY_MS, HOUR_MS, MINUTE_MS } from '../kernel/process/clock.ts'
import {
  AT,
  COLON,
  COMMA,
  DOT,
  digitsEnd,
  HYPHEN,
  isDigit,
  isLetter,
  isUpper,
  KeyTable,
  NOT_FOUND,
  SLASH,
  SPACE,
  skipBlanks,
  textAtIgnoreCase,
  wholeNumberAt,
} from './bytes.ts'

/** Whether a time was found. `impossible`: its day or hour does not exist. */
export const TimeFound = { none: 0, found: 1, impossible: 2 } as const
export type TimeFound = (typeof TimeFound)[keyof typeof TimeFound]

/** A time without a year may be this much later than its reference. */
const AHEAD_MS_MAX = DAY_MS
const PLUS = 0x2b
const STAR = 0x2a
const LETTER_T = 0x54
const LETTER_Z = 0x7a
const EPOCH_DIGITS_MIN = 10
/**
 * Parses the times of all formats: epochs (10, 13, 16, 19 digits, or seconds with a fraction), year
 * first with `-`, `/`, `:` or `.`, day first with the month's name, RFC 3164 without a year,
 * asctime, and numeric dates whose order of day and month depends on the source (SourceDayOrder).
 */
export class LogTime {
  /**
   * Milliseconds since 1970 in UTC. With `isLocal`, the wall clock of a zone that the message does
   * not name.
   */
  ms = 0
  isLocal = false
  /** The offset after the last byte of the time. */
  end = 0
  /** The order of the source whose time is read next. The caller keeps it with the source. */
  dayOrder = new SourceDayOrder()

  /**
   * Reads the time at the beginning of [start, end), after any blanks: an epoch, or a date, a time of
   * day, and a zone. `referenceMs` is when the message was received, or when its file was last
   * written.
   */
  read(view: DataView, start: number, end: number, referenceMs: number): TimeFound {
    let at = skipBlanks(view, start, end)
    // Cisco marks a clock that was never set with a star.
    if (at < end && view.getUint8(at) === STAR) at++
    const digits = digitsEnd(view, at, end)
    if (digits - at >= EPOCH_DIGITS_MIN) return this.#epoch(view, at, digits, end)
    const time = this.#date(view, at, digits, end)
    if (time === NOT_FOUND) return TimeFound.none
    const msOfDay = this.#timeOfDay(view, time, end)
    if (msOfDay < 0) return msOfDay === IMPOSSIBLE ? TimeFound.impossible : TimeFound.none
    this.isLocal = true
    if (this.#year === 0 && this.#yearAfter(view, end)) return this.#set(msOfDay)
    this.#zone(view, end)
    if (this.#year === 0) return this.#nearestYear(msOfDay, referenceMs)
    if (this.#isOrderUnknown) this.#order(msOfDay, referenceMs)
    return this.#set(msOfDay)
  }

  /** The date that was read last. The year is 0 if only the time of day may be before it. */
  #year = 0
  #month = 0
  #day = 0
  /** The month and the day may have each other's place. */
  #isOrderUnknown = false
  #hasWeekday = false

  /**
   * Reads a date. Returns the offset of the time of day, or NOT_FOUND.
   *
   *   2026-11-20, 2026/11/20, 2026:11:20, 2026. 11. 20.
   *   20.11.2026, 20. 11. 26, 11/20/2026, 20-11-2026
   *   20-Nov-2026, 20/Nov/2026, 20-Nov-26, Fri, 20 Nov 2026
   *   Nov 20, Nov  5 2026, Nov 20, 2026, Fri Nov 20
   */
  #date(view: DataView, at: number, digits: number, end: number): number {
    this.#isOrderUnknown = false
    this.#hasWeekday = false
    let name = digits === at ? monthAt(view, at, end) : 0
    if (name === WEEKDAY) {
      this.#hasWeekday = true
      at = afterComma(view, nameEnd(view, at, end), end)
      digits = digitsEnd(view, at, end)
      name = digits === at ? monthAt(view, at, end) : 0
    }
    if (digits === at) return isMonth(name) ? this.#nameFirst(view, nameEnd(view, at, end), end, name) : NOT_FOUND
    if (digits + 1 >= end) return NOT_FOUND
    const month = digits - at <= 2 ? monthAt(view, digits + 1, end) : 0
    if (isMonth(month)) return this.#nameSecond(view, at, digits, end, month)
    return this.#hasWeekday ? NOT_FOUND : this.#numbers(view, at, digits, end)
  }

  #nameFirst(view: DataView, at: number, end: number, month: number): number {
    if (at >= end || view.getUint8(at) !== SPACE) return NOT_FOUND
    const dayAt = skipBlanks(view, at, end)
    const dayEnd = digitsEnd(view, dayAt, end)
    if (!this.#setDate(0, month, twoDigits(view, dayAt, dayEnd))) return NOT_FOUND
    const yearAt = afterComma(view, dayEnd, end)
    const yearEnd = digitsEnd(view, yearAt, end)
    if (yearEnd - yearAt !== 4) return timeAfter(view, dayEnd, end, false)
    this.#year = wholeNumberAt(view, yearAt, yearEnd)
    return timeAfter(view, yearEnd, end, false)
  }

  #nameSecond(view: DataView, at: number, digits: number, end: number, month: number): number {
    const yearAt = nameEnd(view, digits + 1, end) + 1
    const yearEnd = digitsEnd(view, yearAt, end)
    // Two digits and a colon are the hour of a time without a year.
    if (yearEnd < end && view.getUint8(yearEnd) === COLON && yearEnd - yearAt === 2) return NOT_FOUND
    if (!this.#setDate(yearOf(view, yearAt, yearEnd), month, twoDigits(view, at, digits))) return NOT_FOUND
    return timeAfter(view, yearEnd, end, true)
  }

  /** Three numbers with one separator, of which the first or the last is the year. */
  #numbers(view: DataView, at: number, digits: number, end: number): number {
    const separator = view.getUint8(digits)
    const isYearFirst = digits - at === 4
    const isDotted = separator === DOT
    if (separator !== HYPHEN && separator !== SLASH && !isDotted && !(separator === COLON && isYearFirst)) {
      return NOT_FOUND
    }
    const second = isDotted ? skipBlanks(view, digits + 1, end) : digits + 1
    const secondEnd = digitsEnd(view, second, end)
    if (secondEnd >= end || view.getUint8(secondEnd) !== separator) return NOT_FOUND
    const third = isDotted ? skipBlanks(view, secondEnd + 1, end) : secondEnd + 1
    const thirdEnd = digitsEnd(view, third, end)
    const middle = twoDigits(view, second, secondEnd)
    const isRead = isYearFirst
      ? this.#setDate(wholeNumberAt(view, at, digits), middle, twoDigits(view, third, thirdEnd))
      : this.#setDate(yearOf(view, third, thirdEnd), middle, twoDigits(view, at, digits))
    if (!isRead) return NOT_FOUND
    this.#isOrderUnknown = !isYearFirst && !isDotted
    // Of a truncated date, the rest may look like another date.
    return timeAfter(view, thirdEnd, end, isYearFirst || separator === SLASH, isDotted)
  }

  #setDate(year: number, month: number, day: number): boolean {
    this.#year = year
    this.#month = month
    this.#day = day
    return year >= 0 && month >= 0 && day >= 0
  }

  /** Lets the source decide which number is the month. */
  #order(msOfDay: number, referenceMs: number): void {
    const first = this.#day
    const second = this.#month
    const order = this.dayOrder.of(first, second, this.#year, msOfDay, this.#hasMeridiem, referenceMs)
    if (order === DayOrder.monthFirst) this.#setDate(this.#year, first, second)
  }

  /**
   * Reads the year after the time of day, as asctime writes it: `Nov 20 09:15:02 2026`. date(1) writes
   * the zone before the year: `Fri Nov 20 09:15:02 CET 2026`.
   */
  #yearAfter(view: DataView, end: number): boolean {
    const timeEnd = this.end
    let at = skipBlanks(view, timeEnd, end)
    if (at === timeEnd) return false
    let zoneEnd = at
    while (this.#hasWeekday && zoneEnd < end && isUpper(view.getUint8(zoneEnd))) zoneEnd++
    const hasZone = zoneEnd - at >= 3 && zoneEnd - at <= 5
    if (hasZone) at = skipBlanks(view, zoneEnd, end)
    const yearEnd = digitsEnd(view, at, end)
    const year = yearEnd - at === 4 ? wholeNumberAt(view, at, yearEnd) : 0
    if (year < 1970 || year >= 2200 || (yearEnd < end && isNameByte(view.getUint8(yearEnd)))) return false
    this.#year = year
    this.#offsetMs = 0
    if (hasZone) this.#zone(view, at)
    this.end = yearEnd
    if (!hasZone) this.#zone(view, end)
    return true
  }

  /**
   * 10 digits are seconds, 13 milliseconds, 16 microseconds, 19 nanoseconds; a double would lose
   * digits of the last.
   */
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

  /** Whether the last time of day had AM or PM. */
  #hasMeridiem = false

  /**
   * `9:15`, `09:15:02`, `9.15.02`, `09:15:02,123`, each with or without AM or PM. Returns milliseconds
   * of the day, NO_TIME or IMPOSSIBLE, and sets `end`.
   */
  #timeOfDay(view: DataView, at: number, end: number): number {
    this.#hasMeridiem = false
    const meridiem = meridiemAt(view, at, end)
    if (meridiem !== NOT_FOUND) at = afterWideBlank(view, at + meridiemBytes(meridiem), end)
    const hourEnd = digitsEnd(view, at, end)
    let hour = twoDigits(view, at, hourEnd)
    if (hour < 0 || hourEnd + 2 >= end) return NO_TIME
    const isDotted = isDottedTime(view, hourEnd, end)
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
        // A comma may begin a fraction or the next column. A fraction after a comma has exactly
        // three digits.
        const fractionEnd = digitsEnd(view, secondEnd + 1, end)
        if (next === DOT || (next === COMMA && fractionEnd - secondEnd === 4 && !isColumn(view, fractionEnd, end))) {
          fractionMs = this.#fraction(view, secondEnd + 1, end)
        }
      }
    }
    hour = meridiem === NOT_FOUND ? this.#withMeridiemAfter(view, end, hour) : this.#hourOf(meridiem, hour)
    // A leap second (RFC 3339 §5.7) counts as the second before it.
    if (second === 60) second = 59
    if (hour > 23 || minute > 59 || second > 59) return IMPOSSIBLE
    return hour * HOUR_MS + minute * MINUTE_MS + second * 1000 + fractionMs
  }

  /** The hour of the day, after reading AM or PM in any language, if there is one. */
  #withMeridiemAfter(view: DataView, end: number, hour: number): number {
    const at = afterWideBlank(view, this.end, end)
    const meridiem = meridiemAt(view, at, end)
    if (meridiem === NOT_FOUND) return hour
    const stop = at + meridiemBytes(meridiem)
    if (stop < end && isNameByte(view.getUint8(stop))) return hour
    this.end = stop
    return this.#hourOf(meridiem, hour)
  }

  #hourOf(meridiem: number, hour: number): number {
    this.#hasMeridiem = true
    return hour > 12 ? hour : (hour % 12) + (meridiem % 2 === 1 ? 12 : 0)
  }

  /** Milliseconds of a fraction of any number of digits. Sets `end`. */
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

  /**
   * `Z`, `UTC`, `GMT`, `+01:00`, `+1:00`, `+0100`, `+01`, also after `UTC` or `GMT`, after at most
   * one blank. Other zone names are ambiguous and not read.
   */
  #zone(view: DataView, end: number, isAlone = false): void {
    this.#offsetMs = 0
    let at = this.end
    if (at < end && view.getUint8(at) === SPACE) at++
    if (at >= end) return
    const first = view.getUint8(at)
    const isZulu = (first | 0x20) === LETTER_Z
    const isName = isLetter(first) && !isZulu
    const isUtc = isName && (textAtIgnoreCase(view, at, end, 'utc') || textAtIgnoreCase(view, at, end, 'gmt'))
    let stop = isUtc ? at + 3 : at
    let minutes = 0
    const sign = stop + 1 < end && isDigit(view.getUint8(stop + 1)) ? view.getUint8(stop) : 0
    if (sign === PLUS || sign === HYPHEN) {
      const hours = stop + 1
      stop = digitsEnd(view, hours, end)
      const length = stop - hours
      if (length === 4) {
        minutes = twoDigits(view, hours, hours + 2) * 60 + twoDigits(view, hours + 2, stop)
      } else {
        if (length > 2) return
        minutes = twoDigits(view, hours, stop) * 60
        const minutesEnd = stop < end && view.getUint8(stop) === COLON ? digitsEnd(view, stop + 1, end) : stop
        if (minutesEnd - stop === 3) {
          minutes += twoDigits(view, stop + 1, minutesEnd)
          stop = minutesEnd
        } else if (length === 1 && !isAlone && !isUtc) return
      }
    } else if (isZulu) stop = at + 1
    else if (!isUtc) return
    if (minutes > 18 * 60 || (stop < end && isNameByte(view.getUint8(stop)))) return
    this.#offsetMs = (sign === HYPHEN ? -minutes : minutes) * MINUTE_MS
    this.isLocal = false
    this.end = stop
  }

  /** The offset from UTC of a zone in a field of its own, in milliseconds; NaN if it is not known. */
  offsetOf(view: DataView, start: number, end: number): number {
    this.end = start
    this.isLocal = true
    this.#zone(view, end, true)
    return this.isLocal || this.end !== end ? Number.NaN : this.#offsetMs
  }

  #set(msOfDay: number): TimeFound {
    const ms = this.#msOf(this.#year, msOfDay)
    if (Number.isNaN(ms)) return TimeFound.impossible
    this.ms = ms
    return TimeFound.found
  }

  /** The time in this year, or NaN if the year has no such day. */
  #msOf(year: number, msOfDay: number): number {
    const month = this.#month
    const day = this.#day
    const date = (year * 100 + month) * 100 + day
    // Most messages have the date of the message before.
    if (date !== this.#lastDate) {
      this.#lastDate = date
      const isValid = month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month)
      this.#lastDateMs = isValid ? daysSince1970(year, month, day) * DAY_MS : Number.NaN
    }
    return this.#lastDateMs + msOfDay - this.#offsetMs
  }
  #lastDate = 0
  #lastDateMs = Number.NaN

  /**
   * RFC 3164 has no year: the latest year in which the time is at most AHEAD_MS_MAX after the
   * reference.
   */
  #nearestYear(msOfDay: number, referenceMs: number): TimeFound {
    // Computed once for many messages: the year of the reference seldom changes. A day more, for zones.
    const latestMs = referenceMs + AHEAD_MS_MAX + DAY_MS
    if (latestMs < this.#yearStartMs || latestMs >= this.#yearEndMs) {
      this.#latestYear = new Date(latestMs).getUTCFullYear()
      this.#yearStartMs = Date.UTC(this.#latestYear, 0, 1)
      this.#yearEndMs = Date.UTC(this.#latestYear + 1, 0, 1)
    }
    for (let year = this.#latestYear; year >= this.#latestYear - 4; year--) {
      const ms = this.#msOf(year, msOfDay)
      if (!(ms <= referenceMs + AHEAD_MS_MAX)) continue
      this.ms = ms
      return TimeFound.found
    }
    return TimeFound.impossible
  }
  #latestYear = 0
  #yearStartMs = 0
  #yearEndMs = 0
}

const NAMES =
  'january february march april may june july august september october november december monday tuesday wednesday thursday friday saturday sunday'.split(
    ' ',
  )
const FULL_NAMES = new KeyTable(Object.fromEntries(NAMES.map((name, index) => [name, index])))
const MONTHS = 12

/** monthAt returns this for the name of a weekday. */
const WEEKDAY = 20
/** Three letters, five bits each, to the number of the month (from 1), or WEEKDAY. */
const MONTH_OF = new Uint8Array(1 << 15)
for (const [index, name] of NAMES.entries()) {
  const key = nameKey(name.charCodeAt(0), name.charCodeAt(1), name.charCodeAt(2))
  MONTH_OF[key] = index < MONTHS ? index + 1 : WEEKDAY
}

function nameKey(first: number, second: number, third: number): number {
  return ((first & 31) << 10) | ((second & 31) << 5) | (third & 31)
}

function isMonth(name: number): boolean {
  return name > 0 && name < WEEKDAY
}

/**
 * The month whose English name begins with the three letters at `at`, from 1; WEEKDAY for a
 * weekday; else 0.
 */
function monthAt(view: DataView, at: number, end: number): number {
  if (at + 3 > end) return 0
  const first = view.getUint8(at)
  const second = view.getUint8(at + 1)
  const third = view.getUint8(at + 2)
  if (!isLetter(first) || !isLetter(second) || !isLetter(third)) return 0
  return MONTH_OF[nameKey(first, second, third)] ?? 0
}

/** The end of a month's or weekday's name: three letters, or the whole name in English. */
function nameEnd(view: DataView, at: number, end: number): number {
  let stop = at
  while (stop < end && isLetter(view.getUint8(stop))) stop++
  return FULL_NAMES.find(view, at, stop) >= 0 ? stop : at + 3
}

const NO_TIME = -1
const IMPOSSIBLE = -2

/** The number of one or two digits, or NOT_FOUND. */
function twoDigits(view: DataView, start: number, end: number): number {
  if (end - start === 2) return (view.getUint8(start) - 0x30) * 10 + view.getUint8(start + 1) - 0x30
  return end - start === 1 ? view.getUint8(start) - 0x30 : NOT_FOUND
}

/** A year of four digits, or of two in this century; else NOT_FOUND. */
function yearOf(view: DataView, start: number, end: number): number {
  const year = wholeNumberAt(view, start, end)
  if (end - start === 4) return year
  return end - start === 2 ? year + 2000 : NOT_FOUND
}

function isNameByte(byte: number): boolean {
  return isDigit(byte) || isLetter(byte) || byte === DOT || byte === COLON
}

/** The offset after a comma, if there is one, and blanks. */
function afterComma(view: DataView, at: number, end: number): number {
  return skipBlanks(view, at < end && view.getUint8(at) === COMMA ? at + 1 : at, end)
}

/**
 * The offset of the time of day after a date that ends at `at`: after blanks or a comma, or with
 * `mayBeJoined` after a `T`, a colon or a hyphen. Or NOT_FOUND.
 */
function timeAfter(view: DataView, at: number, end: number, mayBeJoined: boolean, isDotted = false): number {
  if (at >= end) return NOT_FOUND
  const byte = view.getUint8(at)
  if ((byte & 0xdf) === LETTER_T || byte === COLON || byte === HYPHEN) return mayBeJoined ? at + 1 : NOT_FOUND
  // Hungarian, Korean and Serbian: `2026. 11. 20. 9:15:02`.
  let next = afterComma(view, isDotted && byte === DOT ? at + 1 : at, end)
  if (next === at) return NOT_FOUND
  if (next < end && isDigit(view.getUint8(next))) return next
  // Kibana writes `@` before the time, Bulgarian `г.` after the year.
  if (next < end && view.getUint8(next) === AT) next = skipBlanks(view, next + 1, end)
  return isWordAt(view, next, end, BULGARIAN_YEAR) ? skipBlanks(view, next + BULGARIAN_YEAR.length, end) : next
}

/** The offset after one blank, if there is one: ASCII, U+00A0, or the U+202F of recent Windows. */
function afterWideBlank(view: DataView, at: number, end: number): number {
  if (at >= end) return at
  const first = view.getUint8(at)
  if (first === SPACE) return at + 1
  if (first === 0xc2 && at + 1 < end && view.getUint8(at + 1) === 0xa0) return at + 2
  return first === 0xe2 && at + 2 < end && view.getUint16(at + 1) === 0x80af ? at + 3 : at
}

/** Whether `.15.02` follows the hour, and not the rest of an address. */
function isDottedTime(view: DataView, hourEnd: number, end: number): boolean {
  const stop = hourEnd + 6
  if (stop > end || view.getUint8(hourEnd) !== DOT || view.getUint8(hourEnd + 3) !== DOT) return false
  if (digitsEnd(view, hourEnd + 1, end) !== hourEnd + 3 || digitsEnd(view, hourEnd + 4, end) !== stop) return false
  return stop === end || !isNameByte(view.getUint8(stop))
}

/** Whether a comma or a dot follows the digits, which are then a column of their own. */
function isColumn(view: DataView, at: number, end: number): boolean {
  return at < end && (view.getUint8(at) === COMMA || view.getUint8(at) === DOT)
}

/**
 * The words for AM and PM, in bytes and alternating. In Spanish they have dots and blanks; in East
 * Asia they are written before the time.
 */
const MERIDIEM_WORDS: readonly Uint8Array[] = [
  ...['a.m.', 'p.m.', 'a. m.', 'p. m.', 'a.\u00a0m.', 'p.\u00a0m.', 'a.\u202fm.', 'p.\u202fm.'],
  ...['am', 'pm', 'πμ', 'μμ', 'π.μ.', 'μ.μ.', '오전', '오후', '上午', '下午', '午前', '午後', 'ص', 'م'],
].map((word) => new TextEncoder().encode(word))
/** 1 for each byte that one of these words begins with. */
const MERIDIEM_STARTS = new Uint8Array(256)
for (const word of MERIDIEM_WORDS) for (const byte of [word[0] ?? 0, (word[0] ?? 0) & 0xdf]) MERIDIEM_STARTS[byte] = 1
MERIDIEM_STARTS[0] = 0

/** The number of the word for AM (even) or PM (odd) at `at`, letters in any case, or NOT_FOUND. */
function meridiemAt(view: DataView, at: number, end: number): number {
  if (at + 1 >= end || MERIDIEM_STARTS[view.getUint8(at)] !== 1) return NOT_FOUND
  // Many host names begin with `a` or `p`, and the host name follows the time.
  const second = view.getUint8(at + 1)
  if (second < 0x80 && second !== DOT && (second | 0x20) !== 0x6d) return NOT_FOUND
  for (let index = 0; index < MERIDIEM_WORDS.length; index++) {
    const word = MERIDIEM_WORDS[index]
    if (word !== undefined && isWordAt(view, at, end, word)) return index
  }
  return NOT_FOUND
}

/** Length in bytes of the word that meridiemAt found. */
function meridiemBytes(meridiem: number): number {
  return MERIDIEM_WORDS[meridiem]?.length ?? 0
}

/** Bulgarian writes `г.` after the year. */
const BULGARIAN_YEAR = new TextEncoder().encode('г.')

/** Whether these bytes are at `at`, ASCII letters in any case. `word` is lower case. */
function isWordAt(view: DataView, at: number, end: number, word: Uint8Array): boolean {
  if (at + word.length > end) return false
  for (let index = 0; index < word.length; index++) {
    const byte = view.getUint8(at + index)
    if ((isUpper(byte) ? byte | 0x20 : byte) !== word[index]) return false
  }
  return true
}

/** Days of a month, from 1 to 12. */
function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/**
 * Days from 1970-01-01 to a day of the proleptic Gregorian calendar. March counts as the first
 * month of the year, so that the leap day is the last day.
 */
function daysSince1970(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year
  const era = Math.floor(y / 400)
  const yearOfEra = y - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}

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
