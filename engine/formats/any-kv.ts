import { EQUALS, indexOfByte, NOT_FOUND, trimEnd } from './bytes.ts'
import { FIELD_RANKS, FieldKind, idsOf, NameTable, NO_FIELD, SYNONYMS } from './field-names.ts'
import { FoundFields } from './found-fields.ts'
import { takeRequest } from './generic-request.ts'
import { AddressKind, addressKind } from './ip-address.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { isInText, PairScanner } from './pair-fields.ts'

/*
 * A message of `key=value` pairs from a vendor that no other format knows, read by the names of its
 * keys (field-names.ts). Only characters that are letters or digits count in a key.
 */
export const anyKv: LogFormat = { id: 'any-kv', read, continues }

const PAIRS_MIN = 3

const CONTROL = FieldKind.control * FIELD_RANKS
const ZONE = CONTROL
/** Mail has its sender here; a connection may have an address. */
const FROM = CONTROL + 1
const { name: _mayBeAFile, ...NAMES } = SYNONYMS
const FIELDS = new NameTable({ ...NAMES, ...idsOf(FieldKind.control, 'tz/timezone/zone from') })

const scanner = new PairScanner(EQUALS)
const fields = new FoundFields()

/** A message with the same keys in the same order. */
function continues(line: LogLine, start: number, end: number): Verdict {
  if (line.memory.pairKeys === 0) return Verdict.unknown
  scan(line.view, start, end)
  return keys === line.memory.pairKeys && judge(line, start, end) === Verdict.event ? Verdict.event : Verdict.unknown
}

function read(line: LogLine, start: number, end: number): Verdict {
  if (indexOfByte(line.view, start, Math.min(end, start + CUE_BYTES), EQUALS) === NOT_FOUND) return Verdict.unknown
  line.memory.pairKeys = 0
  if (scan(line.view, start, end) < PAIRS_MIN) return Verdict.unknown
  line.memory.pairKeys = keys
  return judge(line, start, end)
}

function judge(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  let found = fields.takeTime(line)
  line.applyZone(fields.start(ZONE), fields.end(ZONE))
  if (found === TimeFound.none) found = line.takeTimeIfAny(start, end)
  if (found === TimeFound.impossible) return line.rejectTime()
  fields.takeAction(line)
  const verdict = takeRequest(line, fields, false)
  // Settings and texts have pairs, too: without a client and a time, the message need not be a log
  // record.
  if (line.clientEnd === line.clientStart) return found === TimeFound.none ? Verdict.unknown : Verdict.skip
  if (isFromSender(view)) return Verdict.noDomain
  if (verdict === Verdict.event && (fields.isContradictory(line.memory.isForwarded) || scanner.hasStrayQuote))
    return line.ambiguous('contradictory')
  if (verdict === Verdict.event && isInText(line, start, firstKey)) return line.ambiguous('text')
  line.takeUserAndBytes = takeUserAndBytes
  return scanner.unclosed ? line.whole(verdict, end) : verdict
}

function takeUserAndBytes(line: LogLine): void {
  fields.takeUserAndBytes(line)
  // A name in unclosed quotes may be incomplete.
  const { valueStart, valueEnd } = scanner
  if (scanner.unclosed && line.userEnd === trimEnd(line.view, valueStart, valueEnd)) line.userEnd = line.userStart
}

/** Of the message that was scanned last, as in SourceMemory. */
let keys = 0
let firstKey = 0

/** Notes the known fields. Returns the number of pairs, known and unknown. */
function scan(view: DataView, start: number, end: number): number {
  fields.clear()
  scanner.reset(view, start, end)
  let count = 0
  let hash = 0
  firstKey = start
  while (scanner.next()) {
    const { keyStart, keyEnd } = scanner
    if (count === 0) firstKey = keyStart
    count++
    hash = Math.imul(hash ^ hashOfKey(view, keyStart, keyEnd), HASH_FACTOR)
    const id = FIELDS.find(view, keyStart, keyEnd)
    if (id !== NO_FIELD) fields.noteUnescaped(view, id, keyStart, keyEnd, scanner.valueStart, scanner.valueEnd)
  }
  // Text before the pairs may belong to another format.
  keys = firstKey > start ? 0 : hash | 1
  return count
}

const HASH_FACTOR = 0x9e3779b1

/** Of the key's length, and its first and last four bytes. */
function hashOfKey(view: DataView, start: number, end: number): number {
  const length = end - start
  if (length >= 4) return Math.imul(view.getInt32(start), HASH_FACTOR) ^ view.getInt32(end - 4) ^ length
  let hash = length
  for (let at = start; at < end; at++) hash = (hash << 8) | view.getUint8(at)
  return hash
}

function isFromSender(view: DataView): boolean {
  return fields.has(FROM) && addressKind(view, fields.start(FROM), fields.end(FROM)) === AddressKind.none
}
