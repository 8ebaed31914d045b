import {
  BACKSLASH,
  ByteSet,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  digitsEnd,
  EQUALS,
  indexOfByte,
  isDigit,
  isLetter,
  isSameText,
  isText,
  KeyTable,
  NO_KEY,
  NOT_FOUND,
  OPEN_BRACKET,
  QUOTE,
  SEMICOLON,
  SPACE,
  skipBlanks,
  TAB,
  textAt,
  tokenEnd,
  trimEnd,
} from './bytes.ts'
import { closingQuote, Fields } from './fields.ts'
import { hasScheme } from './host.ts'
import { CUE_BYTES, type LogLine, Verdict } from './log-line.ts'
import { LogTime, TimeFound } from './log-time.ts'
import { UserForm } from './user-name.ts'

const APOSTROPHE = 0x27

/** Whether a byte may occur in a key, or also begin a key. */
const CONTINUES = 1
const BEGINS = 2
const KEY_BYTE = new Uint8Array(256)
for (let byte = 0; byte < 128; byte++) {
  if (isLetter(byte)) KEY_BYTE[byte] = BEGINS
  else if (isDigit(byte)) KEY_BYTE[byte] = CONTINUES
}
for (const char of '.-') KEY_BYTE[char.charCodeAt(0)] = CONTINUES
for (const char of '_@') KEY_BYTE[char.charCodeAt(0)] = BEGINS

/**
 * Walks the `key=value` pairs of a message, as firewalls write them:
 *
 *   key=value            up to the separator; words after it that are no pair belong to the value:
 *                        `ether_type=IPv4 (0x0800)`
 *   key="a \"b\" c"      with `\` before a quote or a `\`; the next pair may follow without a blank
 *   key='a b'            if a separator follows the second apostrophe
 *   "key=a, ""b"""       a CSV cell that is a pair (FortiAnalyzer)
 *   key:"value";         Check Point's, with COLON as the byte between key and value
 *
 * Every byte is read at most twice. Bytes between the pairs are skipped, quoted text as a whole, so
 * that no pair in quoted text is read.
 */
export class PairScanner {
  keyStart = 0
  keyEnd = 0
  valueStart = 0
  valueEnd = 0
  /**
   * The last value began with a quote or apostrophe that is never closed, so the message was
   * truncated.
   */
  unclosed = false
  /**
   * A quote was between the pairs that were read so far, a value in unclosed quotes has a pair, or a
   * pair may follow an escaped blank of a value.
   */
  hasStrayQuote = false
  readonly #assign: number
  #view: DataView = new DataView(new ArrayBuffer(0))
  #at = 0
  #end = 0
  #separator = SPACE
  /** The key of the next pair, if the next pair ended the previous value. */
  #nextKey = 0
  #nextAssign = NOT_FOUND
  #nextInCell = false

  constructor(assign = EQUALS) {
    this.#assign = assign
  }

  reset(view: DataView, start: number, end: number, separator = separatorOf(view, start, end, this.#assign)): void {
    this.#view = view
    this.#at = start
    this.#end = end
    this.#separator = separator
    this.#nextAssign = NOT_FOUND
    this.unclosed = false
    this.hasStrayQuote = false
  }

  /** The byte that separates the pairs of this message. */
  get separator(): number {
    return this.#separator
  }

  /** Advances to the next pair. Returns false at the end. */
  next(): boolean {
    const view = this.#view
    const end = this.#end
    if (this.#nextAssign === NOT_FOUND && !this.#findKey()) return false
    this.keyStart = this.#nextKey
    this.keyEnd = this.#nextAssign
    this.#nextAssign = NOT_FOUND
    const at = this.keyEnd + 1
    if (this.#nextInCell) this.#cellValue(at)
    else if (at < end && view.getUint8(at) === QUOTE) this.#quotedValue(at + 1)
    else if (at < end && view.getUint8(at) === APOSTROPHE) this.#apostropheValue(at + 1)
    else this.#bareValue(at)
    return true
  }

  #findKey(): boolean {
    const view = this.#view
    const end = this.#end
    const separator = this.#separator
    let at = this.#at
    while (at < end) {
      const byte = view.getUint8(at)
      if (byte === SPACE || byte === TAB || byte === separator || byte === SEMICOLON) {
        at++
        continue
      }
      if (this.#keyAt(at, byte)) return true
      // No pair: skip the token, with all quoted text in it.
      at = this.#tokenEnd(at)
    }
    this.#at = end
    return false
  }

  /** Whether a pair, or the quote before a pair, begins at `at`. */
  #keyAt(at: number, byte: number): boolean {
    const isCell = byte === QUOTE && this.#separator === COMMA
    const key = isCell ? at + 1 : at
    const assign = assignAfterKey(this.#view, key, this.#end, this.#assign)
    if (assign === NOT_FOUND) return false
    this.#nextKey = key
    this.#nextAssign = assign
    this.#nextInCell = isCell
    return true
  }

  #tokenEnd(start: number): number {
    const view = this.#view
    let at = start
    const end = this.#end
    const separator = this.#separator
    while (at < end) {
      const byte = view.getUint8(at)
      if (byte === separator || byte === SPACE || byte === TAB) return at
      if (byte === QUOTE) {
        // A vendor's key may have other bytes: `cs(Referer)="..."`.
        this.hasStrayQuote ||= at === start || view.getUint8(at - 1) !== this.#assign
        const close = quoteEnd(view, at + 1, end)
        // The quote has no second quote, so the bytes after it are a token of their own.
        if (close === NOT_FOUND) return end
        return close + 1
      }
      // A bracket opens Check Point's list of pairs.
      if (byte === OPEN_BRACKET && at + 1 < end) return at + 1
      at++
    }
    return end
  }

  #quotedValue(start: number): void {
    const close = quoteEnd(this.#view, start, this.#end)
    this.#endValue(start, close)
    if (this.unclosed) this.#findHiddenPair()
    // A client may have opened the quote, so that it hides the pairs up to the next one.
    else if (this.#separator !== SPACE) this.hasStrayQuote ||= !this.#isSeparated(close + 1)
  }

  /** The value from `start` ends at the quote at `close`, or was truncated. */
  #endValue(start: number, close: number): void {
    this.unclosed = close === NOT_FOUND
    this.valueStart = start
    this.valueEnd = this.unclosed ? this.#end : close
    this.#at = this.unclosed ? this.#end : close + 1
  }

  #isSeparated(at: number): boolean {
    at = skipBlanks(this.#view, at, this.#end)
    const byte = at < this.#end ? this.#view.getUint8(at) : SEMICOLON
    return byte === this.#separator || byte === SEMICOLON || byte === CLOSE_BRACKET
  }

  #apostropheValue(start: number): void {
    const view = this.#view
    const end = this.#end
    let close = indexOfByte(view, start, end, APOSTROPHE)
    while (close !== NOT_FOUND) {
      const next = close + 1 < end ? view.getUint8(close + 1) : SPACE
      if (next === SPACE || next === TAB || next === this.#separator) break
      close = indexOfByte(view, close + 1, end, APOSTROPHE)
    }
    this.#endValue(start, close)
    if (this.unclosed) this.#findHiddenPair()
  }

  /** Whether the message was not truncated, but a client opened the quote. */
  #findHiddenPair(): void {
    const view = this.#view
    for (let at = this.valueStart; at < this.#end; at++) {
      if (view.getUint8(at) !== this.#separator) continue
      this.hasStrayQuote ||= assignAfterKey(view, at + 1, this.#end, this.#assign) !== NOT_FOUND
    }
  }

  #cellValue(start: number): void {
    const view = this.#view
    this.#endValue(start, closingQuote(view, start, this.#end))
    const end = this.valueEnd
    if (end - start < 4 || view.getUint8(start) !== QUOTE || view.getUint8(end - 1) !== QUOTE) return
    this.valueStart = start + 2
    this.valueEnd = end - 2
  }

  #bareValue(start: number): void {
    const view = this.#view
    const end = this.#end
    const separator = this.#separator
    this.valueStart = start
    let at = start
    for (;;) {
      while (at < end) {
        const byte = view.getUint8(at)
        if (byte === separator || byte === TAB) break
        at++
      }
      this.valueEnd = at
      let byte = separator
      while (at < end) {
        byte = view.getUint8(at)
        if (byte !== separator && byte !== SPACE && byte !== TAB) break
        at++
      }
      if (at >= end) {
        // The words of another format, whose client wrote the pairs before them.
        this.hasStrayQuote ||= separator !== SPACE && indexOfByte(view, start, end, QUOTE) !== NOT_FOUND
        break
      }
      if (!this.#keyAt(at, byte)) continue
      // The blank may be an escaped one of the value.
      this.hasStrayQuote ||= this.valueEnd > start && view.getUint8(this.valueEnd - 1) === BACKSLASH
      break
    }
    this.#at = at
  }
}

/** The offset of the byte between key and value if a key begins at `at`, or NOT_FOUND. */
function assignAfterKey(view: DataView, at: number, end: number, assign: number): number {
  if (at >= end || KEY_BYTE[view.getUint8(at)] !== BEGINS) return NOT_FOUND
  at++
  while (at < end && KEY_BYTE[view.getUint8(at)] !== 0) at++
  if (at >= end || view.getUint8(at) !== assign) return NOT_FOUND
  // Times, addresses and URLs contain colons, too: a colon ends a key only before a quote.
  if (assign === COLON && (at + 1 >= end || view.getUint8(at + 1) !== QUOTE)) return NOT_FOUND
  return at
}

/**
 * The separator of the pairs: the byte between the first value and the next pair. SPACE means
 * blanks of any kind.
 */
function separatorOf(view: DataView, start: number, end: number, assign: number): number {
  const limit = Math.min(end, start + CUE_BYTES)
  let at = start
  do {
    at = indexOfByte(view, at, limit, assign) + 1
    if (at === 0) return SPACE
  } while (at - 1 === start || KEY_BYTE[view.getUint8(at - 2)] === 0)
  if (at < limit && view.getUint8(at) === QUOTE) {
    at = quoteEnd(view, at + 1, limit) + 1
    // A separator directly follows a quote.
    if (at === 0 || at >= limit || !SEPARATORS.has(view.getUint8(at)) || view.getUint8(at) === SPACE) return SPACE
  }
  while (at < limit) {
    const byte = view.getUint8(at++)
    if (!SEPARATORS.has(byte)) continue
    while (at < limit && view.getUint8(at) === byte) at++
    at = skipBlanks(view, at, limit)
    const quote = byte === COMMA && at < limit && view.getUint8(at) === QUOTE ? 1 : 0
    if (assignAfterKey(view, at + quote, limit, assign) !== NOT_FOUND) return byte
  }
  return SPACE
}

const SEPARATORS = new ByteSet(' \t,|;^')

/**
 * The offset of the quote that closes the text from `at`: the first quote without an unescaped `\`
 * before it.
 */
export function quoteEnd(view: DataView, start: number, end: number): number {
  let at = indexOfByte(view, start, end, QUOTE)
  while (at !== NOT_FOUND) {
    let escapes = at
    while (escapes > start && view.getUint8(escapes - 1) === BACKSLASH) escapes--
    if (((at - escapes) & 1) === 0) return at
    at = indexOfByte(view, at + 1, end, QUOTE)
  }
  return NOT_FOUND
}

/** Blocky 0.24, querylog/logger_writer.go: no name is in this text, and values are quoted. */
const BLOCKY_TEXT = 'queryLog: query resolved'
const WORDS_BEFORE_TAG_MAX = 4
const prefixTime = new LogTime()

/**
 * Whether more than a time and one word, such as a level, precede the pairs at `end`, or than a few
 * words and a tag if the format `mayBeTagged`: `utm httpproxy[1]:`. A client can write pairs into the
 * text of a program that does not escape a name: `done query: #7 NAME ADDRESS`.
 */
export function isInText({ view, referenceMs }: LogLine, start: number, end: number, mayBeTagged = false): boolean {
  if (start === end) return false
  end = trimEnd(view, start, end)
  if (view.getUint8(start) === OPEN_BRACKET) start++
  // OSSEC writes the year before `Nov 20 09:15:02`.
  if (digitsEnd(view, start, end) === start + 4 && view.getUint8(start + 4) === SPACE) start += 5
  const hasTime = prefixTime.read(view, start, end, referenceMs) === TimeFound.found
  let at = skipBlanks(view, hasTime ? tokenEnd(view, prefixTime.end, end) : start, end)
  const isTagged = mayBeTagged && textAt(view, end - 2, end, ']:')
  for (let words = isTagged ? WORDS_BEFORE_TAG_MAX : 1; words > 0; words--)
    at = skipBlanks(view, tokenEnd(view, at, end), end)
  return at < end && !isText(view, at, end, BLOCKY_TEXT)
}

/** The roles that most vendors have. */
type CommonRole =
  | 'time'
  | 'date'
  | 'clock'
  | 'zone'
  | 'laterTime'
  | 'client'
  | 'server'
  | 'name'
  | 'url'
  | 'action'
  | 'user'
  | 'sent'
  | 'received'
  | 'forwarded'
const COMMON = 'time date clock zone laterTime client server forwarded name url action user sent received'

/**
 * The values of a vendor's keys, by their roles. The keys of a role are in order of preference; keys
 * with a slash between them are one field. A line with two values of one field, or with quoted text
 * between the pairs, names no host: text of a client that the vendor did not escape may have added
 * pairs, or hidden some.
 */
export class PairFields<Role extends string = never> extends Fields {
  /** The number of pairs, known and unknown. */
  pairs = 0
  /** The fields of each role. */
  readonly ids: Readonly<Record<Role | CommonRole, readonly number[]>>
  /** The first field of each role, or NO_KEY. */
  readonly id: Readonly<Record<Role | CommonRole, number>>
  readonly #table: KeyTable
  readonly #scanner: PairScanner
  isContradictory = false
  /** The end of a message whose last value's quotes are never closed, or -1. */
  #truncatedEnd = NO_KEY
  /** The fields of the byte counts of the message that was read last. */
  #sent: readonly number[] = []
  #received: readonly number[] = []

  constructor(keys: Readonly<Record<Role, string>> & Partial<Record<CommonRole, string>>, assign = EQUALS) {
    const table: Record<string, number> = {}
    const ids: Record<string, number[]> = Object.fromEntries(COMMON.split(' ').map((role) => [role, []]))
    let count = 0
    for (const [role, words] of Object.entries<string>(keys)) {
      ids[role] = words.split(' ').map((alike) => {
        const each = alike.split('/')
        const id = table[each[0] ?? ''] ?? count++
        for (const word of each) table[word] = id
        return id
      })
    }
    super(count)
    this.ids = ids as Record<Role | CommonRole, number[]>
    this.id = Object.fromEntries(Object.entries(ids).map(([role, [first = NO_KEY]]) => [role, first])) as Record<
      Role | CommonRole,
      number
    >
    this.#table = new KeyTable(table)
    this.#scanner = new PairScanner(assign)
  }

  /** @param separator the result of separatorOf, if it is already known */
  read(view: DataView, start: number, end: number, separator?: number): void {
    const scanner = this.#scanner
    const table = this.#table
    this.begin()
    scanner.reset(view, start, end, separator)
    let pairs = 0
    while (scanner.next()) {
      pairs++
      this.add(view, table.find(view, scanner.keyStart, scanner.keyEnd), scanner.valueStart, scanner.valueEnd)
    }
    this.pairs = pairs
    this.isContradictory ||= scanner.hasStrayQuote
    if (scanner.unclosed) this.#truncatedEnd = end
  }

  /** Forgets the values of the message before. */
  begin(): void {
    this.clear()
    this.isContradictory = false
    this.#truncatedEnd = NO_KEY
  }

  idOf(view: DataView, keyStart: number, keyEnd: number): number {
    return this.#table.find(view, keyStart, keyEnd)
  }

  add(view: DataView, id: number, start: number, end: number): void {
    if (id < 0 || end <= start) return
    if (this.ends[id] === 0) this.note(id, start, end)
    else this.isContradictory ||= !isSameText(view, start, end, this.start(id), this.end(id))
  }

  hasAny(ids: readonly number[]): boolean {
    for (let index = 0; index < ids.length; index++) if (this.has(ids[index] ?? NO_KEY)) return true
    return false
  }

  /** A time, else a date with its time of day and zone, else another time. */
  override takeTimes(line: LogLine): TimeFound {
    const { ids, id } = this
    let found = super.takeTimes(line, ids.time)
    if (found === TimeFound.none) found = this.takeDateAndTime(line, id.date, id.clock, id.zone)
    return found === TimeFound.none ? super.takeTimes(line, ids.laterTime) : found
  }

  override takeActions(line: LogLine, ids = this.ids.action): void {
    super.takeActions(line, ids)
  }

  /** The host of the request, its user and its bytes. */
  takeRequest(line: LogLine): Verdict {
    return this.takeRest(line, this.takeHosts(line, this.ids.name, this.ids.url))
  }

  /**
   * The host of the first of these names that has one, then of these URLs. A URL needs a scheme,
   * because a path alone names no host.
   */
  takeHosts(line: LogLine, names: readonly number[], urls: readonly number[] = []): Verdict {
    let isReverse = false
    for (let index = 0; index < names.length; index++) {
      const id = names[index] ?? NO_KEY
      const verdict = this.has(id) ? this.takeHost(line, id) : Verdict.noDomain
      if (verdict === Verdict.event) return this.#checked(line)
      isReverse ||= verdict === Verdict.skip
    }
    for (let index = 0; index < urls.length; index++) {
      const id = urls[index] ?? NO_KEY
      if (!hasScheme(line.view, this.start(id), this.end(id))) continue
      if (this.takeHost(line, id) === Verdict.event) return this.#checked(line)
    }
    return isReverse ? Verdict.skip : Verdict.noDomain
  }

  #checked(line: LogLine): Verdict {
    if (this.isContradictory) return line.ambiguous('contradictory')
    return this.#truncatedEnd === NO_KEY ? Verdict.event : line.whole(Verdict.event, this.#truncatedEnd)
  }

  /** Of an event, its original client, its user and its byte counts. */
  takeRest(line: LogLine, verdict: Verdict, sent = this.ids.sent, received = this.ids.received): Verdict {
    if (verdict !== Verdict.event) return verdict
    const { forwarded } = this.ids
    for (let index = 0; index < forwarded.length; index++) {
      const id = forwarded[index] ?? NO_KEY
      if (line.takeForwarded(this.start(id), this.end(id))) break
    }
    this.#sent = sent
    this.#received = received
    line.takeUserAndBytes = this.#takeUserAndBytes
    return verdict
  }

  #takeUserAndBytes = (line: LogLine): void =>
    this.takeUserAndBytes(line, this.ids.user, this.#sent, this.#received, UserForm.text, this.#truncatedEnd)
}
