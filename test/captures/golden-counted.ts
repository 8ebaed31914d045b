import type { GoldenCases } from '../../collector/commands/selftest.ts'
import { EtherType, ethernet, ipFrame, type Transport, u16, udp } from '../support/packets.ts'
import {
  ah,
  dnscryptAnswer,
  dtlsHello,
  esp,
  espPacket,
  openVpnReset,
  wireguardInitiation,
} from '../support/packets-hidden.ts'
import { macsec } from '../support/packets-tags.ts'
import { TcpStream } from '../support/packets-tcp-stream.ts'
import { CLIENT, SERVER } from './parties.ts'

/** Frames of a kind that is counted once. `port` is the client port of this case. */
export interface Counted {
  readonly case: string
  readonly counter: GoldenCases['counted'][number]['counter']
  readonly frames: (port: number) => readonly Buffer[]
}

export const toServer = (transport: Transport): Buffer => ipFrame({ source: CLIENT, destination: SERVER }, transport)
export const datagram = (sourcePort: number, destinationPort: number, payload: Buffer): Buffer =>
  toServer(udp({ sourcePort, destinationPort }, payload))
const arp = { etherType: EtherType.arp, bytes: Buffer.alloc(28) }

/** Each frame is sent twice, and must be counted once unless packets are counted. */
export const COUNTED: readonly Counted[] = [
  { case: 'IPsec ESP', counter: 'esp_sessions', frames: () => twice(toServer(esp(0x1001))) },
  {
    case: 'IPsec ESP in UDP',
    counter: 'esp_sessions',
    frames: () => twice(datagram(4500, 4500, espPacket(0x1002))),
  },
  {
    case: 'IPsec authentication header',
    counter: 'ah_packets',
    frames: (port) => [toServer(ah(udp({ sourcePort: port, destinationPort: 9 }, Buffer.alloc(8))))],
  },
  {
    case: 'MACsec with encryption',
    counter: 'macsec_packets',
    frames: () => [ethernet({}, macsec(arp, { encrypted: true, channel: true }))],
  },
  {
    case: 'unknown EtherType',
    counter: 'unknown_ethertype_packets',
    frames: () => [ethernet({}, { etherType: 0x9999, bytes: Buffer.alloc(46) })],
  },
  {
    case: 'WireGuard',
    counter: 'wireguard_sessions',
    frames: (port) => twice(datagram(port, 51_820, wireguardInitiation())),
  },
  {
    case: 'OpenVPN over UDP',
    counter: 'openvpn_sessions',
    frames: (port) => twice(datagram(port, 1194, openVpnReset(20))),
  },
  {
    case: 'OpenVPN over TCP',
    counter: 'openvpn_sessions',
    frames: (port) => {
      const reset = openVpnReset()
      const one = new TcpStream({ clientPort: port, serverPort: 1194 }, Buffer.concat([u16(reset.length), reset]))
      return [...one.open(), ...one.sendSplit([])]
    },
  },
  {
    case: 'DTLS',
    counter: 'dtls_sessions',
    frames: (port) => twice(datagram(port, 3478, dtlsHello())),
  },
  {
    case: 'DNSCrypt, the answer of a resolver',
    counter: 'dnscrypt_sessions',
    frames: (port) => twice(datagram(443, port, dnscryptAnswer())),
  },
]

const twice = (frame: Buffer): Buffer[] => [frame, frame]
