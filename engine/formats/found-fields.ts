import { Action, actionOf } from './action.ts'
import { COMMA, isDigit, isLetter, isSameText, isTextIgnoreCase, NOT_FOUND } from './bytes.ts'
import { DATE_FIELD, FIELD_KINDS, FIELD_RANKS, FieldKind, PUBLIC_CLIENT_FIELD, TIME_FIELD } from './field-names.ts'
import { AddressKind, addressKind, endBeforePort } from './ip-address.ts'
import { type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { takeUser, UserForm } from './user-name.ts'

const CONTRADICTORY =
  (1 << FieldKind.client) |
  (1 << FieldKind.address) |
  (1 << FieldKind.host) |
  (1 << FieldKind.url) |
  (1 << FieldKind.user)

/**
 * The offsets of the fields found in a message, by id (field-names.ts), for formats whose fields
 * have any order. Of each role, the readable field with the smallest rank is used. One instance per
 * format, reused for every message.
 */
export class FoundFields {
  readonly #starts = new Int32Array(FIELD_KINDS * FIELD_RANKS)
  readonly #ends = new Int32Array(FIELD_KINDS * FIELD_RANKS)
  /** Of fields that noteUnescaped noted. */
  readonly #keyStarts = new Int32Array(FIELD_KINDS * FIELD_RANKS)
  readonly #keyEnds = new Int32Array(FIELD_KINDS * FIELD_RANKS)
  /** The ranks found for each role, one bit per rank. */
  readonly #ranks = new Int32Array(FIELD_KINDS)
  /** Roles of which a field has two values, one bit per role. */
  #conflicts = 0
  /** Fields that noteUnescaped noted name two users. */
  #hasTwoUsers = false

  clear(): void {
    this.#ranks.fill(0)
    this.#conflicts = 0
    this.#hasTwoUsers = false
  }

  /**
   * As note, for formats whose senders may leave a controlled text unescaped, so that it adds
   * fields: a field with two values is evidence of neither.
   */
  noteUnescaped(view: DataView, id: number, keyStart: number, keyEnd: number, start: number, end: number): void {
    if (end <= start) return
    const kind = ((id / FIELD_RANKS) | 0) as FieldKind
    if (this.#isOther(view, kind, id, start, end)) {
      if (kind === FieldKind.user) this.#hasTwoUsers = true
      else this.#conflicts |= 1 << kind
    }
    if (this.has(id)) {
      // Vendors write one field under two names, in two forms.
      const isSameKey = isSameName(view, keyStart, keyEnd, this.#keyStarts[id] ?? 0, this.#keyEnds[id] ?? 0)
      if (isSameKey && !isSameText(view, start, end, this.start(id), this.end(id))) this.#conflicts |= 1 << kind
      return
    }
    this.#keyStarts[id] = keyStart
    this.#keyEnds[id] = keyEnd
    this.note(id, start, end)
  }

  /**
   * Whether another field of the role names another client or user: the client may have written the
   * field under another of its names.
   */
  #isOther(view: DataView, kind: FieldKind, added: number, start: number, end: number): boolean {
    if (kind !== FieldKind.client && kind !== FieldKind.forwarded && kind !== FieldKind.user) return false
    if (isPublicClient(added)) return false
    for (let id = this.first(kind); id !== NOT_FOUND; id = this.next(id)) {
      if (!isPublicClient(id) && isOtherValue(view, kind, start, end, this.start(id), this.end(id))) return true
    }
    return false
  }

  /** Whether a field that names the client or the host has two values. `isForwarded`: or the original client. */
  isContradictory(isForwarded: boolean): boolean {
    return (this.#conflicts & (isForwarded ? CONTRADICTORY | (1 << FieldKind.forwarded) : CONTRADICTORY)) !== 0
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

  /** The original client if the source names it, else the first field of the client's role that has an address. */
  takeClient(line: LogLine): boolean {
    for (let id = this.first(FieldKind.forwarded); id !== NOT_FOUND; id = this.next(id))
      if (line.takeForwarded(this.start(id), this.end(id))) return true
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
    for (let id = this.first(FieldKind.user); id !== NOT_FOUND && !this.#hasTwoUsers; id = this.next(id)) {
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
      const found = line.takeHostOf(this.start(id), this.end(id))
      if (found === Verdict.event) return found
      if (found === Verdict.skip) verdict = found
    }
    return verdict
  }
}

/** End of the first address of a list. */
function firstEnd(view: DataView, start: number, end: number): number {
  let at = start
  while (at < end && view.getUint8(at) !== COMMA) at++
  return at
}

function isOtherValue(
  view: DataView,
  kind: FieldKind,
  start: number,
  end: number,
  otherStart: number,
  otherEnd: number,
): boolean {
  if (kind === FieldKind.client) return isOtherAddress(view, start, end, otherStart, otherEnd)
  if (kind === FieldKind.user) return !isSameUser(view, start, end, otherStart, otherEnd)
  return !isSameText(view, start, firstEnd(view, start, end), otherStart, firstEnd(view, otherStart, otherEnd))
}

/** Whether one is the other with its domain: `jdoe`, `CORP\jdoe`, `jdoe@example.com`. */
function isSameUser(view: DataView, start: number, end: number, otherStart: number, otherEnd: number): boolean {
  const bytes = Math.min(end - start, otherEnd - otherStart)
  return (
    isSameText(view, start, start + bytes, otherStart, otherStart + bytes) ||
    isSameText(view, end - bytes, end, otherEnd - bytes, otherEnd)
  )
}

/** The address after translation (Zscaler), which is next to the client's own. */
function isPublicClient(id: number): boolean {
  return id === PUBLIC_CLIENT_FIELD || id === LAST_CLIENT
}
const LAST_CLIENT = FieldKind.client * FIELD_RANKS + FIELD_RANKS - 1

/** Whether both are addresses of one family, and differ: a record may have one of each. */
function isOtherAddress(view: DataView, start: number, end: number, otherStart: number, otherEnd: number): boolean {
  const [stop, otherStop] = [endBeforePort(view, start, end), endBeforePort(view, otherStart, otherEnd)]
  const family = addressKind(view, start, stop)
  if (family === AddressKind.none || family !== addressKind(view, otherStart, otherStop)) return false
  return !isSameText(view, start, stop, otherStart, otherStop)
}

const HOST_KINDS = [FieldKind.url, FieldKind.host, FieldKind.own] as const

/** As NameTable reads keys: only letters and digits count (`.url`, `URL`). */
function isSameName(view: DataView, at: number, end: number, otherAt: number, otherEnd: number): boolean {
  for (;;) {
    while (at < end && !isLetterOrDigit(view.getUint8(at))) at++
    while (otherAt < otherEnd && !isLetterOrDigit(view.getUint8(otherAt))) otherAt++
    if (at >= end || otherAt >= otherEnd) return at >= end && otherAt >= otherEnd
    // Bit 5 tells capitals and small letters apart, and is set in digits.
    if ((view.getUint8(at++) | 0x20) !== (view.getUint8(otherAt++) | 0x20)) return false
  }
}

const isLetterOrDigit = (byte: number): boolean => isLetter(byte) || isDigit(byte)
