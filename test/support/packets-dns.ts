import { encode, type Packet, type RecordType } from 'dns-packet'
import { u16, u32 } from './packets.ts'

/** RFC 1035 §4.1.1: recursion desired. */
const RD = 0x0100

/** TYPE65 (RFC 9460). dns-packet has no name for it, but encodes an unknown type by its number. */
export type QuestionType = RecordType | 'HTTPS'
const TYPE_HTTPS = 65

/** A query as a stub resolver sends it. Encoded by dns-packet. */
export function dnsQuery(names: readonly string[], type: QuestionType = 'A', id = 1): Buffer {
  const known = type === 'HTTPS' ? 'A' : type
  const packet: Packet = { type: 'query', id, flags: RD, questions: names.map((name) => ({ type: known, name })) }
  const bytes = encode(packet)
  // The query's single question ends with QTYPE and QCLASS.
  if (type === 'HTTPS') bytes.writeUInt16BE(TYPE_HTTPS, bytes.length - 4)
  return bytes
}

/** The answer to `dnsQuery`. */
export function dnsResponse(name: string, address: string, id = 1): Buffer {
  const type = address.includes(':') ? 'AAAA' : 'A'
  return encode({
    type: 'response',
    id,
    flags: RD | 0x0080,
    questions: [{ type, name }],
    answers: [{ type, name, ttl: 300, data: address }],
  })
}

/**
 * A message from header fields and the bytes of its questions, for messages that dns-packet cannot
 * write.
 */
export function dnsMessage(
  fields: { id?: number; flags?: number; questions: number },
  ...parts: readonly Buffer[]
): Buffer {
  return Buffer.concat([u16(fields.id ?? 1), u16(fields.flags ?? RD), u16(fields.questions), Buffer.alloc(6), ...parts])
}

/** A record of an answer, by default of the asked name. */
export interface DnsRecord {
  readonly owner?: Buffer
  readonly type: number
  /** Seconds. */
  readonly ttl: number
  readonly data: Buffer
}

/** An answer with these records, of the kinds that dns-packet cannot write. */
export function dnsAnswer(
  name: string,
  records: readonly DnsRecord[],
  { flags = 0x8180, type = records[0]?.type ?? 1 }: { flags?: number; type?: number } = {},
): Buffer {
  const bytes = records.map(({ owner = pointer(12), type, ttl, data }) =>
    Buffer.concat([owner, u16(type), u16(1), u32(ttl), u16(data.length), data]),
  )
  const message = dnsMessage({ flags, questions: 1 }, wireName(name), u16(type), u16(1), ...bytes)
  message.writeUInt16BE(records.length, 6)
  return message
}

/** RFC 9460 §2.2: an HTTPS record in service mode, of the asked name. */
export function httpsRecord(parameters: readonly (readonly [key: number, value: Buffer])[], ttl = 300): DnsRecord {
  const values = parameters.map(([key, value]) => Buffer.concat([u16(key), u16(value.length), value]))
  return { type: TYPE_HTTPS, ttl, data: Buffer.concat([u16(1), ROOT, ...values]) }
}

/** A name in wire form. */
export const wireName = (name: string): Buffer => Buffer.concat([labels(...name.split('.')), ROOT])

/** RFC 1035 §3.1: labels of arbitrary bytes, without the final zero. */
export function labels(...texts: readonly (string | Buffer)[]): Buffer {
  return Buffer.concat(
    texts.map((text) => {
      const bytes = Buffer.from(text as string)
      return Buffer.concat([Buffer.from([bytes.length]), bytes])
    }),
  )
}

/** RFC 1035 §4.1.4: a pointer to an offset in the message. */
export function pointer(offset: number): Buffer {
  return u16(0xc000 | offset)
}

export const ROOT = Buffer.from([0])

/** QTYPE A, QCLASS IN. */
export const TYPE_A_IN = Buffer.from([0, 1, 0, 1])

/** RFC 1035 §4.2.2: messages over TCP, each after its length. */
export function dnsOverTcp(...messages: readonly Buffer[]): Buffer {
  return Buffer.concat(messages.flatMap((message) => [u16(message.length), message]))
}
