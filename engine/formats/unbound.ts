import { Action, actionOf } from './action.ts'
import {
  AT,
  CLOSE_BRACKET,
  COLON,
  DOT,
  digitsEnd,
  hexDigit,
  indexOfByte,
  isDigit,
  isText,
  KeyTable,
  NOT_FOUND,
  OPEN_BRACKET,
  SPACE,
  skipBlanks,
  TextSearch,
  textAt,
  tokenEnd,
} from './bytes.ts'
import { AddressKind, addressKind } from './ip-address.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Verdict, writesQueries } from './log-line.ts'
import { TimeFound } from './log-time.ts'

/*
 * The log of unbound, with log-queries, log-replies, log-tag-queryreply and log-local-actions:
 *
 *   [time ]unbound[pid:tid] info: CLIENT NAME. TYPE CLASS                         a query
 *   ...            info: CLIENT NAME. TYPE CLASS RCODE SECONDS CACHED SIZE        a reply
 *   ...            info: [ZONE. ]ACTION CLIENT@PORT NAME. TYPE CLASS              an action
 *   ...            info: rpz: applied [ZONE] TRIGGER. ACTION CLIENT@PORT NAME. TYPE CLASS
 *
 * The level of a query may be `query:`, of a reply `reply:`. The action is a local zone's or a response policy zone's.
 * Times in files are seconds since 1970 in brackets, or local without a year. In syslog, the tag
 * has a pid of its own: `unbound[pid]: [pid:tid] `.
 * https://nlnetlabs.nl/documentation/unbound/unbound.conf/
 */
export const unbound: LogFormat = { id: 'unbound', read }

const Level = { info: 0, query: 1, reply: 2, systemEvent: 3 } as const
const LEVELS = new KeyTable({
  'info:': Level.info,
  'query:': Level.query,
  'reply:': Level.reply,
  'error:': Level.systemEvent,
  'notice:': Level.systemEvent,
  'warning:': Level.systemEvent,
  'debug:': Level.systemEvent,
  fatal: Level.systemEvent,
})
const LEVEL_BYTES_MAX = 8
/** Actions of a response policy zone without which a client would have had another answer. */
const BLOCKING_POLICIES = new KeyTable({
  ...{ 'rpz-nxdomain': 0, 'rpz-nodata': 0, 'rpz-drop': 0, 'rpz-local-data': 0, 'rpz-cname-override': 0 },
})
const WORDS_BEFORE_CLIENT_MAX = 5
const TAG = new TextSearch('unbound')
/** OPNsense's tag. */
const RESOLVER = 'Unbound Resolver: '
/** The tag and remnants of relays' headers. */
const PREFIX_BYTES_MAX = 160

function read(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const at = levelAt(view, start, end)
  if (at < 0) return isTagged(view, start, end) ? Verdict.skip : Verdict.unknown
  const stop = tokenEnd(view, at, end)
  const level = LEVELS.find(view, at, stop)
  if (level === Level.systemEvent) return Verdict.skip
  const timeAt = view.getUint8(start) === OPEN_BRACKET ? start + 1 : start
  if (line.takeTimeIfAny(timeAt, at) === TimeFound.impossible) return line.rejectTime()
  const client = skipBlanks(view, stop, end)
  const clientEnd = tokenEnd(view, client, end)
  if (line.takeClient(client, clientEnd)) return takeQuestion(line, level, skipBlanks(view, clientEnd, end), end)
  return level === Level.info ? takeLocalAction(line, client, end) : line.reject('client: expected an address')
}

/** `NAME. TYPE CLASS`; in a reply, the answer's code follows. */
function takeQuestion(line: LogLine, level: number, name: number, end: number): Verdict {
  const { view } = line
  const nameEnd = tokenEnd(view, name, end)
  if (nameEnd === name || view.getUint8(nameEnd - 1) !== DOT) return line.reject('name: expected a trailing dot')
  const type = skipBlanks(view, nameEnd, end)
  const classAt = skipBlanks(view, tokenEnd(view, type, end), end)
  const classEnd = tokenEnd(view, classAt, end)
  if (!isText(view, classAt, classEnd, 'IN')) {
    return classEnd === classAt ? line.reject('class: expected IN after the type') : Verdict.skip
  }
  const code = skipBlanks(view, classEnd, end)
  const isReply = level === Level.reply || (level === Level.info && code < end)
  if (isReply) {
    if (writesQueries(line.memory.unboundQueryMs, line.referenceMs)) return Verdict.skip
    line.action = actionOf(view, code, tokenEnd(view, code, end))
  } else if (classEnd === end) {
    // With a trailing blank, the line is a truncated reply.
    line.memory.unboundQueryMs = line.referenceMs
    line.isQuestion = true
  }
  return line.takeName(name, nameEnd)
}

/**
 * A local zone's action repeats a query. Without query lines, a refusal is the only record of the
 * query.
 */
function takeLocalAction(line: LogLine, at: number, end: number): Verdict {
  const { view } = line
  // Before the action may be a zone, or `rpz: applied [ZONE] TRIGGER.`
  for (let word = 0; word < WORDS_BEFORE_CLIENT_MAX; word++) {
    const stop = tokenEnd(view, at, end)
    const client = skipBlanks(view, stop, end)
    const clientEnd = tokenEnd(view, client, end)
    const mark = indexOfByte(view, client, clientEnd, AT)
    if (mark > 0 && addressKind(view, client, mark) !== AddressKind.none) {
      if (actionOf(view, at, stop) !== Action.blocked && BLOCKING_POLICIES.find(view, at, stop) < 0) return Verdict.skip
      line.takeClient(client, mark)
      const name = skipBlanks(view, clientEnd, end)
      const nameEnd = tokenEnd(view, name, end)
      if (nameEnd === name || view.getUint8(nameEnd - 1) !== DOT) return line.reject('name: expected a trailing dot')
      if (writesQueries(line.memory.unboundQueryMs, line.referenceMs)) return line.refuseName(name, nameEnd)
      line.action = Action.blocked
      return line.takeName(name, nameEnd)
    }
    at = client
  }
  return Verdict.skip
}

/**
 * The offset of the level: after `[pid:tid] `, or at the start if a relay removed the prefix and an
 * address follows. Or NOT_FOUND.
 */
function levelAt(view: DataView, start: number, end: number): number {
  const limit = Math.min(end, start + PREFIX_BYTES_MAX)
  // Without its tag, the message begins with the process; a line of a file begins with the time.
  // Both are in brackets.
  const isBracketed = start < end && view.getUint8(start) === OPEN_BRACKET
  const tag = textAt(view, start, end, RESOLVER) ? start : TAG.find(view, start, limit)
  for (let at = isBracketed ? start : tag; at >= 0 && at < limit; at++) {
    if (view.getUint8(at) !== OPEN_BRACKET) continue
    const level = afterThread(view, at, end)
    if (level >= 0 && isLevel(view, level, end)) return level
  }
  if (!isLevel(view, start, end)) return NOT_FOUND
  const client = skipBlanks(view, tokenEnd(view, start, limit), limit)
  const clientEnd = tokenEnd(view, client, limit)
  if (addressKind(view, client, clientEnd) === AddressKind.none) return NOT_FOUND
  const nameEnd = tokenEnd(view, skipBlanks(view, clientEnd, end), Math.min(end, start + 2 * CUE_BYTES))
  return view.getUint8(nameEnd - 1) === DOT ? start : NOT_FOUND
}

/** The offset after `[pid:tid] `, with the thread in hex, or NOT_FOUND. */
function afterThread(view: DataView, bracket: number, end: number): number {
  let at = digitsEnd(view, bracket + 1, end)
  if (at === bracket + 1 || at >= end || view.getUint8(at) !== COLON) return NOT_FOUND
  at++
  const thread = at
  while (at < end && hexDigit(view.getUint8(at)) >= 0) at++
  if (at === thread || at + 1 >= end || view.getUint8(at) !== CLOSE_BRACKET) return NOT_FOUND
  return view.getUint8(at + 1) === SPACE ? at + 2 : NOT_FOUND
}

function isLevel(view: DataView, at: number, end: number): boolean {
  const stop = tokenEnd(view, at, Math.min(end, at + LEVEL_BYTES_MAX))
  return stop > at && !isDigit(view.getUint8(at)) && LEVELS.find(view, at, stop) >= 0
}

/** `unbound[4242]: ` before any other text. */
function isTagged(view: DataView, start: number, end: number): boolean {
  const at = TAG.find(view, start, Math.min(end, start + PREFIX_BYTES_MAX))
  return at >= 0 && textAt(view, at, end, 'unbound[') && (at === start || view.getUint8(at - 1) === SPACE)
}
