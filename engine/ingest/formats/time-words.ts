import { DOT, isLetter, isUpper, NOT_FOUND } from './bytes.ts'

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'] as const
const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const
/** monthAt returns this for the name of a weekday. */
export const WEEKDAY = 20
/** Three letters, five bits each, to the number of the month (from 1), or WEEKDAY. */
const NAMES = new Uint8Array(1 << 15)
for (const [index, month] of MONTHS.entries()) NAMES[nameKey(...codesOf(month))] = index + 1
for (const weekday of WEEKDAYS) NAMES[nameKey(...codesOf(weekday))] = WEEKDAY

function codesOf(text: string): [number, number, number] {
  return [text.charCodeAt(0), text.charCodeAt(1), text.charCodeAt(2)]
}

function nameKey(first: number, second: number, third: number): number {
  return ((first & 31) << 10) | ((second & 31) << 5) | (third & 31)
}

/**
 * The month whose English name begins with the three letters at `at`, from 1; WEEKDAY for a
 * weekday; else 0.
 */
export function monthAt(view: DataView, at: number, end: number): number {
  if (at + 3 > end) return 0
  const first = view.getUint8(at)
  const second = view.getUint8(at + 1)
  const third = view.getUint8(at + 2)
  if (!isLetter(first) || !isLetter(second) || !isLetter(third)) return 0
  return NAMES[nameKey(first, second, third)] ?? 0
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
export function meridiemAt(view: DataView, at: number, end: number): number {
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
export function meridiemBytes(meridiem: number): number {
  return MERIDIEM_WORDS[meridiem]?.length ?? 0
}

/** Bulgarian writes `г.` after the year. */
const BULGARIAN_YEAR = new TextEncoder().encode('г.')

/** The offset after the word for "year" at `at`, or `at` if there is none. */
export function afterYearWord(view: DataView, at: number, end: number): number {
  return isWordAt(view, at, end, BULGARIAN_YEAR) ? at + BULGARIAN_YEAR.length : at
}

/** Whether these bytes are at `at`, ASCII letters in any case. `word` is lower case. */
function isWordAt(view: DataView, at: number, end: number, word: Uint8Array): boolean {
  if (at + word.length > end) return false
  for (let index = 0; index < word.length; index++) {
    const byte = view.getUint8(at + index)
    if ((isUpper(byte) ? byte | 0x20 : byte) !== word[index]) return false
  }
  return true
}
