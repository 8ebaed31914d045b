import { addressBytes, u16 } from './packets.ts'
import { dnsQuery } from './packets-dns.ts'

/** dnstap.proto of dnstap.info, and Frame Streams (farsightsec/fstrm). */
export const CLIENT_QUERY = 5
export const CLIENT_RESPONSE = 6

export interface DnstapFields {
  readonly type?: number
  readonly identity?: string
  readonly client?: string
  readonly server?: string
  readonly port?: number
  readonly seconds?: number
  readonly nanoseconds?: number
  readonly query?: Buffer
}

export function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  do {
    bytes.push((rest % 128) + (rest >= 128 ? 128 : 0))
    rest = Math.floor(rest / 128)
  } while (rest > 0)
  return Buffer.from(bytes)
}

export const numberField = (field: number, value: number): Buffer => Buffer.concat([varint(field * 8), varint(value)])
export const bytesField = (field: number, value: Uint8Array): Buffer =>
  Buffer.concat([varint(field * 8 + 2), varint(value.length), value])

/** A `Dnstap` message. Fields that are undefined are left out. */
export function dnstapMessage(name: string, fields: DnstapFields = {}): Buffer {
  const { type = CLIENT_QUERY, identity, client = '10.0.0.7', server, port = 53_211, seconds, nanoseconds } = fields
  const fixed = Buffer.alloc(4)
  fixed.writeUInt32LE(nanoseconds ?? 0)
  const message = Buffer.concat([
    numberField(1, type),
    numberField(2, client.includes(':') ? 2 : 1),
    numberField(3, 1),
    bytesField(4, addressBytes(client)),
    ...(server === undefined ? [] : [bytesField(5, addressBytes(server)), numberField(7, 53)]),
    numberField(6, port),
    ...(seconds === undefined ? [] : [numberField(8, seconds)]),
    ...(nanoseconds === undefined ? [] : [varint(9 * 8 + 5), fixed]),
    bytesField(10, fields.query ?? dnsQuery([name])),
  ])
  return Buffer.concat([
    ...(identity === undefined ? [] : [bytesField(1, Buffer.from(identity))]),
    bytesField(2, Buffer.from('unbound 1.17.1')),
    bytesField(14, message),
    numberField(15, 1),
  ])
}

const u32be = (value: number): Buffer => Buffer.concat([u16(value >>> 16), u16(value & 0xffff)])

export const dataFrame = (bytes: Buffer): Buffer => Buffer.concat([u32be(bytes.length), bytes])

export const Control = { accept: 1, start: 2, stop: 3, ready: 4, finish: 5 } as const

export function controlFrame(type: number, contentType: string | undefined = 'protobuf:dnstap.Dnstap'): Buffer {
  const isTyped = type !== Control.stop && type !== Control.finish && contentType !== ''
  const field = isTyped
    ? Buffer.concat([u32be(1), u32be(contentType.length), Buffer.from(contentType)])
    : Buffer.alloc(0)
  return Buffer.concat([u32be(0), u32be(4 + field.length), u32be(type), field])
}
