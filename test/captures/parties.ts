import { EtherType, ipv4, ipv6, type NetworkPacket, type Transport, tcp, udp } from '../support/packets.ts'
import { dnsQuery } from '../support/packets-dns.ts'
import type { TcpStream } from '../support/packets-tcp-stream.ts'
import { clientHello, tlsRecords } from '../support/packets-tls.ts'
import type { ExpectedName, GeneratedPacket } from './generated-capture.ts'

/**
 * The endpoints in generated captures, and the names expected from their packets. Servers have
 * documentation addresses (RFC 5737, RFC 3849).
 */
export const START_MS = Date.UTC(2026, 2, 3, 9, 0, 0)
export const CLIENT = '10.0.0.7'
export const RESOLVER = '192.0.2.53'
export const SERVER = '203.0.113.9'
export const CLIENT6 = '2001:db8::7'
export const SERVER6 = '2001:db8:0:1::9'

export type UntimedPacket = Omit<GeneratedPacket, 'timeMs'>
type FramelessName = Omit<ExpectedName, 'frame'>

export function everyMillisecond(packets: readonly UntimedPacket[]): GeneratedPacket[] {
  return packets.map((packet, index) => ({ ...packet, timeMs: START_MS + index }))
}

export const query = (payload: Buffer) => udp({ sourcePort: 50_000, destinationPort: 53 }, payload)
export const segment = (payload: Buffer) => tcp({ sourcePort: 50_001, destinationPort: 443 }, payload)
export const toResolver = (transport: Transport) => ipv4({ source: CLIENT, destination: RESOLVER }, transport)
export const toServer = (transport: Transport) => ipv4({ source: CLIENT, destination: SERVER }, transport)

export function queryName(name: string, client = CLIENT, server = RESOLVER): FramelessName {
  return { method: 'dns', client, clientPort: 50_000, server, serverPort: 53, name }
}

export function helloName(name: string, client = CLIENT, server = SERVER): FramelessName {
  return { method: 'tls', client, clientPort: 50_001, server, serverPort: 443, name }
}

/** A packet with its expected name. */
export interface Message {
  readonly packet: NetworkPacket
  readonly reported: FramelessName
}

/** A DNS query over IPv4. */
export function queryFor(name: string): Message {
  return { packet: toResolver(query(dnsQuery([name]))), reported: queryName(name) }
}

/** A ClientHello over IPv6. `clientPort` distinguishes the connections of a capture. */
export function helloFor(name: string, clientPort: number): Message {
  const hello = tlsRecords(clientHello({ serverName: name, grease: true }))
  const packet = ipv6(
    { source: CLIENT6, destination: SERVER6 },
    tcp({ sourcePort: clientPort, destinationPort: 443 }, hello),
  )
  return { packet, reported: { ...helloName(name, CLIENT6, SERVER6), clientPort } }
}

/** An ARP request, as an example of traffic other than IP. */
export const ARP: NetworkPacket = {
  etherType: EtherType.arp,
  bytes: Buffer.from('00010800060400010200000000020a0000070000000000000a000001', 'hex'),
}

/** Frames of which one completes the names: the last, or the frame with index `at`. */
export function frames(
  bytes: readonly Buffer[],
  names: readonly FramelessName[] = [],
  at = bytes.length - 1,
): UntimedPacket[] {
  return bytes.map((frame, index) => (index === at ? { bytes: frame, names } : { bytes: frame }))
}

/** The name expected from a connection. */
export function reported(method: 'dns' | 'tls', stream: TcpStream, name: string): FramelessName {
  const { client, clientPort, server, serverPort } = stream
  return { method, client, clientPort, server, serverPort, name }
}
