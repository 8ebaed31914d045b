import { isIP } from 'node:net'
import { canonicalName, NAME_CHARS_MAX } from '../../../registry/domain-name.ts'
import { isPseudonym } from './client.ts'
import { type CoverageReport, coverageReportToJson } from './coverage-report.ts'
import { MsgpackReader, pack } from './msgpack.ts'
import type { ShapeLimits } from './shape.ts'

/**
 * How a name was seen: in a DNS query, a TLS or QUIC ClientHello, or the log of another device. Or
 * inferred from a DNS answer: the ClientHello had no readable name, and the client had asked for
 * exactly one name of the server's address. dns_alias: the target of a CNAME that is a platform's
 * name, where the question is not.
 */
export const READ_METHODS = ['dns', 'tls', 'quic', 'log'] as const
export const METHODS = [...READ_METHODS, 'tls_inferred', 'quic_inferred', 'dns_alias'] as const
export type Method = (typeof METHODS)[number]
/** The method of the packet from which a name was inferred. */
export const READ_METHOD: Readonly<Partial<Record<Method, (typeof READ_METHODS)[number]>>> = {
  ...{ tls_inferred: 'tls', quic_inferred: 'quic', dns_alias: 'dns' },
}

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
  /**
   * The name of the user, as the log of another device has it: `jdoe`, `CORP\jdoe`,
   * `jdoe@example.com`. Omitted if unknown, in all forms of an event.
   */
  readonly user?: string
  /**
   * Bytes that the client sent and received, as the logging device counted them. Omitted if 0 or
   * unknown, in all forms of an event.
   */
  readonly bytesSent?: number
  readonly bytesReceived?: number
}

export const EVENT_ID_HEX_DIGITS = 32
const ID_PATTERN = /^[0-9a-f]{32}$/
/** 9999-12-31: the last instant with a four-digit year in ISO 8601. */
export const TIME_MS_MAX = 253_402_300_799_999
/** Maximum number of matches in one event. */
export const EVENT_COUNT_MAX = 0xffff_ffff
/** Maximum length of a user name, in bytes of UTF-8. */
export const USER_BYTES_MAX = 128
/** Maximum number of bytes sent or received in one event: 15 digits, as logs are read. */
export const TRANSFERRED_BYTES_MAX = 999_999_999_999_999

/** The id of the event with this sequence (from 1) of a collector instance (16 hex digits). */
export function eventId(instance: string, sequence: number): string {
  return instance + sequence.toString(16).padStart(16, '0')
}

/** The parts of an id: instance as 16 hex digits, sequence as a number. */
export function eventIdParts(id: string): { instance: string; sequence: number } {
  return { instance: id.slice(0, 16), sequence: Number.parseInt(id.slice(16), 16) }
}

/** The parts of an event, unchecked. A missing optional part is undefined. */
type UncheckedEvent = { readonly [part in keyof Event]-?: unknown }

/**
 * Checks the parts of an event. Returns the event, or an error that names the wrong field, the
 * found and the expected value. Hand-written instead of zod, because it runs once per event: 0.2 us
 * instead of 2 us. A stored event may have pseudonyms.
 */
function checkedEvent(parts: UncheckedEvent, isStored = false): Event | string {
  const { id, name, client, method, firstSeenMs, lastSeenMs, count } = parts
  const { blocked = 0, user = '', bytesSent = 0, bytesReceived = 0 } = parts
  if (typeof id !== 'string' || !ID_PATTERN.test(id)) {
    return `id: expected ${EVENT_ID_HEX_DIGITS} lower-case hex digits, found ${shown(id)}`
  }
  const sequence = eventIdParts(id).sequence
  if (sequence < 1 || sequence > Number.MAX_SAFE_INTEGER)
    return `id: expected a sequence from 1 to 2^53-1, found ${shown(id)}`
  const canonical = typeof name === 'string' ? canonicalName(name) : undefined
  if (canonical === undefined)
    return `name: expected a host name of 1 to ${NAME_CHARS_MAX} characters, found ${shown(name)}`
  if (typeof client !== 'string' || (isIP(client) === 0 && !(isStored && isPseudonym(client))))
    return `client: expected an IP address, found ${shown(client)}`
  if (!METHODS.includes(method as Method))
    return `method: expected one of ${METHODS.join(', ')}, found ${shown(method)}`
  if (!isTime(firstSeenMs)) return `first_seen: expected ${A_TIME}, found ${shown(firstSeenMs)}`
  if (!isTime(lastSeenMs)) return `last_seen: expected ${A_TIME}, found ${shown(lastSeenMs)}`
  if (lastSeenMs < firstSeenMs) return 'last_seen: expected a time not before first_seen'
  if (!isWholeNumber(count, EVENT_COUNT_MAX) || count < 1) {
    return `count: expected a whole number from 1 to ${EVENT_COUNT_MAX}, found ${shown(count)}`
  }
  if (!isWholeNumber(blocked, count)) {
    return `blocked: expected a whole number from 0 to count, found ${shown(blocked)}`
  }
  // The error does not repeat the name of a person: errors are logged.
  const isUser = user === '' || (typeof user === 'string' && (isUserName(user) || (isStored && isPseudonym(user))))
  if (!isUser) return `user: expected ${A_USER}`
  if (!isWholeNumber(bytesSent, TRANSFERRED_BYTES_MAX))
    return `bytes_sent: expected ${A_BYTE_COUNT}, found ${shown(bytesSent)}`
  if (!isWholeNumber(bytesReceived, TRANSFERRED_BYTES_MAX))
    return `bytes_received: expected ${A_BYTE_COUNT}, found ${shown(bytesReceived)}`
  return {
    ...{ id, name: canonical, client, method: method as Method, firstSeenMs, lastSeenMs, count },
    ...(blocked > 0 ? { blocked } : {}),
    ...(user === '' ? {} : { user }),
    ...(bytesSent > 0 ? { bytesSent } : {}),
    ...(bytesReceived > 0 ? { bytesReceived } : {}),
  }
}

/** Control and format characters, line separators, and the mark of bytes that are not UTF-8. */
const NOT_IN_USER = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029\ufffd]/u

/** Whether an event can have this user name. */
export function isUserName(text: string): boolean {
  return (
    text !== '' && text.length <= USER_BYTES_MAX && Buffer.byteLength(text) <= USER_BYTES_MAX && !NOT_IN_USER.test(text)
  )
}

const A_USER = `text of at most ${USER_BYTES_MAX} bytes of UTF-8 without control characters`
const A_BYTE_COUNT = `a whole number from 0 to ${TRANSFERRED_BYTES_MAX}`
const A_TIME = 'a time from 1970 to 9999 such as 2026-11-20T09:15:02Z'

function isTime(value: unknown): value is number {
  return isWholeNumber(value, TIME_MS_MAX)
}

function isWholeNumber(value: unknown, max: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max
}

const SHOWN_CHARACTERS_MAX = 48

/** A value for an error message: short and on one line. */
function shown(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return value instanceof Uint8Array ? 'bytes' : 'an object'
  if (typeof value !== 'string') return String(value)
  const text = JSON.stringify(value.slice(0, SHOWN_CHARACTERS_MAX))
  return value.length <= SHOWN_CHARACTERS_MAX ? text : `${text.slice(0, -1)}…"`
}

/*
 * The forms of an event.
 *
 *   stored   msgpack array [id: bin 16, name, client, method: index in METHODS, first: ms,
 *            span: ms, count, blocked?, user?, bytes sent?, bytes received?] in a record
 *            (lmdb/record.ts) with version byte and checksum. An event with a user or byte counts
 *            has all eleven columns, with 0 or '' where it has no value; any other event has seven
 *            or eight, so that it takes no more bytes and no more time than without these columns
 *   batch    msgpack array [version = 1, [event, ...], coverage?] with the same event arrays;
 *            coverage is a map, the report of coverage-report.ts
 *   JSON     { "id", "name", "client", "method", "first_seen", "last_seen", "count", "blocked"?,
 *            "user"?, "bytes_sent"?, "bytes_received"? }
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
const EVENT_COLUMNS_MAX = 11
const ID_BYTES = 16

type EventColumns = [Uint8Array, string, string, number, number, number, number, ...optional: (number | string)[]]

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
  const { blocked = 0, user = '', bytesSent = 0, bytesReceived = 0 } = event
  if (user !== '' || bytesSent > 0 || bytesReceived > 0) columns.push(blocked, user, bytesSent, bytesReceived)
  else if (blocked > 0) columns.push(blocked)
  return columns
}

/** Reads the next value as an event. Returns an error, and skips the value, if it is not one. */
function readEvent(reader: MsgpackReader, isStored = false): Event | string {
  const { at } = reader
  const length = reader.list()
  if (length < EVENT_COLUMNS || length > EVENT_COLUMNS_MAX) {
    reader.at = at
    const found = reader.value()
    return `expected an array of ${EVENT_COLUMNS} to ${EVENT_COLUMNS_MAX}, found ${length < 0 ? shown(found) : length}`
  }
  const columns = Array.from({ length }, () => reader.value())
  const [id, name, client, method, first, span, count, blocked, user, bytesSent, bytesReceived] = columns
  return checkedEvent(
    {
      id: id instanceof Uint8Array ? Buffer.from(id).toString('hex', 0, ID_BYTES + 1) : id,
      name,
      client,
      method: typeof method === 'number' ? METHODS[method] : method,
      firstSeenMs: first,
      lastSeenMs: typeof first === 'number' && typeof span === 'number' ? first + span : span,
      count,
      blocked,
      user,
      bytesSent,
      bytesReceived,
    },
    isStored,
  )
}

export function packEvent(event: Event): Buffer {
  return pack(columnsOf(event))
}

/** Returns the event that packEvent wrote, or an error. `isStored`: it may have pseudonyms. */
export function unpackEvent(bytes: Uint8Array, isStored = false): Event | string {
  const reader = new MsgpackReader(bytes)
  try {
    const event = readEvent(reader, isStored)
    return reader.at === bytes.length ? event : `byte ${reader.at}: expected the end of the event`
  } catch (error) {
    return `expected msgpack: ${(error as Error).message}`
  }
}

export function packBatch(events: readonly Event[], coverage?: CoverageReport): Buffer {
  const batch: unknown[] = [BATCH_VERSION, events.map(columnsOf)]
  if (coverage !== undefined) batch.push(coverageReportToJson(coverage))
  return pack(batch)
}

/**
 * A batch. A string is the error of an event. The coverage report is unchecked: `Report` is its
 * msgpack bytes or its JSON value.
 */
export interface UnpackedBatch<Report> {
  readonly events: readonly (Event | string)[]
  readonly coverage: Report | undefined
}

/**
 * The shape of a batch in JSON: each of its events has at most 23 commas, colons and braces, and
 * the coverage report has about 400, with all candidates.
 */
export function batchLimits(eventsMax: number, bytesMax: number): ShapeLimits {
  return { bytesMax, valuesMax: eventsMax * 24 + 1000, depthMax: 8 }
}

/** Returns the batch in these bytes, or an error. Builds nothing but its events. */
export function unpackBatch(bytes: Uint8Array, eventsMax: number): UnpackedBatch<Uint8Array> | string {
  const reader = new MsgpackReader(bytes)
  try {
    const parts = reader.list()
    const version = parts >= 2 && parts <= 3 ? reader.value() : undefined
    const count = version === BATCH_VERSION ? reader.list() : -1
    if (count < 0) return `expected the msgpack array [${BATCH_VERSION}, [event, ...], coverage?]`
    if (count > eventsMax) return tooMany(count, eventsMax)
    const events = Array.from({ length: count }, () => readEvent(reader))
    const coverageAt = reader.at
    if (parts === 3) reader.value()
    if (reader.at !== bytes.length) return `byte ${reader.at}: expected the end of the batch`
    return { events, coverage: parts === 3 ? bytes.subarray(coverageAt) : undefined }
  } catch (error) {
    return `expected msgpack: ${(error as Error).message}`
  }
}

function tooMany(found: number, eventsMax: number): string {
  return `too many events: expected at most ${eventsMax} events, found ${found}`
}

/** Whether a batch has too many events, values or bytes, so that smaller batches help. */
export function isTooMany(error: string): boolean {
  return error.startsWith('too many')
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
    ...(event.user ? { user: event.user } : {}),
    ...(event.bytesSent ? { bytes_sent: event.bytesSent } : {}),
    ...(event.bytesReceived ? { bytes_received: event.bytesReceived } : {}),
  }
}

export function eventFromJson(value: unknown): Event | string {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return `expected an object, found ${shown(value)}`
  const fields = value as Record<string, unknown>
  return checkedEvent({
    id: fields['id'],
    name: fields['name'],
    client: fields['client'],
    method: fields['method'],
    firstSeenMs: timeFromJson(fields['first_seen']),
    lastSeenMs: timeFromJson(fields['last_seen'] ?? fields['first_seen']),
    count: fields['count'] ?? 1,
    blocked: fields['blocked'] ?? 0,
    user: fields['user'] ?? '',
    bytesSent: fields['bytes_sent'] ?? 0,
    bytesReceived: fields['bytes_received'] ?? 0,
  })
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

/** `text` has passed a JsonCheck with batchLimits(). */
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
