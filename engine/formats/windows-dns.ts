import { LABEL_BYTE, NAME_CHARS_MAX } from '../../registry/domain-name.ts'
import {
  CLOSE_BRACKET,
  CLOSE_PARENTHESIS,
  COLON,
  DOT,
  digitsEnd,
  HEX_SET,
  HYPHEN,
  hexDigit,
  indexOfByte,
  isDigit,
  isText,
  KeyTable,
  NOT_FOUND,
  OPEN_BRACKET,
  OPEN_PARENTHESIS,
  SLASH,
  SPACE,
  skipBlanks,
  TextPrefixes,
  textAt,
  tokenEnd,
  wholeNumberAt,
  wordsOf,
} from './bytes.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'

/*
 * The debug log of the Windows DNS server, as a file or from an agent, which may put the computer's
 * name first:
 *
 *   DATE TIME [AM|PM] THREAD CONTEXT PACKETID PROTO DIR REMOTEIP XID [R] OPCODE
 *     [FLAGSHEX FLAGS RCODE] QTYPE QNAME
 *
 * A client's query is a received packet without `R` and with the operation Q. A sent packet without
 * `R` goes to a forwarder, and a sent packet with `R` repeats the query. Columns are separated at
 * blanks, because copies collapse runs of blanks.
 * https://learn.microsoft.com/en-us/previous-versions/windows/it-pro/windows-server-2008-R2-and-2008/cc776361(v=ws.10)
 */
export const windowsDns: LogFormat = { id: 'windows-dns', read }

/** The computer's name and remnants of relays' headers are shorter. */
const PREFIX_BYTES_MAX = 128
const TIME_BYTES_MAX = 40
const CONTEXT_BYTES_MAX = 64
const COMPUTER_WORDS_MAX = 3
const PACKET = ' PACKET '
const CREATED = 'DNS Server log file creation at '
/** Not longer than a packet's identifier, longer than a transaction id. */
const PACKET_ID_BYTES_MIN = 8
const BLOCK_LINE_BYTES_MAX = 200

/** Lines of the file header, and about a packet's parts, which the server writes with details on. */
const BLOCK = new TextPrefixes([
  ...'DNS Server log|Message logging key|Log file wrap at|Field #|-------|blank = |Q = |N = |U = |? = '.split('|'),
  ...'A = |T = |D = |R = |UDP question info at |UDP response info at |TCP question info at '.split('|'),
  ...'TCP response info at |Socket = |Remote addr |Time Query=|Buf length = |Msg length = '.split('|'),
  ...'XID  |Flags  |QR  |OPCODE  |AA  |TC  |RD  |RA  |Z  |CD  |AD  |RCODE  |QCOUNT  |ACOUNT  |NSCOUNT  '.split('|'),
  ...'ARCOUNT  |QUESTION SECTION:|ANSWER SECTION:|AUTHORITY SECTION:|ADDITIONAL SECTION:|Offset = '.split('|'),
  ...'Name  |QTYPE  |QCLASS  |TYPE  |CLASS  |TTL  |DLEN  |DATA  '.split('|'),
])
/** The lines of the file header that number the columns. */
const COLUMNS = new KeyTable(
  wordsOf(
    0,
    'date time thread context internal udp/tcp send/receive remote xid query/response opcode [ flags response ] question',
  ),
)

function read(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const context = contextAt(view, start, end)
  if (context < 0) {
    if (!isBlock(view, start, end)) return Verdict.unknown
    // The creation date of the file may show which number of a date is the month.
    if (textAt(view, start, end, CREATED)) line.takeTime(start + CREATED.length, end)
    return Verdict.skip
  }
  if (!textAt(view, context - 1, end, PACKET)) return Verdict.skip
  if (!takeTimeBefore(line, start, threadAt(view, start, context - 1))) {
    return line.rejectTime()
  }
  let at = skipBlanks(view, context + PACKET.length - 1, end)
  let stop = tokenEnd(view, at, end)
  if (stop - at >= PACKET_ID_BYTES_MIN && HEX_SET.hasAll(view, at, stop)) {
    at = skipBlanks(view, stop, end)
    stop = tokenEnd(view, at, end)
  }
  if (!isText(view, at, stop, 'UDP') && !isText(view, at, stop, 'TCP')) {
    return line.reject('protocol: expected UDP or TCP')
  }
  at = skipBlanks(view, stop, end)
  stop = tokenEnd(view, at, end)
  const isSent = isText(view, at, stop, 'Snd')
  if (!isSent && !isText(view, at, stop, 'Rcv')) return line.reject('direction: expected Rcv or Snd')
  at = skipBlanks(view, stop, end)
  stop = tokenEnd(view, at, end)
  if (!line.takeClient(at, stop)) return line.reject('address: expected an address after the direction')
  if (isSent) return Verdict.skip
  at = skipBlanks(view, stop, end)
  stop = tokenEnd(view, at, end)
  if (stop === at || !HEX_SET.hasAll(view, at, stop)) return line.reject('transaction: expected a hexadecimal number')
  return takeQuestion(line, skipBlanks(view, stop, end), end)
}

/** A client's question: `[R] Q [0001   D   NOERROR] A      (3)api(6)openai(3)com(0)`. */
function takeQuestion(line: LogLine, at: number, end: number): Verdict {
  const { view } = line
  let stop = tokenEnd(view, at, end)
  // An answer, a notify, an update, or an operation without a letter.
  if (isText(view, at, stop, 'R') || isText(view, at, stop, 'N') || isText(view, at, stop, 'U')) return Verdict.skip
  if (isText(view, at, stop, '?')) return Verdict.skip
  if (!isText(view, at, stop, 'Q')) return line.reject('operation: expected Q, N, U or ?')
  at = skipBlanks(view, stop, end)
  const close = at < end && view.getUint8(at) === OPEN_BRACKET ? indexOfByte(view, at, end, CLOSE_BRACKET) : NOT_FOUND
  if (close < 0) return line.reject('flags: expected flags in brackets')
  at = skipBlanks(view, close + 1, end)
  stop = tokenEnd(view, at, end)
  const name = skipBlanks(view, stop, end)
  if (stop === at || name >= end || view.getUint8(name) !== OPEN_PARENTHESIS) {
    return line.reject('name: expected labels with their lengths')
  }
  return takeLabels(line, name, end)
}

/**
 * Writes the name into the scratch area: by the lengths, because a label may contain any byte, or
 * by the marks, if an editor changed the lengths.
 */
function takeLabels(line: LogLine, name: number, end: number): Verdict {
  const { view, bytes, scratchStart } = line
  const byLength = labelsFit(view, name, end)
  const scratchEnd = scratchStart + NAME_CHARS_MAX + 1
  let to = scratchStart
  let at = name
  for (;;) {
    const labelAt = afterMark(view, at, end)
    if (labelAt < 0) return line.reject('name: expected labels with their lengths and a final (0)')
    const length = wholeNumberAt(view, at + 1, labelAt - 1)
    if (length === 0) break
    const labelEnd = byLength ? labelAt + length : nextMark(view, labelAt, end)
    for (let from = labelAt; from < labelEnd; from++) {
      const byte = view.getUint8(from)
      if (((LABEL_BYTE[byte] ?? 0) === 0 && byte < 0x80) || to >= scratchEnd) return Verdict.noDomain
      bytes[to++] = byte
    }
    if (to >= scratchEnd) return Verdict.noDomain
    bytes[to++] = DOT
    at = labelEnd
  }
  return to === scratchStart ? Verdict.noDomain : line.takeHost(scratchStart, to - 1)
}

/** Whether each length leads to the next length, up to (0). */
function labelsFit(view: DataView, at: number, end: number): boolean {
  for (;;) {
    const labelAt = afterMark(view, at, end)
    if (labelAt < 0) return false
    const length = wholeNumberAt(view, at + 1, labelAt - 1)
    if (length === 0) return true
    at = labelAt + length
  }
}

/** The offset after `(digits)` at `at`, or NOT_FOUND. */
function afterMark(view: DataView, at: number, end: number): number {
  if (at >= end || view.getUint8(at) !== OPEN_PARENTHESIS) return NOT_FOUND
  const digits = digitsEnd(view, at + 1, Math.min(end, at + 5))
  if (digits === at + 1 || digits >= end || view.getUint8(digits) !== CLOSE_PARENTHESIS) return NOT_FOUND
  return digits + 1
}

function nextMark(view: DataView, at: number, end: number): number {
  while (at < end && (view.getUint8(at) !== OPEN_PARENTHESIS || afterMark(view, at, end) < 0)) at++
  return at
}

/**
 * Takes the time before the thread, after an optional computer name. Returns false for an
 * impossible time.
 */
function takeTimeBefore(line: LogLine, start: number, thread: number): boolean {
  const { view } = line
  let at = start
  for (let word = 0; word <= COMPUTER_WORDS_MAX && at < thread; word++) {
    const found = line.takeTimeIfAny(at, thread)
    if (found === TimeFound.impossible) return false
    if (found === TimeFound.found) return true
    at = skipBlanks(view, tokenEnd(view, at, thread), thread)
  }
  line.timeIsUnread = true
  return true
}

/**
 * The offset of a date (a number and a separator) at the start or after a computer name, or
 * NOT_FOUND.
 */
function dateAt(view: DataView, start: number, end: number): number {
  const limit = Math.min(end, start + PREFIX_BYTES_MAX)
  let at = start
  for (let word = 0; word <= COMPUTER_WORDS_MAX && at < limit; word++) {
    const digits = digitsEnd(view, at, Math.min(limit, at + 5))
    const length = digits - at
    if ((length === 4 || length === 1 || length === 2) && digits < limit) {
      const mark = view.getUint8(digits)
      if (mark === SLASH || mark === DOT || mark === HYPHEN) return at
    }
    at = skipBlanks(view, tokenEnd(view, at, limit), limit)
  }
  return NOT_FOUND
}

/** The offset of PACKET, EVENT or Note: after a time and a thread, or NOT_FOUND. */
function contextAt(view: DataView, start: number, end: number): number {
  const date = dateAt(view, start, end)
  if (date < 0) return NOT_FOUND
  const limit = Math.min(end, date + CONTEXT_BYTES_MAX)
  for (let at = date; at < limit; at++) {
    if (view.getUint8(at) !== SPACE) continue
    const next = at + 1 < limit ? view.getUint8(at + 1) : 0
    if (next !== 0x50 && next !== 0x45 && next !== 0x4e) continue
    if (!textAt(view, at, end, PACKET) && !textAt(view, at, end, ' EVENT ') && !textAt(view, at, end, ' Note:'))
      continue
    if (threadAt(view, start, at) >= 0) return at + 1
  }
  return NOT_FOUND
}

/**
 * The offset of the thread that ends at `at`: three to eight hex digits, shortly after a time. Or
 * NOT_FOUND.
 */
function threadAt(view: DataView, start: number, at: number): number {
  let stop = at
  while (stop > start && view.getUint8(stop - 1) === SPACE) stop--
  let thread = stop
  while (thread > start && hexDigit(view.getUint8(thread - 1)) >= 0) thread--
  const length = stop - thread
  if (length < 3 || length > 8 || thread === start || view.getUint8(thread - 1) !== SPACE) return NOT_FOUND
  if (isDottedTimeBefore(view, start, thread)) return thread
  for (let colon = thread - 3; colon > start && colon > thread - TIME_BYTES_MAX; colon--) {
    if (view.getUint8(colon) === COLON && isDigit(view.getUint8(colon - 1)) && isDigit(view.getUint8(colon + 1))) {
      return thread
    }
  }
  return NOT_FOUND
}

/** Whether `9.15.02 ` ends at the thread (Finnish, Italian). */
function isDottedTimeBefore(view: DataView, start: number, thread: number): boolean {
  let stop = thread
  while (stop > start && view.getUint8(stop - 1) === SPACE) stop--
  const at = stop - 7
  if (at < start || view.getUint8(at + 1) !== DOT || view.getUint8(at + 4) !== DOT) return false
  return (
    isDigit(view.getUint8(at)) && digitsEnd(view, at + 2, stop) === at + 4 && digitsEnd(view, at + 5, stop) === stop
  )
}

function isBlock(view: DataView, start: number, end: number): boolean {
  if (end - start > BLOCK_LINE_BYTES_MAX) return false
  const at = skipBlanks(view, start, end)
  if (BLOCK.beginAt(view, at, end) || isText(view, at, end, 'Message:') || isText(view, at, end, 'empty')) return true
  const digits = digitsEnd(view, at, Math.min(end, at + 2))
  const word = skipBlanks(view, digits, end)
  return digits > at && word > digits && COLUMNS.find(view, word, tokenEnd(view, word, end)) >= 0
}
