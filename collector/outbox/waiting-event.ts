import { type Event, METHODS, type Method } from '../../engine/kernel/event/event.ts'
import type { Slices } from '../../engine/kernel/lmdb/queue-chunk.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'

/** An event before the outbox has given it an ID. */
export type NewEvent = Omit<Event, 'id'>

/*
 * The encoding of an event in the outbox; numbers are little-endian. The ID is not stored: it
 * derives from the outbox's instance and the entry's sequence. At half a million events a second,
 * msgpack takes three times as long.
 *
 *   offset  width  content
 *   0       1      FORM
 *   1       1      method: index in METHODS
 *   2       1      length of the client's text, in bytes
 *   3       2      length of the name, in bytes
 *   5       8      first seen, f64, milliseconds since 1970
 *   13      8      last seen, f64
 *   21      4      count
 *   25      n      client, then name: Latin-1
 *   .       4      only in FORM_BLOCKED: blocked count
 */
const FORM = 1
const FORM_BLOCKED = 2
const METHOD_OFFSET = 1
const CLIENT_BYTES_OFFSET = 2
const NAME_BYTES_OFFSET = 3
const FIRST_SEEN_OFFSET = 5
const LAST_SEEN_OFFSET = 13
const COUNT_OFFSET = 21
const HEADER_BYTES = 25
const BLOCKED_BYTES = 4

/**
 * Encodes events as entries of the outbox. Client and name are ASCII: the text of an address, and a
 * name of name-rows.ts.
 */
export function packWaiting(events: readonly NewEvent[]): Slices {
  const starts = new Uint32Array(events.length)
  const ends = new Uint32Array(events.length)
  let end = 0
  let index = 0
  for (const { client, name, blocked = 0 } of events) {
    starts[index] = end
    end += HEADER_BYTES + client.length + name.length + (blocked > 0 ? BLOCKED_BYTES : 0)
    ends[index++] = end
  }
  const bytes = Buffer.allocUnsafe(end)
  index = 0
  for (const event of events) pack(event, bytes, starts[index++] ?? 0)
  return { bytes, starts, ends, count: events.length }
}

function pack(event: NewEvent, bytes: Buffer, at: number): void {
  const { name, client, method, firstSeenMs, lastSeenMs, count, blocked = 0 } = event
  bytes[at] = blocked > 0 ? FORM_BLOCKED : FORM
  bytes[at + METHOD_OFFSET] = METHODS.indexOf(method)
  bytes[at + CLIENT_BYTES_OFFSET] = client.length
  bytes.writeUInt16LE(name.length, at + NAME_BYTES_OFFSET)
  bytes.writeDoubleLE(firstSeenMs, at + FIRST_SEEN_OFFSET)
  bytes.writeDoubleLE(lastSeenMs, at + LAST_SEEN_OFFSET)
  bytes.writeUInt32LE(count, at + COUNT_OFFSET)
  bytes.write(client, at + HEADER_BYTES, 'latin1')
  bytes.write(name, at + HEADER_BYTES + client.length, 'latin1')
  if (blocked > 0) bytes.writeUInt32LE(blocked, at + HEADER_BYTES + client.length + name.length)
}

/**
 * Decodes an entry of the outbox into the event with this ID.
 *
 * @throws Fault STORE_VERSION.
 */
export function unpackWaiting(bytes: Buffer, id: string): Event {
  const form = bytes[0]
  if (form !== FORM && form !== FORM_BLOCKED) {
    throw new Fault('STORE_VERSION', `waiting event: found form ${form}, this release reads up to ${FORM_BLOCKED}`)
  }
  const nameAt = HEADER_BYTES + (bytes[CLIENT_BYTES_OFFSET] ?? 0)
  const nameEnd = nameAt + bytes.readUInt16LE(NAME_BYTES_OFFSET)
  return {
    id,
    name: bytes.toString('latin1', nameAt, nameEnd),
    client: bytes.toString('latin1', HEADER_BYTES, nameAt),
    method: METHODS[bytes[METHOD_OFFSET] ?? 0] as Method,
    firstSeenMs: bytes.readDoubleLE(FIRST_SEEN_OFFSET),
    lastSeenMs: bytes.readDoubleLE(LAST_SEEN_OFFSET),
    count: bytes.readUInt32LE(COUNT_OFFSET),
    ...(form === FORM_BLOCKED ? { blocked: bytes.readUInt32LE(nameEnd) } : {}),
  }
}
