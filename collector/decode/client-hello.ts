import { PacketClass } from '../batch/packet-class.ts'
import { NAME_BYTES_MAX } from '../limits.ts'
import { type FoundName, NameForm } from './name.ts'
import type { HelloBody } from './tls-record.ts'

/**
 * ClientHello -> the host_name of its server_name, and whether it has encrypted_client_hello. Nothing else of the hello is looked at.
 * A hello of which the rest is still to come gives its name when server_name is in the part that is here.
 */

/**
 * RFC 8446 §4.1.2, the body behind the handshake header:
 *
 *     legacy_version  random  session_id         cipher_suites       compression_methods  extensions
 *     2               32      1 + 0..32          2 + 2..             1 + 1..              2 + (type 2, length 2, data)*
 */
const HELLO_RANDOM = 2
const FIXED_BYTES = 2 + 32
const EXTENSION_HEADER_BYTES = 4

/** RFC 6066 §3: server_name_list of (name_type 1, length 2, HostName); 0 is host_name, and there may be one of it. */
const EXTENSION_SERVER_NAME = 0
const NAME_TYPE_HOST_NAME = 0
const SERVER_NAME_HEADER_BYTES = 3

/** RFC 9849 §5: encrypted_client_hello, and what its drafts called encrypted_server_name. */
const EXTENSION_ENCRYPTED_CLIENT_HELLO = 0xfe0d
const EXTENSION_ENCRYPTED_SERVER_NAME = 0xffce

/**
 * The class of the packet that brings this hello: clientHello or clientHelloEch, and `name` is set; clientHelloNoName; clientHelloMalformed;
 * clientHelloPart, when it is incomplete and its name is not in what is here.
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
  // RFC 5246 §7.4.1.2: a hello may end here, without extensions.
  if (at === end && hello.incomplete === 0) return PacketClass.clientHelloNoName
  if (at + 2 > end) return outOfBytes
  const extensionsEnd = at + 2 + view.getUint16(at)
  if (extensionsEnd > end && hello.incomplete === 0) return PacketClass.clientHelloMalformed
  at += 2

  let named: PacketClass = PacketClass.clientHelloNoName
  let encrypted = false
  while (at < extensionsEnd) {
    // What is wrong behind the name does not make it another.
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
    if (type === EXTENSION_ENCRYPTED_CLIENT_HELLO || type === EXTENSION_ENCRYPTED_SERVER_NAME) encrypted = true
    at = extensionEnd
  }
  return encrypted && named === PacketClass.clientHello ? PacketClass.clientHelloEch : named
}

/** 32 bits of what a client chose at random, by which a hello is known when it comes again. */
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
