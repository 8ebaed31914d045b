import { createDecipheriv } from 'node:crypto'
import { type InitialKeys, isUnreadVersion, type QuicVersion, quicVersion } from './quic-keys.ts'

/**
 * QUIC Initial packets of clients -> the bytes of their CRYPTO frames. Read: the versions of
 * quic-keys.ts, several packets in one datagram, CRYPTO frames in any order. Not read: 0-RTT,
 * Handshake and 1-RTT packets, whose keys are secret, and packets of servers. quic-streams.ts puts
 * the CRYPTO bytes in order.
 */

/**
 * Packet types, numbered alike for all versions. The first four are the long packet types of RFC
 * 9000 §17.2.
 */
export const QuicPacket = {
  initial: 0,
  zeroRtt: 1,
  handshake: 2,
  retry: 3,
  /** RFC 9000 §17.2.1 */
  versionNegotiation: 4,
  /** RFC 8999 defines the positions of the connection IDs. Nothing else is known. */
  unknownVersion: 5,
  /** RFC 9000 §17.3 */
  short: 6,
} as const
export type QuicPacket = (typeof QuicPacket)[keyof typeof QuicPacket]

/** Why the bytes are not a readable packet. */
export const QuicFault = {
  /** The bytes end before the header does. */
  truncated: -1,
  /** A connection ID that is too long, or a length that exceeds the datagram. */
  malformed: -2,
  notLongHeader: -3,
  /** The packet is too short, or was not protected with these keys. */
  notAuthentic: -4,
} as const

/**
 * RFC 9000 §17.2, lengths in bytes:
 *
 *     first byte 1, Version 4, DCID length 1, DCID 0..20, SCID length 1, SCID 0..20,
 *     only in an Initial: Token Length varint, Token;
 *     Length varint, Packet Number 1..4, payload
 *
 * The Fixed Bit of the first byte is ignored: RFC 9287 lets clients change it.
 */
const LONG_HEADER = 0x80
const FIXED_BIT = 0x40
const VERSION = 1
const DCID_LENGTH = 5
const LONG_HEADER_BYTES_MIN = 7
export const CONNECTION_ID_BYTES_MAX = 20
const DCID_BYTES_MIN = 8
const RESERVED_BITS = 0x0c
const PACKET_NUMBER_LENGTH = 0x03

/** RFC 9001 §5.3: the tag ends the packet. §5.8: a Retry also ends with a tag. */
const TAG_BYTES = 16
/** RFC 9001 §5.4.2: the sample begins where the payload would with a packet number of 4 bytes. */
const SAMPLE_OFFSET = 4
const SAMPLE_BYTES = 16
const IV_BYTES = 12

/** A UDP datagram cannot be longer. */
const PACKET_BYTES_MAX = 65_536

/** RFC 9000 §19 */
const PADDING = 0x00
const PING = 0x01
const ACK = 0x02
const ACK_ECN = 0x03
const CRYPTO = 0x06
const CONNECTION_CLOSE = 0x1c

/** Return values of nextCryptoFrame. */
export const NO_MORE_FRAMES = -1
/** A frame that is not allowed in an Initial (RFC 9000 §12.4) or exceeds the packet. */
export const FRAMES_MALFORMED = -2

/** Positions of the fields of a long header. One per worker, overwritten by each packet. */
export class LongHeader {
  version = 0
  /**
   * Set for the types initial to retry. For other types, the value of an earlier packet remains.
   */
  versionParameters: QuicVersion | undefined = undefined
  packetType: QuicPacket = QuicPacket.short
  dcidStart = 0
  dcidEnd = 0
  scidStart = 0
  scidEnd = 0
  /** Empty except in Initial and Retry packets. */
  tokenStart = 0
  tokenEnd = 0
  /** In packets without a number: the end of the packet. */
  packetNumberStart = 0
  /** Start of the next packet in the datagram (RFC 9000 §12.2). */
  packetEnd = 0
}

/**
 * Returns 0 if bytes [at, end) begin with a long header, whose fields are then in `header`.
 * Otherwise returns a QuicFault.
 */
export function readLongHeader(view: DataView, at: number, end: number, header: LongHeader): number {
  if (at >= end) return QuicFault.truncated
  const first = view.getUint8(at)
  if ((first & LONG_HEADER) === 0) {
    header.packetType = QuicPacket.short
    return QuicFault.notLongHeader
  }
  if (at + LONG_HEADER_BYTES_MIN > end) return QuicFault.truncated
  const version = view.getUint32(at + VERSION)
  const dcidStart = at + DCID_LENGTH + 1
  const dcidEnd = dcidStart + view.getUint8(at + DCID_LENGTH)
  if (dcidEnd + 1 > end) return QuicFault.truncated
  const scidStart = dcidEnd + 1
  const scidEnd = scidStart + view.getUint8(dcidEnd)
  if (scidEnd > end) return QuicFault.truncated
  header.version = version
  header.dcidStart = dcidStart
  header.dcidEnd = dcidEnd
  header.scidStart = scidStart
  header.scidEnd = scidEnd
  header.tokenStart = scidEnd
  header.tokenEnd = scidEnd
  header.packetNumberStart = end
  header.packetEnd = end

  const parameters = quicVersion(version)
  if (parameters === undefined) {
    header.packetType = version === 0 ? QuicPacket.versionNegotiation : QuicPacket.unknownVersion
    return 0
  }
  if (dcidEnd - dcidStart > CONNECTION_ID_BYTES_MAX) return QuicFault.malformed
  if (scidEnd - scidStart > CONNECTION_ID_BYTES_MAX) return QuicFault.malformed
  header.versionParameters = parameters
  header.packetType = (((first >> 4) - parameters.packetTypeShift) & 3) as QuicPacket
  if (header.packetType === QuicPacket.retry) {
    if (scidEnd + TAG_BYTES > end) return QuicFault.truncated
    header.tokenEnd = end - TAG_BYTES
    return 0
  }
  return readLengths(view, scidEnd, end, header)
}

/**
 * RFC 9000 §17.2.2: Token Length and Token (only in an Initial), and Length, which covers packet
 * number and payload.
 */
function readLengths(view: DataView, start: number, end: number, header: LongHeader): number {
  let at = start
  if (header.packetType === QuicPacket.initial) {
    const token = varintEnd(view, at, end)
    if (token < 0) return QuicFault.truncated
    header.tokenStart = token
    at = token + varint(view, at)
    if (at > end) return QuicFault.malformed
    header.tokenEnd = at
  }
  const packetNumber = varintEnd(view, at, end)
  if (packetNumber < 0) return QuicFault.truncated
  const packetEnd = packetNumber + varint(view, at)
  if (packetEnd > end) return QuicFault.malformed
  header.packetNumberStart = packetNumber
  header.packetEnd = packetEnd
  return 0
}

/**
 * Removes the protection of Initials. One per worker: the next opened packet overwrites the
 * plaintext.
 */
export class InitialOpener {
  readonly plainBytes = new Uint8Array(new SharedArrayBuffer(PACKET_BYTES_MAX))
  readonly plain = new DataView(this.plainBytes.buffer)
  /**
   * The header without protection: the associated data (RFC 9001 §5.3). The packet itself is not
   * modified.
   */
  readonly #headerBytes = new Uint8Array(PACKET_BYTES_MAX)
  readonly #header = new DataView(this.#headerBytes.buffer)
  readonly #nonceBytes = new Uint8Array(IV_BYTES)
  readonly #nonce = new DataView(this.#nonceBytes.buffer)

  /**
   * Returns the length of the plaintext of the Initial that begins at `start`, or
   * QuicFault.notAuthentic. `header` has its fields; `bytes` and `view` are the same memory. The
   * truncated packet number is used as the full number: Initials are numbered from 0 (RFC 9000
   * §12.3), and the client's encoding is long enough until something is acknowledged (§17.1).
   */
  open(view: DataView, bytes: Uint8Array, header: LongHeader, start: number, keys: InitialKeys): number {
    const { packetNumberStart, packetEnd } = header
    const sample = packetNumberStart + SAMPLE_OFFSET
    if (sample + SAMPLE_BYTES > packetEnd || packetEnd - start > PACKET_BYTES_MAX) return QuicFault.notAuthentic

    // RFC 9001 §5.4.1. Reserved Bits must be zero (RFC 9000 §17.2). This check alone rejects three
    // of four packets with other keys.
    const mask = keys.headerMask(bytes.subarray(sample, sample + SAMPLE_BYTES))
    const first = view.getUint8(start) ^ ((mask[0] ?? 0) & 0x0f)
    if ((first & RESERVED_BITS) !== 0) return QuicFault.notAuthentic
    const payload = packetNumberStart + (first & PACKET_NUMBER_LENGTH) + 1
    const headerBytes = payload - start
    this.#headerBytes.set(bytes.subarray(start, payload))
    this.#header.setUint8(0, first)
    this.#nonceBytes.set(keys.iv)
    for (let at = packetNumberStart; at < payload; at++) {
      const byte = view.getUint8(at) ^ (mask[1 + at - packetNumberStart] ?? 0)
      this.#header.setUint8(at - start, byte)
      const nonceAt = IV_BYTES - (payload - at)
      this.#nonce.setUint8(nonceAt, this.#nonce.getUint8(nonceAt) ^ byte)
    }

    const tag = packetEnd - TAG_BYTES
    const decipher = createDecipheriv('aes-128-gcm', keys.key, this.#nonceBytes)
    decipher.setAAD(this.#headerBytes.subarray(0, headerBytes))
    decipher.setAuthTag(bytes.subarray(tag, packetEnd))
    const plaintext = decipher.update(bytes.subarray(payload, tag))
    try {
      // Throws if the tag differs, the only way that node:crypto reports it. The throw costs 5 us.
      decipher.final()
    } catch {
      return QuicFault.notAuthentic
    }
    this.plainBytes.set(plaintext)
    return plaintext.length
  }
}

/** RFC 9000 §14.1: a client expands a datagram with an Initial to at least this many bytes. */
const INITIAL_DATAGRAM_BYTES_MIN = 1200

/**
 * Whether bytes [at, end) of a datagram of `datagramBytes` are a client's first packet of a QUIC
 * version that quic-keys.ts does not read. Other protocols on the port may begin with the same bit,
 * so all that RFC 8999 and RFC 9000 §14.1 say of such a packet must be true: fixed bit, registered
 * version, connection IDs of the allowed lengths, and a datagram of full size.
 */
export function isUnreadInitial(view: DataView, at: number, end: number, datagramBytes: number): boolean {
  if (datagramBytes < INITIAL_DATAGRAM_BYTES_MIN || at + LONG_HEADER_BYTES_MIN > end) return false
  if ((view.getUint8(at) & (LONG_HEADER | FIXED_BIT)) !== (LONG_HEADER | FIXED_BIT)) return false
  if (!isUnreadVersion(view.getUint32(at + VERSION))) return false
  const dcidBytes = view.getUint8(at + DCID_LENGTH)
  // RFC 9000 §7.2: at least 8 bytes in a client's first Initial.
  if (dcidBytes < DCID_BYTES_MIN || dcidBytes > CONNECTION_ID_BYTES_MAX) return false
  const scidLength = at + DCID_LENGTH + 1 + dcidBytes
  return scidLength < end && view.getUint8(scidLength) <= CONNECTION_ID_BYTES_MAX
}

/**
 * RFC 9000 §19.6: bytes [start, end) of the view are at `offset` in the stream of handshake
 * messages.
 */
export class CryptoFrame {
  /** Exact below 2^53, rounded above. */
  offset = 0
  start = 0
  end = 0
}

/**
 * Reads the frames in [at, end) up to and including the first CRYPTO frame. Returns the offset
 * after it, NO_MORE_FRAMES or FRAMES_MALFORMED.
 */
export function nextCryptoFrame(view: DataView, at: number, end: number, frame: CryptoFrame): number {
  let next = at
  while (next < end) {
    const type = view.getUint8(next++)
    switch (type) {
      case PADDING:
        // Padding is most of an Initial. Reading word by word takes a quarter of the time.
        while (next + 4 <= end && view.getUint32(next) === 0) next += 4
        break
      case PING:
        break
      case ACK:
      case ACK_ECN:
        next = afterAck(view, next, end, type)
        break
      case CRYPTO:
        return readCryptoFrame(view, next, end, frame)
      case CONNECTION_CLOSE:
        next = afterConnectionClose(view, next, end)
        break
      default:
        return FRAMES_MALFORMED
    }
    if (next < 0) return FRAMES_MALFORMED
  }
  return NO_MORE_FRAMES
}

/** RFC 9000 §19.6: Offset, Length, data. */
function readCryptoFrame(view: DataView, at: number, end: number, frame: CryptoFrame): number {
  const length = varintEnd(view, at, end)
  const start = varintEnd(view, length, end)
  if (start < 0) return FRAMES_MALFORMED
  const dataEnd = start + varint(view, length)
  if (dataEnd > end) return FRAMES_MALFORMED
  frame.offset = varint(view, at)
  frame.start = start
  frame.end = dataEnd
  return dataEnd
}

/**
 * RFC 9000 §19.3: Largest Acknowledged, ACK Delay, ACK Range Count, First ACK Range, then Gap and
 * ACK Range Length for each range, and three counts in an ACK_ECN. Each range takes bytes, so the
 * end of the packet bounds a forged count.
 */
function afterAck(view: DataView, start: number, end: number, type: number): number {
  const count = varintEnd(view, varintEnd(view, start, end), end)
  let at = varintEnd(view, count, end)
  if (at < 0) return at
  let varints = 1 + 2 * varint(view, count) + (type === ACK_ECN ? 3 : 0)
  for (; varints > 0 && at >= 0; varints--) at = varintEnd(view, at, end)
  return at
}

/** RFC 9000 §19.19: Error Code, Frame Type, Reason Phrase Length, Reason Phrase. */
function afterConnectionClose(view: DataView, start: number, end: number): number {
  const length = varintEnd(view, varintEnd(view, start, end), end)
  const reason = varintEnd(view, length, end)
  if (reason < 0) return reason
  const after = reason + varint(view, length)
  return after <= end ? after : -1
}

/**
 * RFC 9000 §16: the two high bits of a varint give its length of 1, 2, 4 or 8 bytes. Returns the
 * offset after it, or -1 if it is truncated or `at` is -1.
 */
function varintEnd(view: DataView, at: number, end: number): number {
  if (at < 0 || at >= end) return -1
  const after = at + (1 << (view.getUint8(at) >> 6))
  return after <= end ? after : -1
}

/** Returns the value of a varint for which varintEnd() succeeded. */
function varint(view: DataView, at: number): number {
  const first = view.getUint8(at)
  switch (first >> 6) {
    case 0:
      return first
    case 1:
      return view.getUint16(at) & 0x3fff
    case 2:
      return view.getUint32(at) & 0x3fff_ffff
    default:
      return (view.getUint32(at) & 0x3fff_ffff) * 0x1_0000_0000 + view.getUint32(at + 4)
  }
}
