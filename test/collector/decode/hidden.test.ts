import t from 'tap'
import type { CounterName } from '../../../collector/batch/counters.ts'
import { ipFrame, udp } from '../../support/packets.ts'
import {
  dnscryptAnswer,
  dtlsHello,
  esp,
  espPacket,
  openVpnReset,
  openVpnResetWithKey,
  wireguardInitiation,
} from '../../support/packets-hidden.ts'
import { initialDatagrams } from '../../support/packets-quic.ts'
import { TcpStream } from '../../support/packets-tcp-stream.ts'
import { clientHello, fill, tlsRecords } from '../../support/packets-tls.ts'
import { FrameDecoder } from '../decode-frames.ts'

const ADDRESSES = { source: '10.0.0.7', destination: '203.0.113.9' }
const KINDS: readonly CounterName[] = [
  ...(['helloQuicUnknownVersion', 'espSessions', 'wireguardSessions', 'openvpnSessions'] as const),
  ...(['dtlsSessions', 'dnscryptSessions', 'torSessions', 'doqSessions'] as const),
]

/** The kinds that the frames count as, with their numbers. */
function kindsOf(frames: readonly Buffer[]): Partial<Record<CounterName, number>> {
  const decoder = new FrameDecoder()
  decoder.decode(frames)
  const { counters } = decoder
  return Object.fromEntries(KINDS.flatMap((name) => (counters[name] === 0 ? [] : [[name, counters[name]]])))
}

const between = (sourcePort: number, destinationPort: number, payload: Buffer): Buffer =>
  ipFrame(ADDRESSES, udp({ sourcePort, destinationPort }, payload))
const to = (destinationPort: number, payload: Buffer): Buffer => between(50_000, destinationPort, payload)
const changed = (bytes: Buffer, at: number, value: number): Buffer => {
  const copy = Buffer.from(bytes)
  copy[at < 0 ? copy.length + at : at] = value
  return copy
}

const Q046 = 0x5130_3436
const initial = (version: number, options: { dcid?: Buffer } = {}): Buffer =>
  initialDatagrams(clientHello({ serverName: 'a.example' }), {
    ...{ dcid: fill(1)(8), scid: fill(2)(4), datagrams: 1, version },
    ...options,
  })[0] as Buffer
/** RFC 3550 §5.1: version 2, whose bytes look like a long header of an unknown version. */
const rtp = Buffer.concat([Buffer.from('8060a1b200112233deadbeef', 'hex'), fill(3)(1300)])

const ROWS: readonly (readonly [name: string, frame: Buffer, kinds: Partial<Record<CounterName, number>>])[] = [
  ['QUIC Q046', to(443, initial(Q046)), { helloQuicUnknownVersion: 1 }],
  ['an early draft', to(443, initial(0xff00_0012)), { helloQuicUnknownVersion: 1 }],
  ['a version that nobody registered', to(443, initial(0x1234_5678)), {}],
  ['a datagram shorter than 1,200 bytes', to(443, initial(Q046).subarray(0, 1199)), {}],
  ['no fixed bit', to(443, changed(initial(Q046), 0, 0x80)), {}],
  ['a connection ID of 7 bytes', to(443, changed(initial(Q046), 5, 7)), {}],
  ['a connection ID of 21 bytes', to(443, changed(initial(Q046), 5, 21)), {}],
  ['RTP on port 443', to(443, rtp), {}],
  ['an unknown version from a server', between(443, 50_000, initial(Q046)), {}],
  ['DNSCrypt, a query, which has nothing constant', to(443, fill(4)(512)), {}],
  ['DNSCrypt, an answer', between(443, 50_000, dnscryptAnswer()), { dnscryptSessions: 1 }],
  ['an answer with another magic number', between(443, 50_000, changed(dnscryptAnswer(), 7, 0x39)), {}],
  ['ESP over IPv4', ipFrame(ADDRESSES, esp(7)), { espSessions: 1 }],
  ['ESP over IPv6', ipFrame({ source: '2001:db8::7', destination: '2001:db8::9' }, esp(7)), { espSessions: 1 }],
  ['ESP in UDP', between(4500, 4500, espPacket(9)), { espSessions: 1 }],
  ['IKE in UDP', between(4500, 4500, espPacket(0)), {}],
  ['a keep-alive of ESP in UDP', between(4500, 4500, Buffer.from([0xff])), {}],
  ['WireGuard', to(51_820, wireguardInitiation()), { wireguardSessions: 1 }],
  ['WireGuard on port 443', to(443, wireguardInitiation()), { wireguardSessions: 1 }],
  ['a byte more than WireGuard', to(51_820, Buffer.concat([wireguardInitiation(), Buffer.from([0])])), {}],
  ['no zeros after the type of WireGuard', to(51_820, changed(wireguardInitiation(), 2, 1)), {}],
  ...[0, 16, 20, 32, 64].map((hmac) => {
    const row = [`OpenVPN with an HMAC of ${hmac}`, to(1194, openVpnReset(hmac)), { openvpnSessions: 1 }] as const
    return row
  }),
  ['OpenVPN with tls-crypt-v2', to(443, openVpnResetWithKey()), { openvpnSessions: 1 }],
  ['OpenVPN with another number', to(1194, changed(openVpnReset(20), -1, 1)), {}],
  ['OpenVPN of another length', to(1194, openVpnReset(21)), {}],
  ['OpenVPN whose key has another length', to(443, changed(openVpnResetWithKey(), -1, 1)), {}],
  ['DTLS', to(3478, dtlsHello()), { dtlsSessions: 1 }],
  ['DTLS of a later epoch', to(3478, changed(dtlsHello(), 4, 1)), {}],
  ['DTLS, another handshake message', to(3478, changed(dtlsHello(), 13, 2)), {}],
]
for (const [name, frame, kinds] of ROWS) {
  t.test(name, async (t) => {
    t.same(kindsOf([frame, frame]), kinds, 'once, although sent twice')
  })
}

const NAMES: readonly (readonly [name: string, isTor: boolean])[] = [
  ['www.k3vq7xzwlt5bhr.com', true],
  ['www.bcdfg2h3jklm.net', true],
  ['www.k3vq7xzwlt5bhr.org', false],
  ['k3vq7xzwlt5bhr.com', false],
  ['www.k3vq7.com', false],
  ['www.openstreetmap.com', false],
  ['www.web2print.com', false],
  ['www.k3vq7xzwlt5bhrk3vq7xzwlt5bhr.com', false],
  ['www.k3vq8xzwlt5bhr.com', false],
]
for (const [serverName, isTor] of NAMES) {
  t.test(`${serverName} ${isTor ? 'has' : 'lacks'} the form of a name of Tor`, async (t) => {
    const framesOf = (alpn?: false): Buffer[] => {
      const one = new TcpStream({}, tlsRecords(clientHello({ serverName, ...(alpn === false ? { alpn } : {}) })))
      return [...one.open(), ...one.sendSplit([])]
    }
    t.same(kindsOf(framesOf(false)), isTor ? { torSessions: 1 } : {})
    t.same(kindsOf(framesOf()), {}, 'not with ALPN, which browsers send')
  })
}
