import { PacketClass } from '../batch/packet-class.ts'
import { NAME_BYTES_MAX } from '../limits.ts'
import { type FoundName, NameForm } from './name.ts'
import { HelloAlpn, type HelloBody } from './tls-record.ts'

/**
 * ClientHello -> the host_name in its server_name, and whether it has encrypted_client_hello.
 * Nothing else is read. An incomplete hello yields its name if the server_name extension is
 * complete.
 */

/**
 * RFC 8446 §4.1.2, the body after the handshake header, lengths in bytes:
 *
 *     legacy_version 2, random 32, session_id 1 + 0..32, cipher_suites 2 + 2..,
 *     compression_methods 1 + 1.., extensions 2 + (type 2, length 2, data)*
 */
const HELLO_RANDOM = 2
const FIXED_BYTES = 2 + 32
const EXTENSION_HEADER_BYTES = 4

/**
 * RFC 6066 §3: server_name_list of (name_type 1, length 2, HostName). Type 0 is host_name, at most
 * one.
 */
const EXTENSION_SERVER_NAME = 0
const NAME_TYPE_HOST_NAME = 0
const SERVER_NAME_HEADER_BYTES = 3

/** RFC 7301 §3.1: length of the list, then for each protocol its length and name. */
const EXTENSION_ALPN = 16
/** The protocol `doq` (RFC 9250 §4.1.1), with its length. */
const ALPN_DOQ = 0x0364_6f71

/** RFC 9849 §5: encrypted_client_hello, and encrypted_server_name of its drafts. */
const EXTENSION_ENCRYPTED_CLIENT_HELLO = 0xfe0d
const EXTENSION_ENCRYPTED_SERVER_NAME = 0xffce

/**
 * Returns the class of the packet that carries this hello:
 * - clientHello or clientHelloEch: `name` is set
 * - clientHelloNoName
 * - clientHelloMalformed
 * - clientHelloPart: the hello is incomplete, and its name is not in the bytes received so far
 */
export function readServerName(hello: HelloBody, name: FoundName): PacketClass {
  const view = hello.view
  const end = hello.end
  const outOfBytes = hello.incomplete === 1 ? PacketClass.clientHelloPart : PacketClass.clientHelloMalformed

  let at = hello.start + FIXED_BYTES
  if (at + 1 > end) return outOfBytes
  at += 1 + view.getUint8(at)
  if (at + 2 > end) return outOfBytes
  at += 2 + view.getUint16(at)
  if (at + 1 > end) return outOfBytes
  at += 1 + view.getUint8(at)
  // RFC 5246 §7.4.1.2: a hello without extensions may end here.
  if (at === end && hello.incomplete === 0) return PacketClass.clientHelloNoName
  if (at + 2 > end) return outOfBytes
  const extensionsEnd = at + 2 + view.getUint16(at)
  if (extensionsEnd > end && hello.incomplete === 0) return PacketClass.clientHelloMalformed
  at += 2

  let named: PacketClass = PacketClass.clientHelloNoName
  let encrypted = false
  hello.alpn = HelloAlpn.none
  while (at < extensionsEnd) {
    // An error after the name does not change the name.
    const broken = named === PacketClass.clientHelloNoName ? outOfBytes : named
    if (at + EXTENSION_HEADER_BYTES > end) return broken
    const type = view.getUint16(at)
    const extension = at + EXTENSION_HEADER_BYTES
    const extensionEnd = extension + view.getUint16(at + 2)
    if (extensionEnd > extensionsEnd) {
      return named === PacketClass.clientHelloNoName ? PacketClass.clientHelloMalformed : named
    }
    if (type === EXTENSION_SERVER_NAME && named === PacketClass.clientHelloNoName) {
      if (extensionEnd > end) return outOfBytes
      named = readHostName(view, extension, extensionEnd, name)
      if (named === PacketClass.clientHelloMalformed) return named
    }
    if (type === EXTENSION_ALPN && extensionEnd <= end) {
      const isDoq = extension + 6 <= extensionEnd && view.getUint32(extension + 2) === ALPN_DOQ
      hello.alpn = isDoq ? HelloAlpn.doq : HelloAlpn.some
    }
    if (type === EXTENSION_ENCRYPTED_CLIENT_HELLO || type === EXTENSION_ENCRYPTED_SERVER_NAME) encrypted = true
    at = extensionEnd
  }
  return encrypted && named === PacketClass.clientHello ? PacketClass.clientHelloEch : named
}

/** 32 bits of the client's random, which identify a hello that is sent again. */
export function helloRandom(hello: HelloBody): number {
  const at = hello.start + HELLO_RANDOM
  return at + 4 > hello.end ? 0 : hello.view.getUint32(at)
}

function readHostName(view: DataView, extension: number, end: number, name: FoundName): PacketClass {
  if (extension + 2 > end) return PacketClass.clientHelloNoName
  let at = extension + 2
  while (at + SERVER_NAME_HEADER_BYTES <= end) {
    const start = at + SERVER_NAME_HEADER_BYTES
    const nameEnd = start + view.getUint16(at + 1)
    if (nameEnd > end) return PacketClass.clientHelloMalformed
    if (view.getUint8(at) === NAME_TYPE_HOST_NAME) {
      if (nameEnd === start || nameEnd - start > NAME_BYTES_MAX) return PacketClass.clientHelloMalformed
      name.set(view, start, nameEnd, NameForm.dotted)
      return PacketClass.clientHello
    }
    at = nameEnd
  }
  return PacketClass.clientHelloNoName
}
