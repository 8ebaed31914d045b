import { isUserName, USER_BYTES_MAX } from '../kernel/event/event.ts'
import {
  BACKSLASH,
  COLON,
  EQUALS,
  HEX_SET,
  hexDigit,
  isSameText,
  KeyTable,
  NO_KEY,
  PERCENT,
  QUOTE,
  SLASH,
  skipBlanks,
  textAtIgnoreCase,
  trimEnd,
  wordsOf,
} from './bytes.ts'
import { AddressKind, addressKind, endBeforePort } from './ip-address.ts'
import { writeJsonText } from './json.ts'
import type { LogLine } from './log-line.ts'

/*
 * The user's name in a log: `jdoe`, `CORP\jdoe`, `jdoe@example.com`, `CN=Jane Doe,DC=example`. It
 * stays as the device wrote it, without the escapes of the format, so that the same user has one
 * name in the logs of different devices.
 */

/** Escapes that only some formats have. */
export const UserForm = { text: 0, percent: 1, json: 2 } as const
export type UserForm = (typeof UserForm)[keyof typeof UserForm]

/** Words that devices write if no user is known, and beginnings of other such texts. */
const ABSENT_WORDS = [
  ...['-', '--', '*', 'n/a', 'na', 'none', 'null', '(null)', 'nil', 'undefined', 'empty', '(empty)'],
  ...['unknown', 'notavailable', 'notchecked', 'anonymous', 'unauthenticated', 'unauthenticated user'],
]
const ABSENT_BEGINNINGS = ['unknown (', 'unknown user', 'no authentication', 'x-fwd-for'] as const
const ABSENT = new KeyTable(wordsOf(0, ABSENT_WORDS))
/** 1 for each byte with which one of these begins: most names begin with another. */
const ABSENT_FIRST = new Uint8Array(256)
for (const word of [...ABSENT_WORDS, ...ABSENT_BEGINNINGS])
  for (const first of [word, word.toUpperCase()]) ABSENT_FIRST[first.charCodeAt(0)] = 1

/**
 * Takes the user from a field. Returns false and keeps the previous user if the field names none:
 * it has a word for an absent value, or the address of a client without a user.
 */
export function takeUser(line: LogLine, start: number, end: number, form: UserForm = UserForm.text): boolean {
  const { view } = line
  start = skipBlanks(view, start, end)
  end = trimEnd(view, start, end)
  if (!namesUser(view, start, end)) return false
  line.userStart = start
  line.userEnd = end
  line.userForm = form
  return true
}

/** Removes the user if it is the text in [start, end), another field of the message. */
export function dropUserIf(line: LogLine, start: number, end: number): void {
  const { view, userStart, userEnd } = line
  if (isSameText(view, start, end, userStart, userEnd)) line.userEnd = userStart
}

function namesUser(view: DataView, start: number, end: number): boolean {
  if (start >= end) return false
  const first = view.getUint8(start)
  if (ABSENT_FIRST[first] === 1 && isAbsent(view, start, end)) return false
  if (first !== COLON && hexDigit(first) < 0) return true
  return addressKind(view, start, endBeforePort(view, start, end)) === AddressKind.none
}

function isAbsent(view: DataView, start: number, end: number): boolean {
  return (
    ABSENT.find(view, start, end) !== NO_KEY ||
    ABSENT_BEGINNINGS.some((beginning) => textAtIgnoreCase(view, start, end, beginning))
  )
}

/** How a field was taken as a user's name. */
const UserFound = { none: 0, whole: 1, truncated: 2, refused: 3 } as const
type UserFound = (typeof UserFound)[keyof typeof UserFound]

/** Names that were not taken as they are, since the start. */
export class UserCounts {
  truncated = 0
  refused = 0

  count(found: UserFound): void {
    if (found === UserFound.truncated) this.truncated++
    else if (found === UserFound.refused) this.refused++
  }
}

/** The form of one byte: itself, part of an escape, of UTF-8, or of no name. */
const Form = { plain: 0, escape: 1, high: 2, control: 3 } as const
const FORMS = new Uint8Array(256)
FORMS.fill(Form.control, 0, 0x20)
FORMS[0x7f] = Form.control
FORMS.fill(Form.high, 0x80)
for (const byte of [BACKSLASH, QUOTE, PERCENT]) FORMS[byte] = Form.escape

/**
 * Takes the user and the byte counts of an event. The user's name is without escapes, at most
 * USER_BYTES_MAX bytes. A name that needs no change stays where it is; others are written to the
 * line's scratch area. Refused: a name with control characters or in another encoding than UTF-8,
 * so that the line has no user.
 */
export function readUserAndBytes(line: LogLine): UserFound {
  line.takeUserAndBytes?.(line)
  const { view, userStart, userEnd } = line
  if (userStart === userEnd) return UserFound.none
  let forms = 0
  for (let at = userStart; at < userEnd && at < userStart + USER_BYTES_MAX; at++) {
    forms |= 1 << (FORMS[view.getUint8(at)] ?? Form.control)
  }
  if (forms === 1 << Form.plain && userEnd - userStart <= USER_BYTES_MAX) return UserFound.whole
  const found = writeUser(line)
  if (found === UserFound.refused) line.userEnd = line.userStart
  return found
}

function writeUser(line: LogLine): UserFound {
  const { bytes, view, userScratchStart: start } = line
  const last = start + USER_BYTES_MAX
  let at = line.userStart
  let out = start
  while (at < line.userEnd && out <= last) {
    const length = escapeLength(line, at)
    if (length === UNICODE_ESCAPE_BYTES) out = writeJsonText(bytes, at, at + length, out)
    else if (length === 3) bytes[out++] = hexDigit(view.getUint8(at + 1)) * 16 + hexDigit(view.getUint8(at + 2))
    else bytes[out++] = bytes[at + length - 1] ?? 0
    at += length
  }
  const isTruncated = out > last
  if (isTruncated) {
    out = last
    // Not in the middle of a character (RFC 3629 §3).
    while (out > start && ((bytes[out] ?? 0) & 0xc0) === 0x80) out--
  }
  line.userStart = start
  line.userEnd = out
  if (!isUserName(line.text(start, out))) return UserFound.refused
  return isTruncated ? UserFound.truncated : UserFound.whole
}

/** `\u00fc` of JSON. */
const UNICODE_ESCAPE_BYTES = 6
const LOWER_U = 0x75

/**
 * The length of the escape at `at`, or 1 for a byte that means itself. Backslashes also separate
 * the domain from the user, and few formats escape them: only a backslash before a backslash, a
 * quote, a slash or an equals sign is an escape. Doubled quotes are CSV's.
 */
function escapeLength(line: LogLine, at: number): number {
  const { view, userEnd } = line
  const byte = view.getUint8(at)
  if (FORMS[byte] !== Form.escape || at + 1 >= userEnd) return 1
  const next = view.getUint8(at + 1)
  if (byte === QUOTE) return next === QUOTE ? 2 : 1
  if (byte === BACKSLASH) {
    if (
      line.userForm === UserForm.json &&
      next === LOWER_U &&
      at + 6 <= userEnd &&
      HEX_SET.hasAll(view, at + 2, at + 6)
    ) {
      return UNICODE_ESCAPE_BYTES
    }
    return ESCAPED.includes(next) ? 2 : 1
  }
  return line.userForm === UserForm.percent && at + 3 <= userEnd && HEX_SET.hasAll(view, at + 1, at + 3) ? 3 : 1
}
const ESCAPED = [BACKSLASH, QUOTE, SLASH, EQUALS]
