/**
 * Builders of packets, in the terms of the protocols. Each takes its payload, so that a packet
 * reads from the outside in: `ipFrame({ source, destination }, udp({ sourcePort,
 * destinationPort: 53 }, dnsQuery(['example.org'])))`.
 */

/** IANA Assigned Internet Protocol Numbers */
const PROTOCOL_TCP = 6
const PROTOCOL_UDP = 17

export const EtherType = {
  ipv4: 0x0800,
  arp: 0x0806,
  /** RFC 1701: Ethernet in GRE, also in GENEVE. */
  transparentEthernet: 0x6558,
  vlan: 0x8100,
  ipv6: 0x86dd,
  mpls: 0x8847,
  pppoeSession: 0x8864,
  qinq: 0x88a8,
} as const

/** Payload of an IP builder: the protocol's number and bytes. The checksum is not filled in yet. */
export interface Transport {
  readonly protocol: number
  readonly bytes: Buffer
  /** Offset of the checksum over pseudo header and bytes; -1 if the protocol has none. */
  readonly checksumAt: number
}

/** A network packet with its EtherType: an IP packet, or a VLAN tag with its payload. */
export interface NetworkPacket {
  readonly etherType: number
  readonly bytes: Buffer
}

export function u16(value: number): Buffer {
  return Buffer.from([(value >> 8) & 0xff, value & 0xff])
}

export function u24(value: number): Buffer {
  return Buffer.from([(value >> 16) & 0xff, (value >> 8) & 0xff, value & 0xff])
}

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value >>> 0)
  return bytes
}

/** RFC 1071: the complement of the ones' complement sum. */
export function checksum(...parts: readonly Buffer[]): number {
  const bytes = Buffer.concat(parts)
  let sum = 0
  for (let at = 0; at < bytes.length; at += 2) sum += ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16)
  return ~sum & 0xffff
}

export function addressBytes(address: string): Buffer {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number))
  const [head = '', tail] = address.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)))
  const before = groups(head)
  const after = groups(tail ?? '')
  const zeros = new Array<number>(tail === undefined ? 0 : 8 - before.length - after.length).fill(0)
  return Buffer.concat([...before, ...zeros, ...after].map(u16))
}

export function ethernet(addresses: { source?: string; destination?: string }, packet: NetworkPacket): Buffer {
  const mac = (text: string) => Buffer.from(text.replaceAll(':', ''), 'hex')
  return Buffer.concat([
    mac(addresses.destination ?? '02:00:00:00:00:01'),
    mac(addresses.source ?? '02:00:00:00:00:02'),
    u16(packet.etherType),
    packet.bytes,
  ])
}

/** An Ethernet frame with an IP packet, of the version that its addresses have. */
export function ipFrame(fields: Ipv4Fields & Ipv6Fields, payload: Transport): Buffer {
  return ethernet({}, fields.source.includes(':') ? ipv6(fields, payload) : ipv4(fields, payload))
}

/** IEEE 802.1Q. `tag` is the EtherType of the tag. */
export function vlan(id: number, packet: NetworkPacket, tag: number = EtherType.vlan): NetworkPacket {
  return { etherType: tag, bytes: Buffer.concat([u16(id), u16(packet.etherType), packet.bytes]) }
}

export interface Ipv4Fields {
  readonly source: string
  readonly destination: string
  readonly options?: Buffer
  readonly identification?: number
  /** The 16-bit header field of flags and fragment offset. */
  readonly fragment?: number
  readonly ttl?: number
}

/** RFC 791 §3.1 */
export function ipv4(fields: Ipv4Fields, payload: Transport): NetworkPacket {
  const source = addressBytes(fields.source)
  const destination = addressBytes(fields.destination)
  const options = fields.options ?? Buffer.alloc(0)
  const transport = withChecksum(payload, source, destination)
  const header = Buffer.concat([
    Buffer.from([0x40 | (5 + options.length / 4), 0]),
    u16(20 + options.length + transport.length),
    u16(fields.identification ?? 1),
    u16(fields.fragment ?? 0x4000),
    Buffer.from([fields.ttl ?? 64, payload.protocol, 0, 0]),
    source,
    destination,
    options,
  ])
  header.writeUInt16BE(checksum(header), 10)
  return { etherType: EtherType.ipv4, bytes: Buffer.concat([header, transport]) }
}

export interface Ipv6Fields {
  readonly source: string
  readonly destination: string
  /** Extension headers: number and bytes after Next Header. */
  readonly extensions?: readonly { readonly number: number; readonly bytes: Buffer }[]
}

/** RFC 8200 §3 */
export function ipv6(fields: Ipv6Fields, payload: Transport): NetworkPacket {
  const source = addressBytes(fields.source)
  const destination = addressBytes(fields.destination)
  const transport = withChecksum(payload, source, destination)
  const extensions = fields.extensions ?? []
  const numbers = [...extensions.map(({ number }) => number), payload.protocol]
  const chain = extensions.map(({ bytes }, index) =>
    Buffer.concat([Buffer.from([numbers[index + 1] as number]), bytes]),
  )
  const body = Buffer.concat([...chain, transport])
  const header = Buffer.concat([
    u32(0x6000_0000),
    u16(body.length),
    Buffer.from([numbers[0] as number, 64]),
    source,
    destination,
  ])
  return { etherType: EtherType.ipv6, bytes: Buffer.concat([header, body]) }
}

/** RFC 9293 §3.1 and RFC 8200 §8.1: the checksum covers addresses, length and protocol. */
export function withChecksum(payload: Transport, source: Buffer, destination: Buffer): Buffer {
  if (payload.checksumAt < 0) return payload.bytes
  const bytes = Buffer.from(payload.bytes)
  const sum = checksum(source, destination, u32(bytes.length), u32(payload.protocol), bytes)
  // RFC 768: a sum of zero is sent as all ones, because zero means no checksum.
  bytes.writeUInt16BE(sum === 0 && payload.protocol === PROTOCOL_UDP ? 0xffff : sum, payload.checksumAt)
  return bytes
}

/** RFC 768. `length` overrides the true length. */
export function udp(
  fields: { sourcePort: number; destinationPort: number; length?: number },
  payload: Buffer,
): Transport {
  const length = fields.length ?? 8 + payload.length
  const bytes = Buffer.concat([u16(fields.sourcePort), u16(fields.destinationPort), u16(length), u16(0), payload])
  return { protocol: PROTOCOL_UDP, bytes, checksumAt: 6 }
}

export const TcpFlags = { fin: 0x01, syn: 0x02, rst: 0x04, psh: 0x08, ack: 0x10 } as const

export interface TcpFields {
  readonly sourcePort: number
  readonly destinationPort: number
  readonly sequence?: number
  readonly acknowledgement?: number
  readonly flags?: number
  readonly options?: Buffer
}

/** RFC 9293 §3.1 */
export function tcp(fields: TcpFields, payload: Buffer = Buffer.alloc(0)): Transport {
  const options = fields.options ?? Buffer.alloc(0)
  const bytes = Buffer.concat([
    u16(fields.sourcePort),
    u16(fields.destinationPort),
    u32(fields.sequence ?? 1),
    u32(fields.acknowledgement ?? 1),
    Buffer.from([(5 + options.length / 4) << 4, fields.flags ?? TcpFlags.psh | TcpFlags.ack]),
    u16(64_240),
    u16(0),
    u16(0),
    options,
    payload,
  ])
  return { protocol: PROTOCOL_TCP, bytes, checksumAt: 16 }
}

/** Any other protocol, with its bytes unchanged: ICMP, a fragment's payload. */
export function otherTransport(protocol: number, bytes: Buffer): Transport {
  return { protocol, bytes, checksumAt: -1 }
}
