import { PacketClass } from '../batch/packet-class.ts'
import { HELLO_BYTES_MAX } from '../limits.ts'

/**
 * TLS records -> the bytes of their ClientHello, in one record or several; and hellos of SSL 2.0
 * form, which have no name. tcp-streams.ts reassembles hellos in several segments.
 */

/** RFC 8446 §5.1: ContentType, legacy_record_version, length of the fragment. */
const RECORD_HEADER_BYTES = 5
const RECORD_LENGTH = 3
const CONTENT_TYPE_HANDSHAKE = 22
const VERSION_MAJOR = 3
const VERSION_MINOR_MAX = 4
/** RFC 8446 §5.1: 2^14. TLS 1.2 allows 2048 more for a protected record (RFC 5246 §6.2.3). */
const FRAGMENT_BYTES_MAX = 16_384 + 2048

/** RFC 8446 §4: HandshakeType, 24 bits of length. */
export const HANDSHAKE_HEADER_BYTES = 4
export const HANDSHAKE_CLIENT_HELLO = 1

const scratchBytes = new Uint8Array(new SharedArrayBuffer(HELLO_BYTES_MAX))
const scratch = new DataView(scratchBytes.buffer)

/** The application protocols that a client offers: none, any, or first DNS over QUIC. */
export const HelloAlpn = { none: 0, some: 1, doq: 2 } as const
export type HelloAlpn = (typeof HelloAlpn)[keyof typeof HelloAlpn]

/**
 * Position of the body of a ClientHello: bytes [start, end) of `view`. One per worker, overwritten
 * by each hello.
 */
export class HelloBody {
  view: DataView = scratch
  start = 0
  end = 0
  /** 1 if the bytes end before the hello does. */
  incomplete = 0
  /** Set by readServerName(), as far as it read: the client's ALPN. */
  alpn: HelloAlpn = 0

  set(view: DataView, start: number, end: number, incomplete: number): void {
    this.view = view
    this.start = start
    this.end = end
    this.incomplete = incomplete
  }
}

/**
 * Progress of walking the records of a hello, so that each byte is read only once even if bytes
 * arrive one by one.
 */
export class HelloProgress {
  /** Offset of the incomplete record, from the first record. */
  recordAt = 0
  /** Handshake bytes in the records before it. */
  gathered = 0
  /** Handshake bytes of the whole hello, including its header; 0 while unknown. */
  wanted = 0
}

/**
 * Whether bytes [at, end), too few for findClientHello(), may begin a record with a ClientHello.
 */
export function mayBeginHello(view: DataView, at: number, end: number): boolean {
  if (at >= end || end - at > RECORD_HEADER_BYTES) return false
  if (view.getUint8(at) !== CONTENT_TYPE_HANDSHAKE) return false
  if (at + 1 < end && view.getUint8(at + 1) !== VERSION_MAJOR) return false
  return at + 2 >= end || view.getUint8(at + 2) <= VERSION_MINOR_MAX
}

/**
 * Walks the records in bytes [start, end) from progress.recordAt on. Returns 1 if they hold the
 * whole hello, 0 if more bytes are needed, or the complement of a class: tcpOther if they do not
 * begin with a ClientHello, clientHelloMalformed if the hello does not continue in the following
 * records.
 */
export function walkRecords(view: DataView, start: number, end: number, progress: HelloProgress): number {
  for (;;) {
    const record = start + progress.recordAt
    const first = progress.recordAt === 0
    if (record + RECORD_HEADER_BYTES > end)
      return !first || record >= end || mayBeginHello(view, record, end) ? 0 : ~PacketClass.tcpOther
    const wrong = first ? ~PacketClass.tcpOther : ~PacketClass.clientHelloMalformed
    if (view.getUint8(record) !== CONTENT_TYPE_HANDSHAKE) return wrong
    if (view.getUint8(record + 1) !== VERSION_MAJOR || view.getUint8(record + 2) > VERSION_MINOR_MAX) return wrong
    const fragmentBytes = view.getUint16(record + RECORD_LENGTH)
    if (fragmentBytes === 0 || fragmentBytes > FRAGMENT_BYTES_MAX) return wrong
    const fragment = record + RECORD_HEADER_BYTES
    const available = progress.gathered + Math.min(fragmentBytes, end - fragment)
    if (first && available > 0 && view.getUint8(fragment) !== HANDSHAKE_CLIENT_HELLO) return wrong
    if (progress.wanted === 0 && available >= HANDSHAKE_HEADER_BYTES) {
      progress.wanted = HANDSHAKE_HEADER_BYTES + helloLength(view, start)
      if (progress.wanted > HELLO_BYTES_MAX) return ~PacketClass.clientHelloMalformed
    }
    if (progress.wanted !== 0 && available >= progress.wanted) return 1
    if (fragment + fragmentBytes > end) return 0
    progress.gathered += fragmentBytes
    progress.recordAt += RECORD_HEADER_BYTES + fragmentBytes
  }
}

/**
 * Returns the length in the handshake header. Its four bytes must be present, but may be in
 * separate records.
 */
function helloLength(view: DataView, start: number): number {
  let record = start
  let length = 0
  let byte = 0
  while (byte < HANDSHAKE_HEADER_BYTES) {
    const fragmentBytes = view.getUint16(record + RECORD_LENGTH)
    const fragment = record + RECORD_HEADER_BYTES
    for (let at = 0; at < fragmentBytes && byte < HANDSHAKE_HEADER_BYTES; at++, byte++) {
      length = (length << 8) | view.getUint8(fragment + at)
    }
    record = fragment + fragmentBytes
  }
  return length & 0xff_ffff
}

/**
 * The SSL 2.0 form of a hello (RFC 5246 §E.2): a length of two bytes with the high bit set, type,
 * version, and three lengths that must add up.
 */
const SSL2_HEADER_BYTES = 11
const SSL2_VERSION = 0x0002

/** Whether bytes [at, end) begin with a ClientHello of SSL 2.0 form, which cannot carry a name. */
export function isSsl2Hello(view: DataView, at: number, end: number): boolean {
  if (at + SSL2_HEADER_BYTES > end || (view.getUint8(at) & 0x80) === 0) return false
  if (view.getUint8(at + 2) !== HANDSHAKE_CLIENT_HELLO) return false
  const version = view.getUint16(at + 3)
  if (version !== SSL2_VERSION && version >> 8 !== VERSION_MAJOR) return false
  const cipherSpecs = view.getUint16(at + 5)
  const sessionId = view.getUint16(at + 7)
  const challenge = view.getUint16(at + 9)
  if (cipherSpecs === 0 || cipherSpecs % 3 !== 0 || challenge < 16 || challenge > 32 || sessionId > 32) return false
  return (view.getUint16(at) & 0x7fff) === SSL2_HEADER_BYTES - 2 + cipherSpecs + sessionId + challenge
}

/**
 * Returns 0 if the payload in bytes [offset, end) begins with a ClientHello, whose body is then in
 * `hello`. Otherwise returns the complement of a class.
 */
export function findClientHello(view: DataView, offset: number, end: number, hello: HelloBody): number {
  if (offset + RECORD_HEADER_BYTES + 1 > end) return ~PacketClass.tcpOther
  if (view.getUint8(offset) !== CONTENT_TYPE_HANDSHAKE) return ~PacketClass.tcpOther
  if (view.getUint8(offset + 1) !== VERSION_MAJOR) return ~PacketClass.tcpOther
  if (view.getUint8(offset + 2) > VERSION_MINOR_MAX) return ~PacketClass.tcpOther
  const fragmentBytes = view.getUint16(offset + RECORD_LENGTH)
  if (fragmentBytes === 0 || fragmentBytes > FRAGMENT_BYTES_MAX) return ~PacketClass.tcpOther
  const fragment = offset + RECORD_HEADER_BYTES
  if (view.getUint8(fragment) !== HANDSHAKE_CLIENT_HELLO) return ~PacketClass.tcpOther

  if (fragmentBytes < HANDSHAKE_HEADER_BYTES) return gatherRecords(view, offset, end, hello)
  if (fragment + HANDSHAKE_HEADER_BYTES > end) return ~PacketClass.clientHelloPart
  const helloBytes = view.getUint32(fragment) & 0xff_ffff
  if (helloBytes > HELLO_BYTES_MAX) return ~PacketClass.clientHelloMalformed
  // If the record is shorter than the hello, the hello continues in the next record, which may be
  // in this segment.
  if (fragmentBytes < HANDSHAKE_HEADER_BYTES + helloBytes && fragment + fragmentBytes < end) {
    return gatherRecords(view, offset, end, hello)
  }
  const start = fragment + HANDSHAKE_HEADER_BYTES
  const available = Math.min(end, fragment + fragmentBytes)
  hello.set(view, start, Math.min(available, start + helloBytes), start + helloBytes > available ? 1 : 0)
  return 0
}

/**
 * RFC 8446 §5.1: handshake messages may be fragmented over records. No record of another type may
 * come between them.
 */
function gatherRecords(view: DataView, offset: number, end: number, hello: HelloBody): number {
  let at = offset
  let used = 0
  while (used < HELLO_BYTES_MAX && at + RECORD_HEADER_BYTES <= end) {
    if (view.getUint8(at) !== CONTENT_TYPE_HANDSHAKE) return ~PacketClass.clientHelloMalformed
    if (view.getUint8(at + 1) !== VERSION_MAJOR) return ~PacketClass.clientHelloMalformed
    const fragmentBytes = view.getUint16(at + RECORD_LENGTH)
    if (fragmentBytes === 0 || fragmentBytes > FRAGMENT_BYTES_MAX) return ~PacketClass.clientHelloMalformed
    const fragment = at + RECORD_HEADER_BYTES
    const copied = Math.min(fragmentBytes, end - fragment, HELLO_BYTES_MAX - used)
    for (let byte = 0; byte < copied; byte++) scratchBytes[used + byte] = view.getUint8(fragment + byte)
    used += copied
    at = fragment + fragmentBytes
    if (used >= HANDSHAKE_HEADER_BYTES && used >= HANDSHAKE_HEADER_BYTES + (scratch.getUint32(0) & 0xff_ffff)) break
  }
  if (used < HANDSHAKE_HEADER_BYTES) return ~PacketClass.clientHelloPart
  const helloBytes = scratch.getUint32(0) & 0xff_ffff
  const whole = HANDSHAKE_HEADER_BYTES + helloBytes
  hello.set(scratch, HANDSHAKE_HEADER_BYTES, Math.min(used, whole), whole > used ? 1 : 0)
  return 0
}
