import { EQUALS, indexOfByte, NOT_FOUND, trimEnd } from './bytes.ts'
import { FIELD_RANKS, FieldKind, idsOf, NameTable, NO_FIELD, SYNONYMS } from './field-names.ts'
import { applyZone, FoundFields } from './found-fields.ts'
import { takeRequest } from './generic-request.ts'
import { AddressKind, addressKind } from './ip-address.ts'
import { PairScanner } from './key-value.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'

/*
 * A message of `key=value` pairs from a vendor that no other format knows, read by the names of its
 * keys (field-names.ts). Only characters that are letters or digits count in a key.
 */
export const anyKv: LogFormat = { id: 'any-kv', detect, parse, takeUserAndBytes, fallback: true }

const PAIRS_MIN = 3

const CONTROL = FieldKind.control * FIELD_RANKS
const ZONE = CONTROL
/** Mail has its sender here; a connection may have an address. */
const FROM = CONTROL + 1
const { name: _mayBeAFile, ...NAMES } = SYNONYMS
const FIELDS = new NameTable({ ...NAMES, ...idsOf(FieldKind.control, 'tz/timezone/zone from') })

const scanner = new PairScanner(EQUALS)
const fields = new FoundFields()

function detect({ view }: LogLine, start: number, end: number): boolean {
  return indexOfByte(view, start, Math.min(end, start + CUE_BYTES), EQUALS) !== NOT_FOUND
}

function parse(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  if (scan(view, start, end) < PAIRS_MIN) return Verdict.unknown
  let found = fields.takeTime(line)
  applyZone(line, fields.start(ZONE), fields.end(ZONE))
  if (found === TimeFound.none) found = line.takeTimeIfAny(start, end)
  if (found === TimeFound.impossible) return line.reject('time: expected a valid date and time')
  fields.takeAction(line)
  const verdict = takeRequest(line, fields, false)
  // Settings and texts have pairs, too: without a client and a time, the message need not be a log
  // record.
  if (line.clientEnd === line.clientStart) return found === TimeFound.none ? Verdict.unknown : Verdict.skip
  if (isFromSender(view)) return Verdict.noDomain
  if (verdict !== Verdict.event || !scanner.unclosed || !line.hostIsOpen(end)) return verdict
  return line.reject('host: expected a complete host, but the message was truncated')
}

function takeUserAndBytes(line: LogLine): void {
  fields.takeUserAndBytes(line)
  // A name in unclosed quotes may be incomplete.
  const { valueStart, valueEnd } = scanner
  if (scanner.unclosed && line.userEnd === trimEnd(line.view, valueStart, valueEnd)) line.userEnd = line.userStart
}

/** Notes the known fields. Returns the number of pairs, known and unknown. */
function scan(view: DataView, start: number, end: number): number {
  fields.clear()
  scanner.reset(view, start, end)
  let count = 0
  while (scanner.next()) {
    count++
    const id = FIELDS.find(view, scanner.keyStart, scanner.keyEnd)
    if (id !== NO_FIELD) fields.note(id, scanner.valueStart, scanner.valueEnd)
  }
  return count
}

function isFromSender(view: DataView): boolean {
  return fields.has(FROM) && addressKind(view, fields.start(FROM), fields.end(FROM)) === AddressKind.none
}
