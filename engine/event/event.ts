import { isIP } from 'node:net'
import { Packr, Unpackr } from 'msgpackr'
import { canonicalName, NAME_CHARS_MAX } from '../../registry/domain-name.ts'
import { type CoverageReport, coverageReportToJson } from './coverage-report.ts'

/** How a name was seen: in a DNS query, a TLS or QUIC ClientHello, or the log of another device. */
export const METHODS = ['dns', 'tls', 'quic', 'log'] as const
export type Method = (typeof METHODS)[number]

/**
 * Counted matches of one client and name. The unit that the collector sends and that both programs
 * store.
 */
export interface Event {
  /**
   * 32 lower-case hex digits: the collector's instance (64 bits), then its sequence (64 bits, from
   * 1). Globally unique.
   */
  readonly id: string
  /** The name as seen on the wire, in its canonical form: lower case, A-labels, no trailing dot. */
  readonly name: string
  /** The client's IPv4 or IPv6 address as text. */
  readonly client: string
  readonly method: Method
  /** Milliseconds since 1970 in UTC. */
  readonly firstSeenMs: number
  readonly lastSeenMs: number
  /** Number of matches, from 1. */
  readonly count: number
  /**
   * Number of these matches that the logging device blocked. Omitted if 0, in all forms of an
   * event.
   */
  readonly blocked?: number
}

export const EVENT_ID_HEX_DIGITS = 32
const ID_PATTERN = /^[0-9a-f]{32}$/
/** 9999-12-31: the last instant with a four-digit year in ISO 8601. */
export const TIME_MS_MAX = 253_402_300_799_999
/** Maximum number of matches in one event. */
export const EVENT_COUNT_MAX = 0xffff_ffff

/** The id of the event with this sequence (from 1) of a collector instance (16 hex digits). */
export function eventId(instance: string, sequence: number): string {
  return instance + sequence.toString(16).padStart(16, '0')
}

/** The parts of an id: instance as 16 hex digits, sequence as a number. */
export function eventIdParts(id: string): { instance: string; sequence: number } {
  return { instance: id.slice(0, 16), sequence: Number.parseInt(id.slice(16), 16) }
}

/**
 * Checks the parts of an event. Returns the event, or an error that names the wrong field, the
 * found and the expected value. Hand-written instead of zod, because it runs once per event: 0.2 us
 * instead of 2 us.
 */
export function checkedEvent(
  id: unknown,
  name: unknown,
  client: unknown,
  method: unknown,
  firstSeenMs: unknown,
  lastSeenMs: unknown,
  count: unknown,
  blocked: unknown = 0,
): Event | string {
  if (typeof id !== 'string' || !ID_PATTERN.test(id)) {
    return `id: expected ${EVENT_ID_HEX_DIGITS} lower-case hex digits, found ${shown(id)}`
  }
  const sequence = eventIdParts(id).sequence
  if (sequence < 1 || sequence > Number.MAX_SAFE_INTEGER)
    return `id: expected a sequence from 1 to 2^53-1, found ${shown(id)}`
  const canonical = typeof name === 'string' ? canonicalName(name) : undefined
  if (canonical === undefined)
    return `name: expected a host name of 1 to ${NAME_CHARS_MAX} characters, found ${shown(name)}`
  if (typeof client !== 'string' || isIP(client) === 0) return `client: expected an IP address, found ${shown(client)}`
  if (!METHODS.includes(method as Method))
    return `method: expected one of ${METHODS.join(', ')}, found ${shown(method)}`
  if (!isTime(firstSeenMs)) return `first_seen: expected ${A_TIME}, found ${shown(firstSeenMs)}`
  if (!isTime(lastSeenMs)) return `last_seen: expected ${A_TIME}, found ${shown(lastSeenMs)}`
  if (lastSeenMs < firstSeenMs) return 'last_seen: expected a time not before first_seen'
  if (!Number.isInteger(count) || (count as number) < 1 || (count as number) > EVENT_COUNT_MAX) {
    return `count: expected a whole number from 1 to ${EVENT_COUNT_MAX}, found ${shown(count)}`
  }
  if (!Number.isInteger(blocked) || (blocked as number) < 0 || (blocked as number) > (count as number)) {
    return `blocked: expected a whole number from 0 to count, found ${shown(blocked)}`
  }
  const event = {
    id,
    name: canonical,
    client,
    method: method as Method,
    firstSeenMs,
    lastSeenMs,
    count: count as number,
  }
  return blocked === 0 ? event : { ...event, blocked: blocked as number }
}

const A_TIME = 'a time from 1970 to 9999 such as 2026-11-20T09:15:02Z'

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= TIME_MS_MAX
}

/** A value for an error message: short and on one line. */
function shown(value: unknown): string {
  if (value === undefined) return 'nothing'
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch {
    // A BigInt or a circular object.
  }
  text ??= typeof value
  return text.length <= 48 ? text : `${text.slice(0, 48)}…`
}

/*
 * The forms of an event.
 *
 *   stored   msgpack array [id: bin 16, name, client, method: index in METHODS, first: ms,
 *            span: ms, count, blocked?] in a record (lmdb/record.ts) with version byte and checksum
 *   batch    msgpack array [version = 1, [event, ...], coverage?] with the same event arrays;
 *            coverage is a map, the report of coverage-report.ts
 *   JSON     { "id", "name", "client", "method", "first_seen", "last_seen", "count", "blocked"? }
 *            with times in ISO 8601 UTC with milliseconds;
 *            a batch is { "events": [ ... ], "coverage": { ... } }
 *
 * The events of a batch may be empty. Its coverage report is optional, and the last element, so
 * that events are read the same with and without a report.
 *
 * ingest/batch-reader.ts reads batches in place and must be changed together with this file.
 */
export const BATCH_VERSION = 1
const EVENT_COLUMNS = 7
const EVENT_COLUMNS_MAX = 8

// useRecords false: other programs read the bytes. moreTypes false: no structured clone.
const packr = new Packr({ useRecords: false, moreTypes: false, variableMapSize: true })
const unpackr = new Unpackr({ useRecords: false, moreTypes: false, mapsAsObjects: true })

type EventColumns = [Uint8Array, string, string, number, number, number, number, ...blocked: number[]]

function columnsOf(event: Event): EventColumns {
  const columns: EventColumns = [
    Buffer.from(event.id, 'hex'),
    event.name,
    event.client,
    METHODS.indexOf(event.method),
    event.firstSeenMs,
    event.lastSeenMs - event.firstSeenMs,
    event.count,
  ]
  if (event.blocked) columns.push(event.blocked)
  return columns
}

function eventFromColumns(columns: unknown): Event | string {
  if (!Array.isArray(columns) || columns.length < EVENT_COLUMNS || columns.length > EVENT_COLUMNS_MAX) {
    return `expected an array of ${EVENT_COLUMNS} or ${EVENT_COLUMNS_MAX}, found ${Array.isArray(columns) ? `${columns.length}` : shown(columns)}`
  }
  const [id, name, client, method, first, span, count, blocked] = columns as unknown[]
  return checkedEvent(
    id instanceof Uint8Array ? Buffer.from(id).toString('hex') : id,
    name,
    client,
    typeof method === 'number' ? METHODS[method] : method,
    first,
    typeof first === 'number' && typeof span === 'number' ? first + span : span,
    count,
    blocked,
  )
}

export function packEvent(event: Event): Buffer {
  return packr.pack(columnsOf(event))
}

/** Returns the event that packEvent wrote, or an error. */
export function unpackEvent(bytes: Uint8Array): Event | string {
  try {
    return eventFromColumns(unpackr.unpack(bytes))
  } catch (error) {
    return `expected msgpack: ${(error as Error).message}`
  }
}

export function packBatch(events: readonly Event[], coverage?: CoverageReport): Buffer {
  const batch: unknown[] = [BATCH_VERSION, events.map(columnsOf)]
  if (coverage !== undefined) batch.push(coverageReportToJson(coverage))
  return packr.pack(batch)
}

/**
 * A batch. A string is the error of an event. The coverage report is unchecked: `Report` is its
 * msgpack bytes or its JSON value.
 */
export interface UnpackedBatch<Report> {
  readonly events: readonly (Event | string)[]
  readonly coverage: Report | undefined
}

/** Returns the batch in these bytes, or an error. */
export function unpackBatch(bytes: Uint8Array, eventsMax: number): UnpackedBatch<Uint8Array> | string {
  const starts: number[] = []
  const error = msgpackError(bytes, 0, starts)
  if (error !== undefined) return error
  const [versionAt, eventsAt, coverageAt] = starts
  const isArray = VALUES_EACH[bytes[0] ?? 0] === 1
  let version: unknown
  let events: unknown
  if (isArray && eventsAt !== undefined && starts.length <= 3) {
    try {
      version = unpackr.unpack(bytes.subarray(versionAt, eventsAt))
      // Separate from the report, so that an invalid report does not affect the events.
      events = unpackr.unpack(bytes.subarray(eventsAt, coverageAt))
    } catch (error) {
      return `expected msgpack: ${(error as Error).message}`
    }
  }
  if (version !== BATCH_VERSION || !Array.isArray(events)) {
    return `expected the msgpack array [${BATCH_VERSION}, [event, ...], coverage?]`
  }
  if (events.length > eventsMax) return tooMany(events.length, eventsMax)
  const coverage = coverageAt === undefined ? undefined : bytes.subarray(coverageAt)
  return { events: events.map(eventFromColumns), coverage }
}

/** Unpacks one value that msgpackError() has accepted. Passes on msgpackr's errors. */
export function unpackValue(bytes: Uint8Array): unknown {
  return unpackr.unpack(bytes)
}

/** Deeper than any batch: batch, list of events, event, and some levels for later versions. */
const MSGPACK_DEPTH_MAX = 8
/** Recorded offsets of a batch's elements: one more than a batch may have. */
const STARTS_MAX = 4

/**
 * msgpackr allocates the announced length of an array before it reads the first element, so a few
 * bytes of nested headers could allocate gigabytes. This function walks over the headers, in linear
 * time and without recursion, and refuses values that announce more elements than there are bytes
 * left, or that nest too deeply. Returns the error with its offset, or undefined. `outerDepth`: the
 * number of arrays around the value. `starts` receives the offsets of the first elements of the
 * outermost array. Formats: msgpack specification, "Formats".
 */
export function msgpackError(bytes: Uint8Array, outerDepth: number, starts: number[] = []): string | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const end = bytes.byteLength
  // Number of values still expected at each depth.
  const due = new Array<number>(MSGPACK_DEPTH_MAX + 1).fill(0)
  let depth = 0
  due[0] = 1
  let at = 0
  while (true) {
    while (depth > 0 && due[depth] === 0) depth--
    if (depth === 0 && due[0] === 0) return at === end ? undefined : `byte ${at}: expected the end of the batch`
    due[depth] = (due[depth] ?? 0) - 1
    if (at >= end) return `byte ${at}: expected a value, found the end`
    if (depth === 1 && starts.length < STARTS_MAX) starts.push(at)
    const format = view.getUint8(at)
    const lengthBytes = LENGTH_BYTES[format] ?? 0
    if (at + 1 + lengthBytes > end) return `byte ${at}: expected a length of ${lengthBytes} bytes, found the end`
    let length = FIXED_LENGTH[format] ?? 0
    if (lengthBytes === 1) length += view.getUint8(at + 1)
    else if (lengthBytes === 2) length += view.getUint16(at + 1)
    else if (lengthBytes === 4) length += view.getUint32(at + 1)
    at += 1 + lengthBytes
    const values = VALUES_EACH[format] ?? 0
    const needed = values === 0 ? length : length * values
    if (needed > end - at) return `byte ${at}: ${needed} more bytes announced than the ${end - at} that follow`
    if (values === 0) at += length
    else if (length > 0) {
      if (depth + outerDepth === MSGPACK_DEPTH_MAX) return `byte ${at}: nested deeper than ${MSGPACK_DEPTH_MAX}`
      due[++depth] = needed
    }
  }
}

/**
 * Returns the offset after the event at `at` if the event is an array of up to fifteen numbers,
 * strings, byte strings, booleans and nil that ends before `end`; else -1. Such an event can be
 * unpacked without the rest of its batch: it contains none of msgpackr's extensions.
 */
export function endOfPlainEvent(view: DataView, at: number, end: number): number {
  if (at >= end || view.getUint8(at) >> 4 !== 0x9) return -1
  let next = at + 1
  for (let columns = view.getUint8(at) & 0xf; columns > 0; columns--) {
    if (next >= end) return -1
    const format = view.getUint8(next)
    if (VALUES_EACH[format] !== 0 || IS_EXTENSION[format] !== 0) return -1
    const lengthBytes = LENGTH_BYTES[format] ?? 0
    if (next + 1 + lengthBytes > end) return -1
    let length = FIXED_LENGTH[format] ?? 0
    if (lengthBytes === 1) length += view.getUint8(next + 1)
    else if (lengthBytes === 2) length += view.getUint16(next + 1)
    else if (lengthBytes === 4) length += view.getUint32(next + 1)
    next += 1 + lengthBytes + length
    if (next > end) return -1
  }
  return next
}

/**
 * By format byte: number of length bytes that follow, additional fixed length, and values per unit
 * of length.
 */
const LENGTH_BYTES = new Uint8Array(256)
const FIXED_LENGTH = new Uint8Array(256)
const VALUES_EACH = new Uint8Array(256)
/** ext, fixext, and the byte that the specification never uses. */
const IS_EXTENSION = new Uint8Array(256)
for (const format of [0xc1, 0xc7, 0xc8, 0xc9, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8]) IS_EXTENSION[format] = 1
for (let low = 0; low < 16; low++) {
  FIXED_LENGTH[0x80 + low] = low // fixmap
  VALUES_EACH[0x80 + low] = 2
  FIXED_LENGTH[0x90 + low] = low // fixarray
  VALUES_EACH[0x90 + low] = 1
  FIXED_LENGTH[0xa0 + low] = low // fixstr, two ranges
  FIXED_LENGTH[0xb0 + low] = low + 16
}
for (const [bin, lengthBytes] of [
  [0xc4, 1],
  [0xc5, 2],
  [0xc6, 4],
  [0xd9, 1],
  [0xda, 2],
  [0xdb, 4],
] as const) {
  LENGTH_BYTES[bin] = lengthBytes
}
for (const [ext, lengthBytes] of [
  [0xc7, 1],
  [0xc8, 2],
  [0xc9, 4],
] as const) {
  LENGTH_BYTES[ext] = lengthBytes
  FIXED_LENGTH[ext] = 1 // the type
}
for (const [number, width] of [
  [0xca, 4],
  [0xcb, 8],
  [0xcc, 1],
  [0xcd, 2],
  [0xce, 4],
  [0xcf, 8],
  [0xd0, 1],
  [0xd1, 2],
  [0xd2, 4],
  [0xd3, 8],
  [0xd4, 2],
  [0xd5, 3],
  [0xd6, 5],
  [0xd7, 9],
  [0xd8, 17], // fixext: type and data
] as const) {
  FIXED_LENGTH[number] = width
}
for (const [array, lengthBytes, values] of [
  [0xdc, 2, 1],
  [0xdd, 4, 1],
  [0xde, 2, 2],
  [0xdf, 4, 2],
] as const) {
  LENGTH_BYTES[array] = lengthBytes
  VALUES_EACH[array] = values
}

const TOO_MANY = 'too many events'

function tooMany(found: number, eventsMax: number): string {
  return `${TOO_MANY}: expected at most ${eventsMax} events, found ${found}`
}

/** Whether the error of a batch is the number of its events, so that smaller batches can help. */
export function isTooManyEvents(error: string): boolean {
  return error.startsWith(TOO_MANY)
}

export function eventToJson(event: Event): Record<string, unknown> {
  return {
    id: event.id,
    name: event.name,
    client: event.client,
    method: event.method,
    first_seen: new Date(event.firstSeenMs).toISOString(),
    last_seen: new Date(event.lastSeenMs).toISOString(),
    count: event.count,
    ...(event.blocked ? { blocked: event.blocked } : {}),
  }
}

export function eventFromJson(value: unknown): Event | string {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return `expected an object, found ${shown(value)}`
  const fields = value as Record<string, unknown>
  return checkedEvent(
    fields['id'],
    fields['name'],
    fields['client'],
    fields['method'],
    timeFromJson(fields['first_seen']),
    timeFromJson(fields['last_seen'] ?? fields['first_seen']),
    fields['count'] ?? 1,
    fields['blocked'] ?? 0,
  )
}

/** RFC 3339 with optional seconds, and zones as they exist, up to 18 hours from UTC. */
const TIME_PATTERN =
  /^(\d{4})-(\d\d)-(\d\d)T(?:[01]\d|2[0-3]):[0-5]\d(?::(?:[0-5]\d|60)(?:\.\d+)?)?(?:Z|[+-](?:(?:0\d|1[0-7]):?[0-5]\d|18:?00))$/

/**
 * Returns milliseconds since 1970. Other values are returned unchanged and fail the check that
 * follows.
 */
function timeFromJson(value: unknown): unknown {
  const found = typeof value === 'string' ? TIME_PATTERN.exec(value) : null
  if (found === null) return value
  const [text, year, month, day] = found
  // Date.parse reads 30 February as 2 March.
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)))
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return value
  // A leap second (RFC 3339 §5.7) counts as the second before it, as in logs.
  const timeMs = Date.parse(text.replace(/:60(?=[.Z+-])/, ':59'))
  return Number.isNaN(timeMs) ? value : timeMs
}

export function batchFromJson(text: string, eventsMax: number): UnpackedBatch<unknown> | string {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return `expected JSON: ${(error as Error).message}`
  }
  const { events, coverage } = (value ?? {}) as { events?: unknown; coverage?: unknown }
  if (!Array.isArray(events)) return 'expected { "events": [ ... ] }'
  if (events.length > eventsMax) return tooMany(events.length, eventsMax)
  return { events: events.map(eventFromJson), coverage }
}
