import { type Event, METHODS, type Method } from '../../engine/event/event.ts'
import { Fault } from '../../engine/process/error-codes.ts'

/** An event before the outbox has given it an id. */
export type NewEvent = Omit<Event, 'id'>

/*
 * The form of an event in the outbox; numbers little-endian. Its id is not stored: it is made of the outbox's instance and the entry's sequence.
 * Where an event is made and read half a million times a second, msgpack takes three times as long.
 *
 *   offset  width  what
 *   0       1      FORM
 *   1       1      method: index in METHODS
 *   2       1      length of the client's text, in bytes
 *   3       2      length of the name, in bytes
 *   5       8      first seen, f64, milliseconds since 1970
 *   13      8      last seen, f64
 *   21      4      count
 *   25      n      client, then name: Latin-1
 */
const FORM = 1
const METHOD_OFFSET = 1
const CLIENT_BYTES_OFFSET = 2
const NAME_BYTES_OFFSET = 3
const FIRST_SEEN_OFFSET = 5
const LAST_SEEN_OFFSET = 13
const COUNT_OFFSET = 21
const HEADER_BYTES = 25

/** Client and name are ASCII: an address as text, and a name as decode/name-rows.ts has it. */
export function packWaiting({ name, client, method, firstSeenMs, lastSeenMs, count }: NewEvent): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + client.length + name.length)
  bytes[0] = FORM
  bytes[METHOD_OFFSET] = METHODS.indexOf(method)
  bytes[CLIENT_BYTES_OFFSET] = client.length
  bytes.writeUInt16LE(name.length, NAME_BYTES_OFFSET)
  bytes.writeDoubleLE(firstSeenMs, FIRST_SEEN_OFFSET)
  bytes.writeDoubleLE(lastSeenMs, LAST_SEEN_OFFSET)
  bytes.writeUInt32LE(count, COUNT_OFFSET)
  bytes.write(client, HEADER_BYTES, 'latin1')
  bytes.write(name, HEADER_BYTES + client.length, 'latin1')
  return bytes
}

/**
 * The event in an entry of the outbox, under the id that it has there.
 *
 * @throws Fault STORE_VERSION.
 */
export function unpackWaiting(bytes: Buffer, id: string): Event {
  if (bytes[0] !== FORM) {
    throw new Fault('STORE_VERSION', `waiting event: found form ${bytes[0]}, this release reads up to ${FORM}`)
  }
  const nameAt = HEADER_BYTES + (bytes[CLIENT_BYTES_OFFSET] ?? 0)
  return {
    id,
    name: bytes.toString('latin1', nameAt, nameAt + bytes.readUInt16LE(NAME_BYTES_OFFSET)),
    client: bytes.toString('latin1', HEADER_BYTES, nameAt),
    method: METHODS[bytes[METHOD_OFFSET] ?? 0] as Method,
    firstSeenMs: bytes.readDoubleLE(FIRST_SEEN_OFFSET),
    lastSeenMs: bytes.readDoubleLE(LAST_SEEN_OFFSET),
    count: bytes.readUInt32LE(COUNT_OFFSET),
  }
}
