import { endOfValue } from '../kernel/event/msgpack.ts'
import { numberEnd, stringBytes, stringStart, wholeNumber } from '../kernel/event/packed-event.ts'
import { RECORD_HEADER_BYTES, sealInPlace } from '../kernel/lmdb/record.ts'

/*
 * The evidence of a platform and day in msgpack, read and written in place. Scans read and write
 * thousands of these records. Unpacked, each would be six objects whose properties are the names of
 * hosts, and V8 keeps a hidden class for each new set of properties.
 *
 * A map of the fields below, which may be in any order. Other fields are read by Family.
 */
const NUMBER_FIELDS = [
  'firstSeenMs',
  'lastSeenMs',
  'matches',
  'used',
  'blocked',
  'otherNames',
  'domainStrength',
  'specificity',
  'bytesSent',
  'bytesReceived',
] as const
const COUNT_FIELDS = ['byMethod', 'bySource', 'byRole', 'byPurpose', 'byAccess', 'byName'] as const
const CLIENT_FIELDS = ['clients', 'interactiveClients', 'apiClients'] as const

type NumberField = (typeof NUMBER_FIELDS)[number]
type CountField = (typeof COUNT_FIELDS)[number]
type ClientField = (typeof CLIENT_FIELDS)[number]

const FIELDS = [...NUMBER_FIELDS, ...COUNT_FIELDS, ...CLIENT_FIELDS]
const FIRST_COUNT = NUMBER_FIELDS.length
const FIRST_CLIENTS = FIRST_COUNT + COUNT_FIELDS.length
const FIELD_BYTES = FIELDS.map((field) => Buffer.from(field))

const FIXED_MAP = 0x80
const MAP_16 = 0xde
const FIXED_MAP_MAX = 15
const FIXED_STRING = 0xa0
const FIXED_STRING_MAX = 31
const STRING_8 = 0xd9
const BIN_8 = 0xc4
const BIN_16 = 0xc5
const UINT_8 = 0xcc
const UINT_16 = 0xcd
const UINT_32 = 0xce
const FLOAT_64 = 0xcb

/** Counts by key, in the order of the record. */
export class PackedCounts {
  readonly keys: string[] = []
  readonly counts: number[] = []
}

/** Reads one record after the other without an object per record. */
export class EvidenceReader implements Readonly<Record<NumberField, number>> {
  firstSeenMs = 0
  lastSeenMs = 0
  matches = 0
  used = 0
  blocked = 0
  otherNames = 0
  domainStrength = 0
  specificity = 0
  bytesSent = 0
  bytesReceived = 0
  readonly byMethod = new PackedCounts()
  readonly bySource = new PackedCounts()
  readonly byRole = new PackedCounts()
  readonly byPurpose = new PackedCounts()
  readonly byAccess = new PackedCounts()
  readonly byName = new PackedCounts()
  /** Views of the record. */
  clients: Uint8Array | undefined
  interactiveClients: Uint8Array | undefined
  apiClients: Uint8Array | undefined

  /** false: not in a form that is common, so nothing read is valid. */
  read(payload: Buffer): boolean {
    const view = new DataView(payload.buffer, payload.byteOffset, payload.length)
    const end = payload.length
    if (end < 3) return false
    for (const field of COUNT_FIELDS) this[field].keys.length = 0
    this.bytesSent = 0
    this.bytesReceived = 0
    this.interactiveClients = undefined
    this.apiClients = undefined
    const isLong = view.getUint8(0) === MAP_16
    if (!isLong && view.getUint8(0) >> 4 !== FIXED_MAP >> 4) return false
    let required = 0
    let field = -1
    let at = isLong ? 3 : 1
    for (let pairs = isLong ? view.getUint16(1) : view.getUint8(0) & 0xf; pairs > 0; pairs--) {
      if (endOfValue(view, at, end) === -1) return false
      field = fieldAt(payload, view, at, field + 1)
      if (field === -1) return false
      const valueAt = stringStart(view, at) + stringBytes(view, at)
      if (field < FIRST_COUNT) at = this.#readNumber(view, valueAt, end, FIELDS[field] as NumberField)
      else if (field < FIRST_CLIENTS) {
        at = readCounts(payload, view, valueAt, end, this[FIELDS[field] as CountField])
      } else at = this.#readClients(payload, view, valueAt, end, FIELDS[field] as ClientField)
      if (at === -1) return false
      required |= 1 << field
    }
    return (required & REQUIRED) === REQUIRED
  }

  #readNumber(view: DataView, at: number, end: number, field: NumberField): number {
    const next = numberEnd(view, at, end)
    if (next === -1) return -1
    this[field] = view.getUint8(at) === FLOAT_64 ? view.getFloat64(at + 1) : wholeNumber(view, at)
    return next
  }

  #readClients(payload: Buffer, view: DataView, at: number, end: number, field: ClientField): number {
    const next = endOfValue(view, at, end)
    if (next === -1) return -1
    const format = view.getUint8(at)
    if (format !== BIN_8 && format !== BIN_16) return -1
    this[field] = payload.subarray(at + (format === BIN_8 ? 2 : 3), next)
    return next
  }
}

/** Fields that a record has only if they are not 0. */
const isOptionalNumber = (field: string): boolean => field === 'bytesSent' || field === 'bytesReceived'

/** Records of early releases have no sources. */
const REQUIRED = FIELDS.reduce((bits, field, index) => {
  const isOptional =
    isOptionalNumber(field) || field === 'bySource' || field === 'interactiveClients' || field === 'apiClients'
  return isOptional ? bits : bits | (1 << index)
}, 0)

/** Returns the offset after the counts. -1: not in a form that is common. */
function readCounts(payload: Buffer, view: DataView, mapAt: number, end: number, into: PackedCounts): number {
  if (mapAt + 3 > end) return mapAt < end && view.getUint8(mapAt) === FIXED_MAP ? mapAt + 1 : -1
  const isLong = view.getUint8(mapAt) === MAP_16
  if (!isLong && view.getUint8(mapAt) >> 4 !== FIXED_MAP >> 4) return -1
  let at = mapAt + (isLong ? 3 : 1)
  for (let pairs = isLong ? view.getUint16(mapAt + 1) : view.getUint8(mapAt) & 0xf; pairs > 0; pairs--) {
    if (endOfValue(view, at, end) === -1) return -1
    const start = stringStart(view, at)
    if (start === -1) return -1
    const numberAt = start + stringBytes(view, at)
    at = numberEnd(view, numberAt, end)
    if (at === -1) return -1
    const count = wholeNumber(view, numberAt)
    if (count === -1) return -1
    into.counts[into.keys.length] = count
    into.keys.push(payload.toString('utf8', start, numberAt))
  }
  return at
}

/**
 * The index in FIELDS of the key at `at`, whose end was checked, probably `expected`. -1: another
 * key, or no string.
 */
function fieldAt(payload: Buffer, view: DataView, at: number, expected: number): number {
  const start = stringStart(view, at)
  if (start === -1) return -1
  const length = stringBytes(view, at)
  for (let step = 0; step < FIELD_BYTES.length; step++) {
    const field = (expected + step) % FIELD_BYTES.length
    const name = FIELD_BYTES[field] as Buffer
    if (name.length !== length) continue
    let same = 0
    while (same < length && name[same] === payload[start + same]) same++
    if (same === length) return field
  }
  return -1
}

/** What a record is made of. */
export interface EvidenceToPack extends Readonly<Record<NumberField, number>> {
  readonly byMethod: ReadonlyMap<string, number>
  readonly bySource: ReadonlyMap<string, number>
  readonly byRole: ReadonlyMap<string, number>
  readonly byPurpose: ReadonlyMap<string, number>
  readonly byAccess: ReadonlyMap<string, number>
  readonly byName: ReadonlyMap<string, number>
}

export interface ClientSketches {
  readonly clients: Uint8Array
  readonly interactiveClients?: Uint8Array
  readonly apiClients?: Uint8Array
}

/** A name has at most 253 bytes. */
const PAIR_BYTES_MAX = 2 + 255 + 9
const START_BYTES = 64 * 1024
let scratch = Buffer.allocUnsafe(START_BYTES)
let scratchView = new DataView(scratch.buffer, scratch.byteOffset, scratch.length)
let end = 0

/** Packs a record, and seals it with this version. */
export function packEvidence(recordVersion: number, evidence: EvidenceToPack, sketches: ClientSketches): Buffer {
  end = RECORD_HEADER_BYTES
  const { clients, interactiveClients, apiClients } = sketches
  const optional = (interactiveClients === undefined ? 0 : 1) + (apiClients === undefined ? 0 : 1)
  const numbers = NUMBER_FIELDS.filter((field) => evidence[field] !== 0 || !isOptionalNumber(field))
  putMapHeader(numbers.length + COUNT_FIELDS.length + 1 + optional)
  for (const field of numbers) {
    putText(field)
    putNumber(evidence[field])
  }
  for (const field of COUNT_FIELDS) {
    putText(field)
    const counts = evidence[field]
    putMapHeader(counts.size)
    for (const [key, count] of counts) {
      putText(key)
      putNumber(count)
    }
  }
  putClients('clients', clients)
  if (interactiveClients !== undefined) putClients('interactiveClients', interactiveClients)
  if (apiClients !== undefined) putClients('apiClients', apiClients)
  const record = Buffer.allocUnsafe(end)
  record.set(scratch.subarray(0, end))
  return sealInPlace(recordVersion, record)
}

function reserve(bytes: number): void {
  if (end + bytes <= scratch.length) return
  const longer = Buffer.allocUnsafe(2 * (end + bytes))
  longer.set(scratch.subarray(0, end))
  scratch = longer
  scratchView = new DataView(longer.buffer, longer.byteOffset, longer.length)
}

function putMapHeader(size: number): void {
  reserve(3)
  if (size <= FIXED_MAP_MAX) {
    scratch[end++] = FIXED_MAP | size
    return
  }
  scratch[end] = MAP_16
  scratchView.setUint16(end + 1, size)
  end += 3
}

/** ASCII, at most 255 characters. */
function putText(text: string): void {
  reserve(PAIR_BYTES_MAX)
  const { length } = text
  if (length > FIXED_STRING_MAX) scratch[end++] = STRING_8
  scratch[end++] = length > FIXED_STRING_MAX ? length : FIXED_STRING | length
  for (let index = 0; index < length; index++) scratch[end++] = text.charCodeAt(index)
}

function putNumber(value: number): void {
  if (!Number.isInteger(value) || value < 0 || value > 0xffff_ffff) {
    scratch[end] = FLOAT_64
    scratchView.setFloat64(end + 1, value)
    end += 9
  } else if (value < 0x80) scratch[end++] = value
  else if (value < 0x100) {
    scratch[end++] = UINT_8
    scratch[end++] = value
  } else if (value < 0x1_0000) {
    scratch[end] = UINT_16
    scratchView.setUint16(end + 1, value)
    end += 3
  } else {
    scratch[end] = UINT_32
    scratchView.setUint32(end + 1, value)
    end += 5
  }
}

function putClients(field: ClientField, bytes: Uint8Array): void {
  putText(field)
  reserve(3 + bytes.length)
  if (bytes.length < 0x100) {
    scratch[end++] = BIN_8
    scratch[end++] = bytes.length
  } else {
    scratch[end] = BIN_16
    scratchView.setUint16(end + 1, bytes.length)
    end += 3
  }
  scratch.set(bytes, end)
  end += bytes.length
}
