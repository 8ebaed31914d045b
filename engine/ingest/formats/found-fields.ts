import { Action, actionOf } from './action.ts'
import {
  AT,
  BACKSLASH,
  COLON,
  digitsEnd,
  HASH,
  HYPHEN,
  isLetter,
  isTextIgnoreCase,
  NOT_FOUND,
  QUOTE,
  SLASH,
  SPACE,
  skipBlanks,
  textAt,
  wholeNumberAt,
} from './bytes.ts'
import { DATE_FIELD, FIELD_KINDS, FIELD_RANKS, FieldKind, TIME_FIELD } from './field-names.ts'
import { endBeforePort } from './ip-address.ts'
import { type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { takeUser, UserForm } from './user-name.ts'

const QUESTION = 0x3f
const PLUS = 0x2b
/** The maximum length of a host with scheme and userinfo. */
const CA_CERTIFICATE_BYTES_MAX = 512

/**
 * The offsets of the fields found in a message, by id (field-names.ts), for formats whose fields
 * have any order. Of each role, the readable field with the smallest rank is used. One instance per
 * format, reused for every message.
 */
export class FoundFields {
  readonly #starts = new Int32Array(FIELD_KINDS * FIELD_RANKS)
  readonly #ends = new Int32Array(FIELD_KINDS * FIELD_RANKS)
  /** The ranks found for each role, one bit per rank. */
  readonly #ranks = new Int32Array(FIELD_KINDS)

  clear(): void {
    this.#ranks.fill(0)
  }

  /** Of fields with one id, the first non-empty field counts. */
  note(id: number, start: number, end: number): void {
    const kind = (id / FIELD_RANKS) | 0
    const bit = 1 << (id % FIELD_RANKS)
    const ranks = this.#ranks[kind] ?? 0
    if (end <= start || (ranks & bit) !== 0) return
    this.#ranks[kind] = ranks | bit
    this.#starts[id] = start
    this.#ends[id] = end
  }

  forget(id: number): void {
    const kind = (id / FIELD_RANKS) | 0
    this.#ranks[kind] = (this.#ranks[kind] ?? 0) & ~(1 << (id % FIELD_RANKS))
  }

  has(id: number): boolean {
    return (((this.#ranks[(id / FIELD_RANKS) | 0] ?? 0) >>> (id % FIELD_RANKS)) & 1) === 1
  }

  hasKind(kind: FieldKind): boolean {
    return this.#ranks[kind] !== 0
  }

  /** The id of the field of this role with the smallest rank, or NOT_FOUND. */
  first(kind: FieldKind): number {
    const ranks = this.#ranks[kind] ?? 0
    return ranks === 0 ? NOT_FOUND : kind * FIELD_RANKS + 31 - Math.clz32(ranks & -ranks)
  }

  /** The id of the field of the same role with the next rank, or NOT_FOUND. */
  next(id: number): number {
    const kind = (id / FIELD_RANKS) | 0
    // A shift by 32 is a shift by 0: the last rank has no next.
    const rank = id % FIELD_RANKS
    const ranks = rank === FIELD_RANKS - 1 ? 0 : (this.#ranks[kind] ?? 0) & (-1 << (rank + 1))
    return ranks === 0 ? NOT_FOUND : kind * FIELD_RANKS + 31 - Math.clz32(ranks & -ranks)
  }

  /** The offset of the field, which must be present. */
  start(id: number): number {
    return this.#starts[id] ?? 0
  }

  end(id: number): number {
    return this.has(id) ? (this.#ends[id] ?? 0) : this.start(id)
  }

  /** Whether the field is present and is `text` (lower case) in any case. */
  is(view: DataView, id: number, text: string): boolean {
    return this.has(id) && isTextIgnoreCase(view, this.start(id), this.end(id), text)
  }

  /** The first field with a time. A date and a time of day in two fields count as one. */
  takeTime(line: LogLine): TimeFound {
    for (let id = this.first(FieldKind.time); id !== NOT_FOUND; id = this.next(id)) {
      const found = line.takeTime(this.start(id), this.end(id))
      if (found !== TimeFound.none) return found
    }
    if (!this.has(DATE_FIELD) || !this.has(TIME_FIELD)) return TimeFound.none
    return line.takeDateAndTime(
      this.start(DATE_FIELD),
      this.end(DATE_FIELD),
      this.start(TIME_FIELD),
      this.end(TIME_FIELD),
    )
  }

  /** The first field of the client's role that has an address. */
  takeClient(line: LogLine): boolean {
    return this.#takeAddress(line, FieldKind.client)
  }

  /** The first field that has an address of unknown role. */
  takeAddress(line: LogLine): boolean {
    return this.#takeAddress(line, FieldKind.address)
  }

  #takeAddress(line: LogLine, kind: FieldKind): boolean {
    const { view } = line
    for (let id = this.first(kind); id !== NOT_FOUND; id = this.next(id)) {
      if (line.takeClient(this.start(id), endBeforePort(view, this.start(id), this.end(id)))) return true
    }
    return false
  }

  takeAction(line: LogLine): void {
    for (let id = this.first(FieldKind.action); id !== NOT_FOUND; id = this.next(id)) {
      line.action = actionOf(line.view, this.start(id), this.end(id))
      if (line.action !== Action.unknown) return
    }
  }

  /** The client's user and byte counts. Of each role, the first field that has a value. */
  takeUserAndBytes(line: LogLine, form: UserForm = UserForm.text): void {
    for (let id = this.first(FieldKind.user); id !== NOT_FOUND; id = this.next(id)) {
      if (takeUser(line, this.start(id), this.end(id), form)) break
    }
    for (let id = this.first(FieldKind.sent); id !== NOT_FOUND; id = this.next(id)) {
      if (line.takeSent(this.start(id), this.end(id))) break
    }
    for (let id = this.first(FieldKind.received); id !== NOT_FOUND; id = this.next(id)) {
      if (line.takeReceived(this.start(id), this.end(id))) break
    }
  }

  /**
   * The host of a known product: from a URL, else from a host field, else from a name that other
   * devices give to themselves.
   */
  takeHost(line: LogLine): Verdict {
    let verdict: Verdict = Verdict.noDomain
    for (let index = 0; index < HOST_KINDS.length; index++) {
      const found = this.takeNamed(line, HOST_KINDS[index] ?? FieldKind.host)
      if (found === Verdict.event) return found
      if (found === Verdict.skip) verdict = found
    }
    return verdict
  }

  /** The host of the first field of this role that names one. */
  takeNamed(line: LogLine, kind: FieldKind): Verdict {
    let verdict: Verdict = Verdict.noDomain
    for (let id = this.first(kind); id !== NOT_FOUND; id = this.next(id)) {
      const found = takeHostOf(line, this.start(id), this.end(id))
      if (found === Verdict.event) return found
      if (found === Verdict.skip) verdict = found
    }
    return verdict
  }
}

const HOST_KINDS = [FieldKind.url, FieldKind.host, FieldKind.own] as const

/**
 * As line.takeHost, but rejects mail addresses, accounts (`corp\jdoe`) and file names, and reads
 * JSON's `https:\/\/`.
 */
export function takeHostOf(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  start = skipBlanks(view, start, end)
  if (start < end && view.getUint8(start) === QUOTE) start++
  const limit = Math.min(end, start + CA_CERTIFICATE_BYTES_MAX)
  let at = start
  while (at < limit && isLetter(view.getUint8(at))) at++
  let hasScheme = false
  if (at < limit && view.getUint8(at) === COLON) {
    if (textAt(view, at, limit, ':\\/\\/')) {
      start = at + 5
      hasScheme = true
    } else if (textAt(view, at, limit, '://')) {
      hasScheme = true
      start = at + 3
    }
    at = start
  }
  for (; at < limit; at++) {
    const byte = view.getUint8(at)
    if (byte === SLASH || byte === QUESTION || byte === HASH || byte === SPACE) break
    if (byte === AT && !hasScheme) return Verdict.noDomain
    // JSON may escape a slash. No other escape is part of a name.
    if (byte === BACKSLASH) {
      if (at + 1 < limit && view.getUint8(at + 1) === SLASH) break
      return Verdict.noDomain
    }
  }
  return line.takeHost(start, end)
}

/**
 * Applies the zone that the message names in a field of its own: `+0100`, `+01:00`, `UTC`, `GMT`.
 * Other names are ambiguous.
 */
export function applyZone(line: LogLine, start: number, end: number): void {
  if (!line.timeIsLocal || start === end) return
  const { view } = line
  const sign = view.getUint8(start)
  let minutes = 0
  if (sign === PLUS || sign === HYPHEN) {
    const hoursEnd = digitsEnd(view, start + 1, end)
    const length = hoursEnd - start - 1
    if (length === 4 && hoursEnd === end) {
      minutes = wholeNumberAt(view, start + 1, start + 3) * 60 + wholeNumberAt(view, start + 3, end)
    } else if (length === 1 || length === 2) {
      const rest = hoursEnd < end && view.getUint8(hoursEnd) === COLON ? wholeNumberAt(view, hoursEnd + 1, end) : 0
      if (rest === NOT_FOUND || (hoursEnd < end && view.getUint8(hoursEnd) !== COLON)) return
      minutes = wholeNumberAt(view, start + 1, hoursEnd) * 60 + rest
    } else return
    if (minutes > 18 * 60) return
    if (sign === HYPHEN) minutes = -minutes
  } else if (!isTextIgnoreCase(view, start, end, 'utc') && !isTextIgnoreCase(view, start, end, 'gmt')) return
  line.timeMs -= minutes * 60_000
  line.timeIsLocal = false
}
