import { createCipheriv, createHmac, hkdfSync } from 'node:crypto'
import { fill } from './packets-tls.ts'

/**
 * Builders of QUIC packets (RFC 9000, 9001, 9369). The encryption code is separate from the
 * decoder's, so that an error in one is not repeated in the other.
 */

export const QUIC_V1 = 0x0000_0001
export const QUIC_V2 = 0x6b33_43cf

/** RFC 9001 §5.4.2 */
const SAMPLE_BYTES = 16
const TAG_BYTES = 16

/**
 * RFC 9000 §17.2: long packet types of version 1. In version 2 each is one higher and Retry is 0
 * (RFC 9369 §3.2).
 */
const LONG_PACKET_TYPES = { initial: 0, zeroRtt: 1, handshake: 2, retry: 3 } as const
type LongPacketType = keyof typeof LONG_PACKET_TYPES

/** The salt of a version, by the highest draft number that uses it. */
function saltOf(version: number): string {
  const draft = version >>> 8 === 0xff_0000 ? version & 0xff : 0
  if (version === QUIC_V2) return '0dede3def700a6db819381be6e269dcbf9bd2ed9'
  // A reserved version (RFC 9000 §15) is encrypted like version 1.
  if ((version & 0x0f0f_0f0f) === 0x0a0a_0a0a) return saltOf(QUIC_V1)
  if (draft === 22 || version === 0xface_b001) return '7fbcdb0e7c66bbe9193a96cd21519ebd7a02644a'
  if (version === QUIC_V1 || draft > 32) return '38762cf7f55934b34d179ae6a4c80cadccbb7f0a'
  return draft > 28 ? 'afbfec289993d24c9e9786f19c6111e04390a899' : 'c3eef712c72ebb5a11a7d2432bb46365bef9f502'
}

/** RFC 9001 §5.2, client keys. */
function clientKeys(version: number, dcid: Buffer): { key: Buffer; iv: Buffer; headerKey: Buffer } {
  const label = (name: string, bytes: number) =>
    Buffer.concat([Buffer.from([0, bytes, 6 + name.length]), Buffer.from(`tls13 ${name}`), Buffer.from([0])])
  const secret = Buffer.from(hkdfSync('sha256', dcid, Buffer.from(saltOf(version), 'hex'), label('client in', 32), 32))
  const protocol = version === QUIC_V2 ? 'quicv2' : 'quic'
  const expand = (name: string, bytes: number) =>
    createHmac('sha256', secret)
      .update(label(`${protocol} ${name}`, bytes))
      .update(Buffer.from([1]))
      .digest()
      .subarray(0, bytes)
  return { key: expand('key', 16), iv: expand('iv', 12), headerKey: expand('hp', 16) }
}

/** RFC 9000 §16. Default: the fewest bytes that hold the value. */
export function varint(
  value: number,
  bytes: 1 | 2 | 4 | 8 = value < 64 ? 1 : value < 16_384 ? 2 : value < 2 ** 30 ? 4 : 8,
): Buffer {
  const encoded = Buffer.alloc(8)
  encoded.writeBigUInt64BE(BigInt(value))
  const cut = encoded.subarray(8 - bytes)
  cut[0] = (cut[0] ?? 0) | (Math.log2(bytes) << 6)
  return cut
}

/** RFC 9000 §19.6 */
export function cryptoFrame(offset: number, bytes: Buffer): Buffer {
  return Buffer.concat([varint(6), varint(offset), varint(bytes.length), bytes])
}

/** RFC 9000 §19.2 */
export function ping(): Buffer {
  return Buffer.from([1])
}

/** RFC 9000 §19.1 */
export function padding(bytes: number): Buffer {
  return Buffer.alloc(bytes)
}

export interface AckFields {
  readonly largest: number
  readonly delay?: number
  readonly first?: number
  /** Gap and ACK Range Length of each range. */
  readonly ranges?: readonly (readonly [number, number])[]
  /** ECT0, ECT1 and ECN-CE counts. With them the frame is an ACK_ECN. */
  readonly ecn?: readonly [number, number, number]
}

/** RFC 9000 §19.3 */
export function ack(fields: AckFields): Buffer {
  const ranges = fields.ranges ?? []
  const numbers = [fields.largest, fields.delay ?? 0, ranges.length, fields.first ?? 0, ...ranges.flat()]
  return Buffer.concat(
    [fields.ecn === undefined ? 2 : 3, ...numbers, ...(fields.ecn ?? [])].map((number) => varint(number)),
  )
}

/** RFC 9000 §19.19: CONNECTION_CLOSE with a transport error. */
export function connectionClose(errorCode: number, reason: string): Buffer {
  return Buffer.concat([
    varint(0x1c),
    varint(errorCode),
    varint(0),
    varint(reason.length),
    Buffer.from(reason, 'latin1'),
  ])
}

function longHeaderStart(type: LongPacketType, low: number, version: number, dcid: Buffer, scid: Buffer): Buffer {
  const number = (LONG_PACKET_TYPES[type] + (version === QUIC_V2 ? 1 : 0)) & 3
  const start = Buffer.from([0xc0 | (number << 4) | low, 0, 0, 0, 0, dcid.length])
  start.writeUInt32BE(version, 1)
  return Buffer.concat([start, dcid, Buffer.from([scid.length]), scid])
}

export interface InitialFields {
  readonly version?: number
  readonly dcid: Buffer
  /** The connection ID that the keys derive from. Default: the packet's own. */
  readonly keyDcid?: Buffer
  readonly scid?: Buffer
  readonly token?: Buffer
  readonly packetNumber?: number
  readonly packetNumberBytes?: 1 | 2 | 3 | 4
  readonly frames: Buffer
  /** Length of the whole packet, padded with PADDING frames. */
  readonly padTo?: number
}

/** RFC 9000 §17.2.2, RFC 9001 §5.3 and §5.4. */
export function quicInitial(fields: InitialFields): Buffer {
  const version = fields.version ?? QUIC_V1
  const { key, iv, headerKey } = clientKeys(version, fields.keyDcid ?? fields.dcid)
  const numberBytes = fields.packetNumberBytes ?? 1
  const fullNumber = Buffer.alloc(12)
  fullNumber.writeUInt32BE(fields.packetNumber ?? 0, 8)
  const packetNumber = fullNumber.subarray(12 - numberBytes)
  const token = fields.token ?? Buffer.alloc(0)
  const start = Buffer.concat([
    longHeaderStart('initial', numberBytes - 1, version, fields.dcid, fields.scid ?? Buffer.alloc(0)),
    varint(token.length),
    token,
  ])
  const lengthBytes = (fields.padTo ?? 0) + fields.frames.length < 16_000 ? 2 : 4
  const padded = (fields.padTo ?? 0) - start.length - lengthBytes - numberBytes - TAG_BYTES
  // Without padTo: the fewest bytes that the sample of header protection needs.
  const plaintextBytes = Math.max(fields.frames.length, padded, 4 - numberBytes)
  const plaintext = Buffer.concat([fields.frames, padding(plaintextBytes - fields.frames.length)])
  const header = Buffer.concat([start, varint(numberBytes + plaintextBytes + TAG_BYTES, lengthBytes), packetNumber])

  const cipher = createCipheriv('aes-128-gcm', key, Buffer.from(iv.map((byte, at) => byte ^ (fullNumber[at] ?? 0))))
  cipher.setAAD(header)
  const packet = Buffer.concat([header, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()])

  const numberAt = header.length - numberBytes
  const sample = packet.subarray(numberAt + 4, numberAt + 4 + SAMPLE_BYTES)
  const mask = createCipheriv('aes-128-ecb', headerKey, null).update(sample)
  packet[0] = (packet[0] ?? 0) ^ ((mask[0] ?? 0) & 0x0f)
  for (let at = 0; at < numberBytes; at++) packet[numberAt + at] = (packet[numberAt + at] ?? 0) ^ (mask[1 + at] ?? 0)
  return packet
}

export interface OtherFields {
  readonly type: 'zeroRtt' | 'handshake'
  readonly version?: number
  readonly dcid: Buffer
  readonly scid?: Buffer
  /** Number of bytes after the Length field; the seed determines their values. */
  readonly bytes: number
  readonly seed?: number
}

/** RFC 9000 §17.2.3, §17.2.4: a packet whose keys are unknown to an observer. */
export function quicLongOther(fields: OtherFields): Buffer {
  const version = fields.version ?? QUIC_V1
  return Buffer.concat([
    longHeaderStart(fields.type, 0, version, fields.dcid, fields.scid ?? Buffer.alloc(0)),
    varint(fields.bytes),
    fill(fields.seed ?? 1)(fields.bytes),
  ])
}

export interface RetryFields {
  readonly version?: number
  readonly dcid: Buffer
  readonly scid?: Buffer
  readonly token: Buffer
  /**
   * Destination connection ID of the Initial that the Retry answers. With it, the integrity tag is
   * valid (version 1). Only endpoints check the tag.
   */
  readonly answers?: Buffer
}

/** RFC 9001 §5.8 */
const RETRY_KEY = Buffer.from('be0c690b9f66575a1d766b54e368c84e', 'hex')
const RETRY_NONCE = Buffer.from('461599d35d632bf2239825bb', 'hex')

/** RFC 9000 §17.2.5. */
export function quicRetry(fields: RetryFields): Buffer {
  const start = longHeaderStart('retry', 0, fields.version ?? QUIC_V1, fields.dcid, fields.scid ?? Buffer.alloc(0))
  const packet = Buffer.concat([start, fields.token])
  if (fields.answers === undefined) return Buffer.concat([packet, fill(7)(TAG_BYTES)])
  const cipher = createCipheriv('aes-128-gcm', RETRY_KEY, RETRY_NONCE)
  cipher.setAAD(Buffer.concat([Buffer.from([fields.answers.length]), fields.answers, packet]))
  cipher.final()
  return Buffer.concat([packet, cipher.getAuthTag()])
}

export interface SpreadFields extends Omit<InitialFields, 'frames' | 'padTo'> {
  readonly datagrams: number
  /** Total number of CRYPTO frames. Default: one per datagram. */
  readonly pieces?: number
  /** Indexes of the pieces in sending order. */
  readonly order?: readonly number[]
  /** Size of each UDP payload. */
  readonly payloadBytes?: number
}

/**
 * Splits a ClientHello into CRYPTO frames of equal size over several datagrams with one Initial
 * each.
 */
export function initialDatagrams(hello: Buffer, fields: SpreadFields): Buffer[] {
  const pieces = fields.pieces ?? fields.datagrams
  const pieceBytes = Math.ceil(hello.length / pieces)
  const order = fields.order ?? Array.from({ length: pieces }, (_, index) => index)
  const frames = order.map((index) =>
    cryptoFrame(index * pieceBytes, hello.subarray(index * pieceBytes, (index + 1) * pieceBytes)),
  )
  const each = Math.ceil(frames.length / fields.datagrams)
  return Array.from({ length: fields.datagrams }, (_, index) =>
    quicInitial({
      ...fields,
      packetNumber: (fields.packetNumber ?? 0) + index,
      frames: Buffer.concat(frames.slice(index * each, (index + 1) * each)),
      padTo: fields.payloadBytes ?? 1200,
    }),
  )
}
