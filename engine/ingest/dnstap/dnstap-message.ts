/*
 * dnstap messages (dnstap.proto of dnstap.info, in the protobuf wire format). Only a client's query
 * is a request: other messages are answers, or queries of the server itself.
 */

/** Fields of `Dnstap`. */
const IDENTITY = 1
const MESSAGE = 14
const TYPE = 15
const TYPE_MESSAGE = 1
/** Fields of `Message`. */
const MESSAGE_TYPE = 1
const QUERY_ADDRESS = 4
const RESPONSE_ADDRESS = 5
const QUERY_PORT = 6
const RESPONSE_PORT = 7
const QUERY_TIME_SECONDS = 8
const QUERY_TIME_NANOSECONDS = 9
const QUERY_MESSAGE = 10
const CLIENT_QUERY = 5

/** Protobuf wire types. */
const VARINT = 0
const FIXED_64 = 1
const BYTES = 2
const FIXED_32 = 5

export const DnstapKind = { clientQuery: 0, other: 1, malformed: 2 } as const
export type DnstapKind = (typeof DnstapKind)[keyof typeof DnstapKind]

/** The fields of a client's query. Offsets are of the view that was read. */
export class DnstapMessage {
  /** Name of the server, as bytes. Empty if it sends none. */
  identityStart = 0
  identityEnd = 0
  /** 4 or 16 bytes. */
  clientStart = 0
  clientEnd = 0
  clientPort = 0
  /** 4 or 16 bytes; empty if unknown. */
  serverStart = 0
  serverEnd = 0
  serverPort = 0
  /** Since 1970; 0 if unknown. */
  seconds = 0
  nanoseconds = 0
  /** The DNS message. */
  queryStart = 0
  queryEnd = 0
  #isMessage = false
  #isClientQuery = false
  /** Offset after the varint that was read last. */
  #at = 0

  /** Reads the bytes [start, end). */
  read(view: DataView, start: number, end: number): DnstapKind {
    this.identityEnd = this.identityStart = 0
    this.clientEnd = this.clientStart = 0
    this.serverEnd = this.serverStart = 0
    this.queryEnd = this.queryStart = 0
    this.clientPort = this.serverPort = this.seconds = this.nanoseconds = 0
    this.#isMessage = this.#isClientQuery = false
    if (!this.#readFields(view, start, end, false)) return DnstapKind.malformed
    if (!this.#isMessage || !this.#isClientQuery) return DnstapKind.other
    const clientBytes = this.clientEnd - this.clientStart
    const serverBytes = this.serverEnd - this.serverStart
    const isComplete = isAddress(clientBytes) && (serverBytes === 0 || isAddress(serverBytes))
    return isComplete && this.queryEnd > this.queryStart ? DnstapKind.clientQuery : DnstapKind.malformed
  }

  /** Returns false if the fields do not fill the bytes. Unknown fields are skipped. */
  #readFields(view: DataView, start: number, end: number, isInner: boolean): boolean {
    let at = start
    while (at < end) {
      const key = this.#varint(view, at, end)
      if (key < 0) return false
      const field = Math.floor(key / 8)
      const wireType = key & 7
      at = this.#at
      let value = 0
      let next = at
      switch (wireType) {
        case VARINT:
          value = this.#varint(view, at, end)
          if (value < 0) return false
          next = this.#at
          break
        case FIXED_64:
          next = at + 8
          break
        case FIXED_32:
          next = at + 4
          if (next <= end) value = view.getUint32(at, true)
          break
        case BYTES: {
          const bytes = this.#varint(view, at, end)
          if (bytes < 0) return false
          at = this.#at
          next = at + bytes
          break
        }
        default:
          return false
      }
      if (next > end) return false
      if (isInner) this.#takeInner(field, value, at, next)
      else if (field === MESSAGE && wireType === BYTES) {
        if (!this.#readFields(view, at, next, true)) return false
      } else if (field === TYPE) this.#isMessage = value === TYPE_MESSAGE
      else if (field === IDENTITY && wireType === BYTES) {
        this.identityStart = at
        this.identityEnd = next
      }
      at = next
    }
    return true
  }

  #takeInner(field: number, value: number, start: number, end: number): void {
    switch (field) {
      case MESSAGE_TYPE:
        this.#isClientQuery = value === CLIENT_QUERY
        return
      case QUERY_ADDRESS:
        this.clientStart = start
        this.clientEnd = end
        return
      case RESPONSE_ADDRESS:
        this.serverStart = start
        this.serverEnd = end
        return
      case QUERY_PORT:
        this.clientPort = value & 0xffff
        return
      case RESPONSE_PORT:
        this.serverPort = value & 0xffff
        return
      case QUERY_TIME_SECONDS:
        this.seconds = value
        return
      case QUERY_TIME_NANOSECONDS:
        this.nanoseconds = value
        return
      case QUERY_MESSAGE:
        this.queryStart = start
        this.queryEnd = end
        return
      default:
    }
  }

  /** Returns a negative number if the varint is incomplete or longer than 10 bytes. */
  #varint(view: DataView, start: number, end: number): number {
    let value = 0
    let factor = 1
    const limit = Math.min(end, start + 10)
    for (let at = start; at < limit; at++) {
      const byte = view.getUint8(at)
      value += (byte & 0x7f) * factor
      if (byte < 0x80) {
        this.#at = at + 1
        return value
      }
      factor *= 128
    }
    return -1
  }
}

function isAddress(bytes: number): boolean {
  return bytes === 4 || bytes === 16
}
