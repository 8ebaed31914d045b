import { strict as assert } from 'node:assert'
import { addressText } from '../../engine/kernel/process/network.ts'
import { DNS_QUESTIONS_MAX, FRAME_ROW_BYTES_MAX } from '../limits.ts'
import { type FoundName, NAME_TEXT_BYTES_MAX, writeNameText } from './name.ts'
import { Via } from './proxy-element.ts'

/**
 * Rows of the rows area: one for each emitted name. A row is aligned to 8 bytes; all numbers are
 * little-endian.
 *
 *     byte    0  u32  length of the row in bytes, including the padding at its end
 *             4  u32  index of its frame in the batch
 *             8  u32  time: seconds since 1970
 *            12  u32  time: nanoseconds of the second
 *            16  i32  index of the rule that matched, or NO_MATCH
 *            20  u8   method: the number in Method
 *            21  u8   IP version: 4 or 6
 *            22  u16  length of the name in bytes
 *            24  u16  client port
 *            26  u16  server port
 *            28  u8   1 if the hello has encrypted_client_hello: the name is the outer name
 *            29  u8   via: 0 DNS or ClientHello, 1 CONNECT, 2 SOCKS, 3 PROXY header, 4 HTTP
 *            30  u8   1 if the row is no name that was seen, but the answer that blocked it
 *            32  16   client address, as on the wire; IPv4 in the first 4
 *            48  16   server address
 *            64       the name in lower-case dotted ASCII
 */
const ROW_BYTES = 0
const ROW_FRAME = 4
const ROW_SECONDS = 8
const ROW_NANOSECONDS = 12
const ROW_RULE = 16
const ROW_METHOD = 20
const ROW_VERSION = 21
const ROW_NAME_BYTES = 22
const ROW_CLIENT_PORT = 24
const ROW_SERVER_PORT = 26
const ROW_ECH = 28
const ROW_VIA = 29
const ROW_REFUSAL = 30
const ROW_CLIENT = 32
const ROW_SERVER = 48
const ROW_NAME = 64

/**
 * How a name was seen. Inferred: the hello has no readable name, and a DNS answer gave it.
 * dns_alias: the target of a CNAME matched, but the question did not.
 */
export const Method = { dns: 0, tls: 1, quic: 2, tls_inferred: 3, quic_inferred: 4, dns_alias: 5 } as const
export type Method = (typeof Method)[keyof typeof Method]
export type MethodName = keyof typeof Method
export const METHOD_NAMES = Object.keys(Method) as readonly MethodName[]

/** Maximum size of a row. writeRow() requires this much space. */
export const ROW_BYTES_MAX = (ROW_NAME + NAME_TEXT_BYTES_MAX + 7) & ~7

assert(FRAME_ROW_BYTES_MAX >= (DNS_QUESTIONS_MAX + 1) * ROW_BYTES_MAX, 'the names of one datagram fit')

type ViaName = Exclude<keyof typeof Via, 'none'>
const VIA_NAMES = Object.keys(Via) as readonly (keyof typeof Via)[]

/** One name as observed. */
export interface ObservedName {
  /** Milliseconds since 1970, with the fraction of the capture's resolution. */
  readonly timeMs: number
  readonly method: MethodName
  readonly client: string
  readonly clientPort: number
  readonly server: string
  readonly serverPort: number
  /**
   * Lower-case dotted ASCII. Bytes outside the host-name characters are written as \DDD (RFC 4343
   * §2.1).
   */
  readonly name: string
  /**
   * The hello has encrypted_client_hello or its GREASE: the name may be the outer name (RFC 9849
   * §6.1, §6.2).
   */
  readonly ech?: true
  /** The name is of a proxy's handshake or of a request of plain HTTP, not of a ClientHello. */
  readonly via?: ViaName
  /** Index of the rule that matched, or NO_MATCH. */
  readonly rule: number
}

/** Inputs of a row, overwritten by each packet. */
export class RowSource {
  /** Index of the frame in the batch, and its time. */
  frame = 0
  seconds = 0
  nanoseconds = 0
  /** The memory of the client and server address. */
  addresses: DataView = new DataView(new SharedArrayBuffer(8))
  version = 0
  addressBytes = 0
  client = 0
  server = 0
  clientPort = 0
  serverPort = 0
  method: Method = 0
  ech = 0
  via: Via = 0
  refusal = 0
  /** nameHash() of the name in the handshake of the stream's proxy, 0 for none. */
  announced = 0
}

/** Writes a row at `at`. Returns the offset after the row. */
export function writeRow(view: DataView, at: number, source: RowSource, name: FoundName, rule: number): number {
  const addresses = source.addresses
  view.setUint32(at + ROW_FRAME, source.frame, true)
  view.setUint32(at + ROW_SECONDS, source.seconds, true)
  view.setUint32(at + ROW_NANOSECONDS, source.nanoseconds, true)
  view.setInt32(at + ROW_RULE, rule, true)
  view.setUint8(at + ROW_METHOD, source.method)
  view.setUint8(at + ROW_VERSION, source.version)
  view.setUint8(at + ROW_ECH, source.ech)
  view.setUint8(at + ROW_VIA, source.via)
  view.setUint8(at + ROW_REFUSAL, source.refusal)
  view.setUint16(at + ROW_CLIENT_PORT, source.clientPort, true)
  view.setUint16(at + ROW_SERVER_PORT, source.serverPort, true)
  for (let byte = 0; byte < source.addressBytes; byte += 4) {
    view.setUint32(at + ROW_CLIENT + byte, addresses.getUint32(source.client + byte))
    view.setUint32(at + ROW_SERVER + byte, addresses.getUint32(source.server + byte))
  }
  const nameEnd = writeNameText(name, view, at + ROW_NAME)
  view.setUint16(at + ROW_NAME_BYTES, nameEnd - (at + ROW_NAME), true)
  const rowEnd = (nameEnd + 7) & ~7
  view.setUint32(at + ROW_BYTES, rowEnd - at, true)
  return rowEnd
}

/** Length in bytes of the row at `at`. */
export function rowBytes(view: DataView, at: number): number {
  return view.getUint32(at + ROW_BYTES, true)
}

/** Index in the batch of the frame of the row at `at`. */
export function rowFrame(view: DataView, at: number): number {
  return view.getUint32(at + ROW_FRAME, true)
}

/** Reads the row at `at`. `bytes` is the memory of `view`. */
export function readRow(view: DataView, bytes: Buffer, at: number): ObservedName {
  const version = view.getUint8(at + ROW_VERSION)
  const via = VIA_NAMES[view.getUint8(at + ROW_VIA)]
  return {
    timeMs: rowTimeMs(view, at),
    method: METHOD_NAMES[view.getUint8(at + ROW_METHOD)] as MethodName,
    client: addressText(view, at + ROW_CLIENT, version),
    clientPort: view.getUint16(at + ROW_CLIENT_PORT, true),
    server: addressText(view, at + ROW_SERVER, version),
    serverPort: view.getUint16(at + ROW_SERVER_PORT, true),
    name: rowName(view, bytes, at),
    ...(view.getUint8(at + ROW_ECH) === 1 ? { ech: true } : {}),
    ...(via === undefined || via === 'none' ? {} : { via }),
    rule: view.getInt32(at + ROW_RULE, true),
  }
}

/** The name of the row at `at`. */
export function rowName(view: DataView, bytes: Buffer, at: number): string {
  return bytes.toString('latin1', at + ROW_NAME, at + ROW_NAME + view.getUint16(at + ROW_NAME_BYTES, true))
}

/** Index of the rule that the row at `at` matched, or NO_MATCH. */
export function rowRule(view: DataView, at: number): number {
  return view.getInt32(at + ROW_RULE, true)
}

/** Method of the row at `at`. */
export function rowMethod(view: DataView, at: number): Method {
  return view.getUint8(at + ROW_METHOD) as Method
}

/** Whether the row at `at` says that an earlier query for the name was blocked. */
export function rowIsRefusal(view: DataView, at: number): boolean {
  return view.getUint8(at + ROW_REFUSAL) === 1
}

/** Milliseconds since 1970 of the row at `at`. */
export function rowTimeMs(view: DataView, at: number): number {
  return view.getUint32(at + ROW_SECONDS, true) * 1000 + view.getUint32(at + ROW_NANOSECONDS, true) / 1e6
}

/**
 * The key that rows of the same client, name and method share, as little-endian words:
 *
 *     word  0  method, IP version and length of the name, as in the row
 *           1  client address, one word or four; then the name, padded with zeros
 */
export const KEY_WORDS_MAX = 1 + 4 + Math.ceil(NAME_TEXT_BYTES_MAX / 4)

/** Writes the key of the row at `at`. Returns its length in words. */
export function rowKey(view: DataView, at: number, key: Uint32Array): number {
  const kind = view.getUint32(at + ROW_METHOD, true)
  key[0] = kind
  const addressEnd = ((kind >>> 8) & 0xff) === 4 ? 2 : 5
  for (let word = 1; word < addressEnd; word++) key[word] = view.getUint32(at + ROW_CLIENT + (word - 1) * 4, true)
  const nameBytes = kind >>> 16
  const whole = nameBytes >>> 2
  let word = addressEnd
  let from = at + ROW_NAME
  for (let left = whole; left > 0; left--, from += 4) key[word++] = view.getUint32(from, true)
  // A row's padding to 8 bytes is not cleared.
  const rest = nameBytes & 3
  if (rest > 0) key[word++] = view.getUint32(from, true) & ((1 << (rest * 8)) - 1)
  return word
}

/** Decodes the key at word `at`. */
export function readKey(keys: Uint32Array, at: number): { method: MethodName; client: string; name: string } {
  const view = new DataView(keys.buffer, keys.byteOffset + at * 4)
  const kind = view.getUint32(0, true)
  const version = (kind >>> 8) & 0xff
  const name = keys.byteOffset + (at + (version === 4 ? 2 : 5)) * 4
  return {
    method: METHOD_NAMES[kind & 0xff] as MethodName,
    client: addressText(view, 4, version),
    name: Buffer.from(keys.buffer, name, kind >>> 16).toString('latin1'),
  }
}
