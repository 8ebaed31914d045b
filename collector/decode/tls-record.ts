import { HELLO_BYTES_MAX } from '../limits.ts'
import { PacketClass } from './packet-class.ts'

/**
 * TLS records -> the bytes of the ClientHello in them. Read: a hello that begins with the segment, in one record or several.
 * Not read: what goes on in later segments, hellos of SSL 2.0 form.
 */

/** RFC 8446 §5.1: ContentType, legacy_record_version, length of the fragment. */
const RECORD_HEADER_BYTES = 5
const RECORD_LENGTH = 3
const CONTENT_TYPE_HANDSHAKE = 22
const VERSION_MAJOR = 3
const VERSION_MINOR_MAX = 4
/** RFC 8446 §5.1: 2^14; TLS 1.2 let a protected record be 2048 longer (RFC 5246 §6.2.3). */
const FRAGMENT_BYTES_MAX = 16_384 + 2048

/** RFC 8446 §4: HandshakeType, 24 bits of length. */
const HANDSHAKE_HEADER_BYTES = 4
const HANDSHAKE_CLIENT_HELLO = 1

const scratchBytes = new Uint8Array(new SharedArrayBuffer(HELLO_BYTES_MAX))
const scratch = new DataView(scratchBytes.buffer)

/** Where the body of a ClientHello stands: bytes [start, end) of `view`. One for each worker, overwritten by each hello. */
export class HelloBody {
  view: DataView = scratch
  start = 0
  end = 0
  /** 1 when the segment ends before the hello does. */
  incomplete = 0
}

/** 0 when the payload in bytes [offset, end) begins with a ClientHello: `hello` then says where its body is. Else the complement of a class. */
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
  if (fragment + HANDSHAKE_HEADER_BYTES > end) return ~PacketClass.clientHelloIncomplete
  const helloBytes = view.getUint32(fragment) & 0xff_ffff
  if (helloBytes > HELLO_BYTES_MAX) return ~PacketClass.clientHelloMalformed
  // A record that is shorter than the hello goes on in the next, which may be in this segment.
  if (fragmentBytes < HANDSHAKE_HEADER_BYTES + helloBytes && fragment + fragmentBytes < end) {
    return gatherRecords(view, offset, end, hello)
  }
  const start = fragment + HANDSHAKE_HEADER_BYTES
  const available = Math.min(end, fragment + fragmentBytes)
  hello.view = view
  hello.start = start
  hello.end = Math.min(available, start + helloBytes)
  hello.incomplete = start + helloBytes > available ? 1 : 0
  return 0
}

/** RFC 8446 §5.1: handshake messages may be fragmented over records; a record of another type may not come between. */
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
  if (used < HANDSHAKE_HEADER_BYTES) return ~PacketClass.clientHelloIncomplete
  const helloBytes = scratch.getUint32(0) & 0xff_ffff
  hello.view = scratch
  hello.start = HANDSHAKE_HEADER_BYTES
  hello.end = Math.min(used, HANDSHAKE_HEADER_BYTES + helloBytes)
  hello.incomplete = HANDSHAKE_HEADER_BYTES + helloBytes > used ? 1 : 0
  return 0
}
