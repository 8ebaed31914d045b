import { Action, actionOf, isNullAddress } from './action.ts'
import {
  digitsEnd,
  HASH,
  HYPHEN,
  indexOfByte,
  isDigit,
  isText,
  isTextIgnoreCase,
  KeyTable,
  lastIndexOfByte,
  NOT_FOUND,
  OPEN_PARENTHESIS,
  SEMICOLON,
  SLASH,
  SPACE,
  skipBlanks,
  TextPrefixes,
  TextSearch,
  textAt,
  tokenEnd,
  wordsOf,
} from './bytes.ts'
import { AddressKind, addressKind } from './ip-address.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Mark, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'

/*
 * The query log of all BIND versions and of products built on BIND (Infoblox, EfficientIP):
 *
 *   [time ][category: ][severity: ]client [@0xHEX ]ADDRESS#PORT[/key NAME][ (QNAME)]:
 *     [view NAME: ]query: NAME CLASS TYPE FLAGS[ (SERVER)]
 *   ... client ADDRESS#PORT[:] UDP: query: NAME CLASS TYPE response: RCODE FLAGS    (Infoblox)
 *   ... client ADDRESS#PORT (QNAME): [view NAME: ]rpz KIND POLICY rewrite NAME/TYPE/CLASS via ZONE
 *
 * The last is of a response policy zone, which answered in place of the name's servers.
 *
 * The name is the one after `query:`. The name in parentheses differs after a rewrite and may
 * itself be `query:`, so the parser walks the words instead of searching.
 * https://bind9.readthedocs.io/en/latest/reference.html#the-query-log-message
 */
export const bindQuery: LogFormat = { id: 'bind-query', read }

const CLIENT = 'client '
/** An address, a port and the number sign before a key. */
const ADDRESS_TOKEN_BYTES_MAX = 128
/** `@0x...`, a key, the name in parentheses, a view and a protocol, each with its value. */
const WORDS_BEFORE_QUERY_MAX = 12
/** An ISO time is one word; other times are two words. */
const DATE_AND_TIME_BYTES_MIN = 16
const TAG_BYTES_MAX = 96

const Word = { query: 0, view: 1, key: 2, protocol: 3, rpz: 4 } as const
const WORDS = new KeyTable({
  'query:': Word.query,
  view: Word.view,
  key: Word.key,
  udp: Word.protocol,
  'udp:': Word.protocol,
  tcp: Word.protocol,
  'tcp:': Word.protocol,
  ':': Word.protocol,
  rpz: Word.rpz,
})
/** Policies of a zone with which a client reaches the name. Others give no answer, or another. */
const ALLOWING_POLICIES = new KeyTable({ passthru: 0, 'tcp-only': 0, disabled: 0 })

/** Categories about the server and its peers, as the first word of a message. */
const CATEGORIES = new KeyTable(
  wordsOf(
    0,
    'client: cname: config: database: default: delegation-only: dispatch: dnssec: dnstap: edns-disabled: general: infoblox-responses: lame-servers: network: notify: nsid: queries: query-errors: rate-limit: resolver: responses: rpz: rpz-passthru: security: serve-stale: sslkeylog: spill: trust-anchor-telemetry: unmatched: update: update-security: xfer-in: xfer-out: zoneload:',
  ),
)
const SEVERITIES = new KeyTable({ 'info:': 0, 'notice:': 0, 'warning:': 0, 'error:': 0, 'critical:': 0, debug: 0 })

/**
 * How other messages begin without category and tag. Infoblox sends the messages of its DHCP server
 * the same way.
 */
const SYSTEM_EVENTS = new TextPrefixes([
  ...'zone |updating zone |transfer of |lame server |validating |received notify |sending notifies '.split('|'),
  ...'timed out resolving |success resolving |FORMERR resolving |REFUSED unexpected RCODE resolving '.split('|'),
  ...'SERVFAIL unexpected RCODE resolving |DNS format error |network unreachable resolving |rpz '.split('|'),
  ...'host unreachable resolving |connection refused resolving |no valid |error (|client update '.split('|'),
  ...'DHCPACK |DHCPDISCOVER |DHCPOFFER |DHCPREQUEST |DHCPRELEASE |DHCPNAK |DHCPINFORM |DHCPDECLINE '.split('|'),
])
/** The tag of BIND's messages. */
const TAG = new TextSearch('named[')
const CLIENT_SEARCH = new TextSearch(CLIENT)

function read(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const client = (line.marks & Mark.hash) === 0 ? NOT_FOUND : clientAt(view, start, end)
  if (client < 0) return isSystemEvent(view, start, end) ? Verdict.skip : Verdict.unknown
  const header = line.takeHeader(start, client)
  if (header === TimeFound.none) return Verdict.unknown
  if (header === TimeFound.impossible) return line.rejectTime()
  const addressAt = afterPointer(view, client + CLIENT.length, end)
  const addressStop = tokenEnd(view, addressAt, end)
  line.takeClient(addressAt, portMark(view, addressAt, addressStop))
  let at = skipBlanks(view, addressStop, end)
  if (textAt(view, addressStop - 4, addressStop, '/key')) at = skipBlanks(view, tokenEnd(view, at, end), end)
  for (let count = 0; count < WORDS_BEFORE_QUERY_MAX && at < end; count++) {
    const stop = tokenEnd(view, at, end)
    if (view.getUint8(at) !== OPEN_PARENTHESIS) {
      const word = WORDS.find(view, at, stop)
      if (word === Word.query) return takeQuery(line, skipBlanks(view, stop, end), end)
      if (word === Word.rpz) return takeRewrite(line, skipBlanks(view, stop, end), end)
      // Answers, refusals, transfers, updates: `answer:`, `response:`, `query (cache) ... denied`,
      // `query failed`, `signer`.
      if (word < 0) return Verdict.skip
      at = stop
      if (word === Word.view || word === Word.key) at = tokenEnd(view, skipBlanks(view, at, end), end)
    } else {
      at = stop
    }
    at = skipBlanks(view, at, end)
  }
  return Verdict.skip
}

/** `NAME CLASS TYPE` and either flags or, in a line with the answer, `response: RCODE`. */
function takeQuery(line: LogLine, name: number, end: number): Verdict {
  const { view } = line
  const nameEnd = tokenEnd(view, name, end)
  if (nameEnd === name) return line.reject('name: expected a name after "query:"')
  let at = skipBlanks(view, nameEnd, end)
  let stop = tokenEnd(view, at, end)
  if (!isTextIgnoreCase(view, at, stop, 'in')) {
    const isOther = isText(view, at, stop, 'CH') || isText(view, at, stop, 'HS') || isText(view, at, stop, 'ANY')
    return isOther ? Verdict.skip : line.reject('class: expected IN after the name')
  }
  at = skipBlanks(view, stop, end)
  stop = tokenEnd(view, at, end)
  at = skipBlanks(view, stop, end)
  if (textAt(view, at, end, 'response:')) {
    at = skipBlanks(view, at + 'response:'.length, end)
    const isNull = hasNullAddress(view, at, end)
    if (line.memory.bindQueries.has(line, name, nameEnd)) return isNull ? line.refuseName(name, nameEnd) : Verdict.skip
    line.action = isNull ? Action.blocked : actionOf(view, at, tokenEnd(view, at, end))
  } else if (at < end && isFlag(view.getUint8(at))) {
    // Requires the flags: a message that was truncated before its answer is no query line.
    line.memory.bindQueries.add(line, name, nameEnd)
    line.isQuestion = true
  }
  return line.takeName(name, nameEnd)
}

/** `NOERROR +A claude.ai. 300 IN A 0.0.0.0;` */
function hasNullAddress(view: DataView, start: number, end: number): boolean {
  for (let at = start; ; ) {
    at = IN_ADDRESS.find(view, at, end)
    if (at < 0) return false
    // The type may be AAAA.
    const address = skipBlanks(view, tokenEnd(view, at + ' IN '.length, end), end)
    at = address
    const semicolon = indexOfByte(view, address, end, SEMICOLON)
    if (isNullAddress(view, address, semicolon < 0 ? tokenEnd(view, address, end) : semicolon)) return true
  }
}
const IN_ADDRESS = new TextSearch(' IN A')

/** `KIND POLICY rewrite NAME/TYPE/CLASS via ZONE`. */
function takeRewrite(line: LogLine, kind: number, end: number): Verdict {
  const { view } = line
  const policy = skipBlanks(view, tokenEnd(view, kind, end), end)
  const policyEnd = tokenEnd(view, policy, end)
  const rewrite = skipBlanks(view, policyEnd, end)
  const rewriteEnd = tokenEnd(view, rewrite, end)
  if (!isText(view, rewrite, rewriteEnd, 'rewrite') || ALLOWING_POLICIES.find(view, policy, policyEnd) >= 0)
    return Verdict.skip
  const name = skipBlanks(view, rewriteEnd, end)
  const question = tokenEnd(view, name, end)
  // Of a truncated message, the name may be incomplete.
  if (!textAt(view, skipBlanks(view, question, end), end, 'via ')) return Verdict.skip
  // A name may have slashes, too. Old versions write only the name.
  const type = lastIndexOfByte(view, name, lastIndexOfByte(view, name, question, SLASH), SLASH)
  const nameEnd = type > name ? type : question
  if (line.memory.bindQueries.has(line, name, nameEnd)) return line.refuseName(name, nameEnd)
  line.action = Action.blocked
  return line.takeName(name, nameEnd)
}

/** A query's flags begin with whether recursion is desired. */
function isFlag(byte: number): boolean {
  return byte === 0x2b || byte === HYPHEN
}

/** The offset of `client ADDRESS#PORT`, or NOT_FOUND. */
function clientAt(view: DataView, start: number, end: number): number {
  const limit = Math.min(end, start + CUE_BYTES)
  for (let at = start; ; at++) {
    at = CLIENT_SEARCH.find(view, at, limit)
    if (at < 0) return NOT_FOUND
    if (at > start && view.getUint8(at - 1) !== SPACE) continue
    const address = afterPointer(view, at + CLIENT.length, limit)
    const stop = tokenEnd(view, address, Math.min(end, address + ADDRESS_TOKEN_BYTES_MAX))
    const mark = portMark(view, address, stop)
    if (mark >= 0 && addressKind(view, address, mark) !== AddressKind.none) return at
  }
}

/** Since BIND 9.11, the client object's pointer precedes the address. */
function afterPointer(view: DataView, at: number, end: number): number {
  return textAt(view, at, end, '@0x') ? skipBlanks(view, tokenEnd(view, at, end), end) : at
}

/** The number sign before the port: the last one, because a zone may contain another. */
function portMark(view: DataView, start: number, end: number): number {
  const slash = lastIndexOfByte(view, start, end, SLASH)
  const mark = lastIndexOfByte(view, start, slash > start ? slash : end, HASH)
  return mark >= 0 && mark + 1 < end && isDigit(view.getUint8(mark + 1)) ? mark : NOT_FOUND
}

/**
 * Whether the server writes about itself: with its tag, a category and a severity, or a known
 * beginning.
 */
function isSystemEvent(view: DataView, start: number, end: number): boolean {
  if (end - start < 8) return false
  const tag = TAG.find(view, start, Math.min(end, start + TAG_BYTES_MAX))
  if (tag === start || (tag > start && view.getUint8(tag - 1) === SPACE)) return true
  let at = afterDate(view, start, end)
  const category = afterWord(view, at, end, CATEGORIES)
  at = Math.max(at, category)
  const severity = afterWord(view, at, end, SEVERITIES)
  return (category >= 0 && severity >= 0) || SYSTEM_EVENTS.beginAt(view, Math.max(at, severity), end)
}

/**
 * The offset after `20-Nov-2026 09:15:02.123 ` or `2026-11-20T09:15:02.123Z `, or `start` where
 * there is no such time.
 */
function afterDate(view: DataView, start: number, end: number): number {
  if (!isDigit(view.getUint8(start))) return start
  const day = digitsEnd(view, start, end)
  if (day >= end || view.getUint8(day) !== HYPHEN) return start
  const limit = Math.min(end, start + TAG_BYTES_MAX)
  let at = tokenEnd(view, start, limit)
  if (at - start < DATE_AND_TIME_BYTES_MIN) at = tokenEnd(view, skipBlanks(view, at, limit), limit)
  return skipBlanks(view, at, limit)
}

/** The offset after the word at `at` and its blank if the word is in `words`, else NOT_FOUND. */
function afterWord(view: DataView, at: number, end: number, words: KeyTable): number {
  const limit = Math.min(end, at + TAG_BYTES_MAX)
  const stop = tokenEnd(view, at, limit)
  return words.find(view, at, stop) >= 0 ? skipBlanks(view, stop, limit) : NOT_FOUND
}
