import t from 'tap'
import {
  addressBytes,
  EtherType,
  ethernet,
  ipFrame,
  ipv4,
  ipv6,
  otherTransport,
  tcp,
  udp,
} from '../../support/packets.ts'
import { dnsQuery } from '../../support/packets-dns.ts'
import { FrameDecoder } from '../decode-frames.ts'

const decoder = new FrameDecoder()
const transport = udp({ sourcePort: 50_000, destinationPort: 53 }, dnsQuery(['Claude.AI']))
const addresses = { source: '10.0.0.7', destination: '192.0.2.53' }
const addresses6 = { source: '2001:db8::7', destination: '2001:db8::53' }
const packet = ipv4(addresses, transport)
const packet6 = ipv6(addresses6, transport)
const zeroLength = Buffer.from(packet.bytes)
zeroLength.writeUInt16BE(0, 2)
const shortTotal = Buffer.from(packet.bytes)
shortTotal.writeUInt16BE(19, 2)
const jumbo = Buffer.from(packet6.bytes)
jumbo.writeUInt16BE(0, 4)
const badDataOffset = ipv4(addresses, tcp({ sourcePort: 1, destinationPort: 443 }, Buffer.from('data')))
badDataOffset.bytes[20 + 12] = 0xf0

const rows: readonly { name: string; frame: Buffer; linkType?: number; packetClass: string; named?: boolean }[] = [
  {
    name: 'Ethernet with padding after the packet',
    frame: Buffer.concat([ethernet({}, packet), Buffer.alloc(20)]),
    packetClass: 'dnsQuery',
    named: true,
  },
  { name: 'raw IP of an unknown version', frame: Buffer.alloc(40), linkType: 101, packetClass: 'ipMalformed' },
  { name: 'raw IP without content', frame: Buffer.alloc(0), linkType: 101, packetClass: 'truncated' },
  { name: 'an unsupported link type', frame: ethernet({}, packet), linkType: 107, packetClass: 'linkUnsupported' },
  { name: 'ARP', frame: ethernet({}, { etherType: EtherType.arp, bytes: Buffer.alloc(28) }), packetClass: 'notIp' },
  {
    name: 'MPLS labels without a bottom',
    frame: ethernet({}, { etherType: 0x8847, bytes: Buffer.alloc(80) }),
    packetClass: 'nestedTooDeep',
  },
  {
    name: 'an 802.3 length in place of an EtherType',
    frame: ethernet({}, { etherType: 38, bytes: Buffer.alloc(38) }),
    packetClass: 'notIp',
  },
  {
    name: 'the IPv6 EtherType before IPv4',
    frame: ethernet({}, { etherType: EtherType.ipv6, bytes: packet.bytes }),
    packetClass: 'ipMalformed',
  },
  {
    name: 'a truncated VLAN tag',
    frame: ethernet({}, { etherType: EtherType.vlan, bytes: Buffer.alloc(3) }),
    packetClass: 'truncated',
  },
  {
    name: 'IPv4 options',
    frame: ipFrame({ ...addresses, options: Buffer.from('9404000001010100', 'hex') }, transport),
    packetClass: 'dnsQuery',
    named: true,
  },
  {
    name: 'IPv4 with a total length of 0, as with segmentation offload',
    frame: ethernet({}, { ...packet, bytes: zeroLength }),
    packetClass: 'dnsQuery',
    named: true,
  },
  {
    name: 'IPv4 with a total length below its header',
    frame: ethernet({}, { ...packet, bytes: shortTotal }),
    packetClass: 'ipMalformed',
  },
  {
    name: 'IPv4 with ICMP',
    frame: ipFrame(addresses, otherTransport(1, Buffer.alloc(8))),
    packetClass: 'otherTransport',
  },
  {
    name: 'IPv6 with a payload length of 0',
    frame: ethernet({}, { ...packet6, bytes: jumbo }),
    packetClass: 'dnsQuery',
    named: true,
  },
  {
    name: 'IPv6 with an authentication header, whose length has other units',
    frame: ipFrame(
      { ...addresses6, extensions: [{ number: 51, bytes: Buffer.concat([Buffer.from([4]), Buffer.alloc(22)]) }] },
      transport,
    ),
    packetClass: 'dnsQuery',
    named: true,
  },
  {
    name: 'IPv6 with an extension header that extends beyond the packet',
    frame: ipFrame(
      { ...addresses6, extensions: [{ number: 0, bytes: Buffer.from([255, 0, 0, 0, 0, 0, 0]) }] },
      otherTransport(17, Buffer.alloc(8)),
    ),
    packetClass: 'truncated',
  },
  {
    name: 'IPv6 with too many extension headers',
    frame: ipFrame(
      { ...addresses6, extensions: Array.from({ length: 17 }, () => ({ number: 60, bytes: Buffer.alloc(7) })) },
      transport,
    ),
    packetClass: 'ipMalformed',
  },
  {
    name: 'UDP truncated in its header',
    frame: ipFrame(addresses, otherTransport(17, Buffer.alloc(7))),
    packetClass: 'truncated',
  },
  {
    name: 'QUIC after its handshake',
    frame: ipFrame(addresses, udp({ sourcePort: 9, destinationPort: 443 }, Buffer.alloc(9, 0x40))),
    packetClass: 'quicOther',
  },
  {
    name: 'TCP truncated in its header',
    frame: ipFrame(addresses, otherTransport(6, Buffer.alloc(19))),
    packetClass: 'truncated',
  },
  { name: 'TCP whose options extend beyond the packet', frame: ethernet({}, badDataOffset), packetClass: 'truncated' },
  {
    name: 'TCP without payload, padded by the link',
    frame: Buffer.concat([
      ipFrame(addresses, tcp({ sourcePort: 1, destinationPort: 443 })),
      Buffer.from([22, 3, 1, 0, 5, 1]),
    ]),
    packetClass: 'tcpNoPayload',
  },
]

for (const row of rows) {
  t.test(row.name, async (t) => {
    const found = decoder.one(row.frame, row.linkType)
    t.equal(found.packetClass, row.packetClass)
    t.same(found.names, row.named === true ? ['claude.ai'] : [])
  })
}

t.test('a row has the time, the client and the name', async (t) => {
  const { names } = decoder.decode([ethernet({}, packet), ethernet({}, packet6)])
  t.same(names, [
    {
      timeMs: 1_000_005,
      method: 'dns',
      client: '10.0.0.7',
      clientPort: 50_000,
      server: '192.0.2.53',
      serverPort: 53,
      name: 'claude.ai',
      rule: 1,
    },
    {
      timeMs: 1_000_005,
      method: 'dns',
      client: '2001:db8::7',
      clientPort: 50_000,
      server: '2001:db8::53',
      serverPort: 53,
      name: 'claude.ai',
      rule: 1,
    },
  ])
})

t.test('IPv6 addresses are formatted according to RFC 5952', async (t) => {
  for (const address of [
    '::',
    '::1',
    '1::',
    '2001:db8::1:0:0:1',
    '2001:db8:0:1:1:1:1:1',
    '1:0:0:2::3',
    'fe80::1',
    '1:2:3:4:5:6:7:8',
    '0:1::',
  ]) {
    t.equal(addressBytes(address).length, 16, `the builder writes ${address}`)
    const { names } = decoder.decode([ipFrame({ source: address, destination: '::1' }, transport)])
    t.equal(names[0]?.client, address)
  }
})
