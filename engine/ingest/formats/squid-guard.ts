import { Action } from './action.ts'
import {
  CLOSE_BRACKET,
  digitsEnd,
  indexOfByte,
  isDigit,
  isText,
  NOT_FOUND,
  OPEN_BRACKET,
  SLASH,
  SPACE,
  skipBlanks,
  textAt,
  tokenEnd,
  trimEnd,
} from './bytes.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { takeUser, UserForm } from './user-name.ts'

/*
 * The log of squidGuard, a redirector for Squid, with the requests that it redirected:
 *
 *   2026-11-20 09:15:02 [31] Request(source/category/-) url client/name user method REDIRECT
 *
 * http://www.squidguard.org/Doc/configure.html
 */
export const squidGuard: LogFormat = { id: 'squid-guard', detect, parse, takeUserAndBytes }

const TIME_BYTES = '2026-11-20 09:15:02'.length
const REQUEST = 'Request('
/** Beginnings of messages about squidGuard itself. */
const SYSTEM_EVENTS = [
  'squidGuard',
  'init ',
  'loading ',
  'New setting',
  'Added User',
  'Going into',
  'Warning:',
  'syntax error',
]

function detect({ view }: LogLine, start: number, end: number): boolean {
  const body = bodyAt(view, start, end)
  if (body < 0) return false
  if (textAt(view, body, end, REQUEST)) return true
  for (let index = 0; index < SYSTEM_EVENTS.length; index++) {
    if (textAt(view, body, end, SYSTEM_EVENTS[index] ?? '')) return true
  }
  return false
}

function parse(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const body = bodyAt(view, start, end)
  if (!textAt(view, body, end, REQUEST)) return Verdict.skip
  if (line.takeTime(start, start + TIME_BYTES) === TimeFound.impossible) {
    return line.reject('time: expected a valid date and time')
  }
  const url = skipBlanks(view, tokenEnd(view, body, end), end)
  const urlEnd = tokenEnd(view, url, end)
  const client = skipBlanks(view, urlEnd, end)
  const clientEnd = indexOfByte(view, client, tokenEnd(view, client, end), SLASH)
  if (clientEnd < 0) return line.reject('client: expected an address, a slash and a name')
  line.takeClient(client, clientEnd)
  addressEnd = clientEnd
  messageEnd = end
  const last = trimEnd(view, clientEnd, end)
  line.action = isText(view, last - 4, last, 'PASS') ? Action.allowed : Action.blocked
  return view.getUint8(url) === SLASH ? Verdict.noDomain : line.takeHost(url, urlEnd)
}

/** Offsets in the message that parse read last. */
let addressEnd = 0
let messageEnd = 0

function takeUserAndBytes(line: LogLine): void {
  const { view } = line
  const user = skipBlanks(view, tokenEnd(view, addressEnd, messageEnd), messageEnd)
  const userEnd = tokenEnd(view, user, messageEnd)
  // The method follows the user.
  if (userEnd < messageEnd) takeUser(line, user, userEnd, UserForm.percent)
}

/** The offset after the time and the process number in brackets, or NOT_FOUND. */
function bodyAt(view: DataView, start: number, end: number): number {
  const bracket = start + TIME_BYTES + 1
  if (bracket + 4 > end || !isDigit(view.getUint8(start)) || view.getUint8(bracket) !== OPEN_BRACKET) return NOT_FOUND
  const close = digitsEnd(view, bracket + 1, end)
  if (close === bracket + 1 || close + 1 >= end) return NOT_FOUND
  return view.getUint8(close) === CLOSE_BRACKET && view.getUint8(close + 1) === SPACE ? close + 2 : NOT_FOUND
}
