import { encode, type Packet, type RecordType } from 'dns-packet'
import { u16 } from './packets.ts'

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
