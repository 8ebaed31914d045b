import { ACCESS_KINDS, type AccessKind, type Contact } from '../../registry/contact.ts'
import { DAY_MS } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'

/*
 * The clients of one platform on one day (UTC), in one record:
 *
 *   varint   matches of other clients, those with the fewest matches
 *   of each client, in no order:
 *     u8       length of the client's text in bytes
 *     u8       length of the user's name in bytes; 0 if no log names a user
 *     text     address or pseudonym, ASCII
 *     text     user name, UTF-8
 *     u8       bits 0 to 3, methods: bit i is READ_METHODS[i] (event.ts)
 *              bits 4 to 7, access: bit 4 + i is ACCESS_KINDS[i] (registry/contact.ts)
 *     varint   matches, from 1
 *     varint   milliseconds from the last match to the end of the day
 *     varint   milliseconds from the first to the last match
 *     varint   bytes sent by the client
 *     varint   bytes received by the client
 *     varint   0: not known which matches were used, because schema 1 did not store it. Otherwise
 *              blocked matches + 1
 *     varint   touched matches; 0 if that is not known
 *
 * varint: unsigned LEB128 of an integer below 2^53, at most 8 bytes. A client with an IPv4 address
 * takes about 30 bytes.
 */
export const ACCESS_SHIFT = 4
const METHODS_MASK = (1 << ACCESS_SHIFT) - 1
const VARINT_BYTES_MAX = 8
const NUMBERS = 7
const CLIENT_BYTES_MAX = 3 + 2 * 255 + NUMBERS * VARINT_BYTES_MAX

/** Values of one client. Times in milliseconds since 1970. */
export interface ClientNumbers {
  /** Bit i is READ_METHODS[i]. */
  readonly methods: number
  /** Bit i is ACCESS_KINDS[i]. 0: no requested host shows how the platform is used. */
  readonly access: number
  readonly matches: number
  readonly firstSeenMs: number
  readonly lastSeenMs: number
  readonly bytesSent: number
  readonly bytesReceived: number
  /** Of the matches, those that a device blocked and that only touched. NaN: not known. */
  readonly blocked: number
  readonly touched: number
}

const bitOf = (kind: AccessKind): number => 1 << ACCESS_KINDS.indexOf(kind)

/** Bits of access by a person, and by the API. */
export const INTERACTIVE_BITS = bitOf('web') | bitOf('app')
export const API_BIT = bitOf('api')

/** The kinds of access of bits. */
export function kindsOf(access: number): readonly AccessKind[] {
  return KINDS_OF[access] ?? []
}

/** By all combinations of bits, because clients are many and combinations few. */
const KINDS_OF = Array.from({ length: 1 << ACCESS_KINDS.length }, (_, bits) =>
  ACCESS_KINDS.filter((_, bit) => (bits & (1 << bit)) !== 0),
)

/** The methods in the byte with methods and access. */
export function methodsIn(byte: number): number {
  return byte & METHODS_MASK
}

/** The access in the byte with methods and access. */
export function accessIn(byte: number): number {
  return byte >> ACCESS_SHIFT
}

/** The fields of rows and JSON for matches by contact. null: not known. */
export function contactFields({ used, blocked, touched }: Readonly<Record<Contact, number>>) {
  const known = (count: number): number | null => (Number.isNaN(count) ? null : count)
  return { used_matches: known(used), blocked_matches: known(blocked), touched_matches: known(touched) }
}

/** Reads a record client by client without an object per client. */
export class ClientReader implements ClientNumbers {
  readonly bytes: Uint8Array
  /** Matches of the clients that are not in the record. */
  readonly otherMatches: number
  /** Offsets of the current client's text, which is followed by the user's name. */
  clientStart = 0
  clientEnd = 0
  userEnd = 0
  methods = 0
  access = 0
  matches = 0
  firstSeenMs = 0
  lastSeenMs = 0
  bytesSent = 0
  bytesReceived = 0
  blocked = 0
  touched = 0
  readonly #dayEndMs: number
  readonly #hasContacts: boolean
  #at = 0

  /** @throws Fault STORE_DAMAGED, also from next() */
  constructor(bytes: Uint8Array, day: number, hasContacts = true) {
    this.bytes = bytes
    this.#hasContacts = hasContacts
    this.#dayEndMs = (day + 1) * DAY_MS
    this.otherMatches = this.#varint()
  }

  /** Reads the next client. false: there is none. */
  next(): boolean {
    const { bytes } = this
    const header = this.#at
    if (header === bytes.length) return false
    this.clientStart = header + 2
    this.clientEnd = this.clientStart + (bytes[header] ?? 0)
    this.userEnd = this.clientEnd + (bytes[header + 1] ?? 0)
    if (this.userEnd >= bytes.length) throw damaged(header)
    const bits = bytes[this.userEnd] ?? 0
    this.methods = methodsIn(bits)
    this.access = accessIn(bits)
    this.#at = this.userEnd + 1
    this.matches = this.#varint()
    this.lastSeenMs = this.#dayEndMs - this.#varint()
    this.firstSeenMs = this.lastSeenMs - this.#varint()
    this.bytesSent = this.#varint()
    this.bytesReceived = this.#varint()
    const blocked = this.#hasContacts ? this.#varint() : 0
    const touched = this.#hasContacts ? this.#varint() : 0
    this.blocked = blocked === 0 ? Number.NaN : blocked - 1
    this.touched = blocked === 0 ? Number.NaN : touched
    return true
  }

  /** Matches that used the platform. NaN: not known. */
  get used(): number {
    return this.matches - this.blocked - this.touched
  }

  get client(): string {
    return this.#text(this.clientStart, this.clientEnd)
  }

  /** '' if no log names a user. */
  get user(): string {
    return this.#text(this.clientEnd, this.userEnd)
  }

  #text(start: number, end: number): string {
    return Buffer.from(this.bytes.buffer, this.bytes.byteOffset + start, end - start).toString('utf8')
  }

  #varint(): number {
    const { bytes } = this
    let value = 0
    let unit = 1
    for (let at = this.#at; at < bytes.length && at < this.#at + VARINT_BYTES_MAX; at++) {
      const byte = bytes[at] ?? 0
      value += (byte & 0x7f) * unit
      if (byte < 0x80) {
        this.#at = at + 1
        return value
      }
      unit *= 0x80
    }
    throw damaged(this.#at)
  }
}

function damaged(at: number): Fault {
  return new Fault(
    'STORE_DAMAGED',
    `clients: byte ${at}: expected a client, found the end or a number that is too long`,
  )
}

/** Writes records, one after the other. Its memory is reused. */
export class ClientWriter {
  #bytes = new Uint8Array(64 * 1024)
  #at = 0
  #dayEndMs = 0
  /** Number of clients in the record. */
  count = 0

  begin(day: number): void {
    this.#at = 0
    this.#dayEndMs = (day + 1) * DAY_MS
    this.count = 0
  }

  /** Adds a client: its text in [start, clientEnd), and the user's name up to `userEnd`. */
  add(text: Uint8Array, start: number, clientEnd: number, userEnd: number, numbers: ClientNumbers): void {
    if (this.#at + CLIENT_BYTES_MAX > this.#bytes.length) this.#grow()
    const bytes = this.#bytes
    bytes[this.#at++] = clientEnd - start
    bytes[this.#at++] = userEnd - clientEnd
    for (let from = start; from < userEnd; from++) bytes[this.#at++] = text[from] ?? 0
    bytes[this.#at++] = numbers.methods | (numbers.access << ACCESS_SHIFT)
    this.#varint(numbers.matches)
    this.#varint(this.#dayEndMs - numbers.lastSeenMs)
    this.#varint(numbers.lastSeenMs - numbers.firstSeenMs)
    this.#varint(numbers.bytesSent)
    this.#varint(numbers.bytesReceived)
    this.#varint(Number.isNaN(numbers.blocked) ? 0 : numbers.blocked + 1)
    this.#varint(Number.isNaN(numbers.blocked) ? 0 : numbers.touched)
    this.count++
  }

  /** The record, in memory of its own. */
  end(otherMatches: number): Buffer {
    const clients = this.#at
    if (clients + VARINT_BYTES_MAX > this.#bytes.length) this.#grow()
    this.#varint(otherMatches)
    const bytes = this.#bytes
    return Buffer.concat([bytes.subarray(clients, this.#at), bytes.subarray(0, clients)])
  }

  /** A sum that is no longer exact stays at the largest exact number. */
  #varint(number: number): void {
    const bytes = this.#bytes
    let value = Math.min(number, Number.MAX_SAFE_INTEGER)
    while (value >= 0x80) {
      bytes[this.#at++] = (value % 0x80) | 0x80
      value = Math.floor(value / 0x80)
    }
    bytes[this.#at++] = value
  }

  #grow(): void {
    const longer = new Uint8Array(this.#bytes.length * 2)
    longer.set(this.#bytes)
    this.#bytes = longer
  }
}

/**
 * A record without the clients for which `isErased` returns true: their matches count as those of
 * other clients. undefined: the record has none.
 */
export function withoutClients(
  bytes: Uint8Array,
  day: number,
  isErased: (reader: ClientReader) => boolean,
): Buffer | undefined {
  const reader = new ClientReader(bytes, day)
  const writer = new ClientWriter()
  writer.begin(day)
  let erased = 0
  while (reader.next()) {
    if (isErased(reader)) erased += reader.matches
    else writer.add(bytes, reader.clientStart, reader.clientEnd, reader.userEnd, reader)
  }
  return erased === 0 ? undefined : writer.end(reader.otherMatches + erased)
}

/** Converts a record of schema 1, whose clients lack the last two numbers. */
export function withContacts(bytes: Uint8Array): Buffer {
  // Times are relative to the end of the day, so any day will do.
  const reader = new ClientReader(bytes, 0, false)
  const writer = new ClientWriter()
  writer.begin(0)
  while (reader.next()) writer.add(bytes, reader.clientStart, reader.clientEnd, reader.userEnd, reader)
  return writer.end(reader.otherMatches)
}
