import { Action, actionOf } from './action.ts'
import {
  AT,
  COLON,
  DOT,
  digitsEnd,
  HEX_SET,
  indexOfByte,
  isDigit,
  isText,
  KeyTable,
  NOT_FOUND,
  OPEN_BRACKET,
  skipBlanks,
  TextSearch,
  tagAt,
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
/** Remnants of relays' headers. */
const PREFIX_BYTES_MAX = 160
const TAG_BYTES_MAX = 64

function read(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const tag = ownTagAt(view, start, end)
  const header = tag < 0 ? TimeFound.none : line.takeHeader(start, tag)
  // A name may be `unbound`, too.
  const isTagged = header !== TimeFound.none
  const at = isTagged ? levelAfterTag(view, tag, end) : levelAt(view, start, end)
  if (at < 0) return isTagged && textAt(view, tag, end, 'unbound[') ? Verdict.skip : Verdict.unknown
  const stop = tokenEnd(view, at, end)
  const level = LEVELS.find(view, at, stop)
  if (level === Level.systemEvent) return Verdict.skip
  if (header === TimeFound.impossible) return line.rejectTime()
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

/** The offset of the tag `unbound` or OPNsense's, or NOT_FOUND. */
function ownTagAt(view: DataView, start: number, end: number): number {
  return textAt(view, start, end, RESOLVER) ? start : tagAt(view, TAG, start, Math.min(end, start + PREFIX_BYTES_MAX))
}

/** The offset of the level after `unbound[pid:tid] `, `unbound[pid]: [pid:tid] ` or the like, or NOT_FOUND. */
function levelAfterTag(view: DataView, tag: number, end: number): number {
  const limit = Math.min(end, tag + TAG_BYTES_MAX)
  const tagEnd = textAt(view, tag, end, RESOLVER) ? tag + RESOLVER.length - 1 : tokenEnd(view, tag, limit)
  const level = levelAfter(view, indexOfByte(view, tag, tagEnd, OPEN_BRACKET), end)
  return level >= 0 ? level : levelAfter(view, skipBlanks(view, tagEnd, end), end)
}

/** The offset of the level where a relay removed the tag, or the thread, too, if an address follows. Or NOT_FOUND. */
function levelAt(view: DataView, start: number, end: number): number {
  const level = levelAfter(view, start, end)
  if (level >= 0) return level
  if (!isLevel(view, start, end)) return NOT_FOUND
  const limit = Math.min(end, start + 2 * CUE_BYTES)
  const client = skipBlanks(view, tokenEnd(view, start, limit), limit)
  const clientEnd = tokenEnd(view, client, limit)
  if (addressKind(view, client, clientEnd) === AddressKind.none) return NOT_FOUND
  const nameEnd = tokenEnd(view, skipBlanks(view, clientEnd, limit), limit)
  return view.getUint8(nameEnd - 1) === DOT ? start : NOT_FOUND
}

/** The offset of the level after `[pid:tid] ` at `bracket`, with the thread in hex, or NOT_FOUND. */
function levelAfter(view: DataView, bracket: number, end: number): number {
  if (bracket < 0 || !textAt(view, bracket, end, '[')) return NOT_FOUND
  let at = digitsEnd(view, bracket + 1, end)
  if (at === bracket + 1 || at >= end || view.getUint8(at) !== COLON) return NOT_FOUND
  const thread = at + 1
  at = HEX_SET.endOf(view, thread, end)
  return at > thread && textAt(view, at, end, '] ') && isLevel(view, at + 2, end) ? at + 2 : NOT_FOUND
}

function isLevel(view: DataView, at: number, end: number): boolean {
  const stop = tokenEnd(view, at, Math.min(end, at + LEVEL_BYTES_MAX))
  return stop > at && !isDigit(view.getUint8(at)) && LEVELS.find(view, at, stop) >= 0
}
