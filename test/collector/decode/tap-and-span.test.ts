import t from 'tap'
import { flowHash } from '../../../collector/capture/round.ts'
import { Layers } from '../../../collector/decode/layers.ts'
import { UdpTunnels } from '../../../collector/decode/tunnel.ts'
import { DNS_GAP_SECONDS } from '../../../collector/limits.ts'
import {
  ethernet,
  ipFrame,
  ipv4,
  type NetworkPacket,
  TcpFlags,
  tcp,
  u16,
  u32,
  udp,
  vlan,
} from '../../support/packets.ts'
import { dnsOverTcp, dnsQuery } from '../../support/packets-dns.ts'
import { eTag, l2tp3InUdp } from '../../support/packets-tags.ts'
import { clientHello, tlsRecords } from '../../support/packets-tls.ts'
import { geneve, gre, mpls, mplsPseudowire, vxlan } from '../../support/packets-tunnel.ts'
import { FrameDecoder } from '../decode-frames.ts'

/* What a TAP, a SPAN or a data centre shows: encapsulations, tenants with the same addresses, and loss. */

const HOSTS = { source: '10.1.1.10', destination: '192.0.2.53' }
const query = (name: string): NetworkPacket =>
  ipv4(HOSTS, udp({ sourcePort: 40_000, destinationPort: 53 }, dnsQuery([name])))
const over = (destinationPort: number, payload: Buffer) =>
  ipv4({ source: '198.51.100.1', destination: '198.51.100.2' }, udp({ sourcePort: 61_000, destinationPort }, payload))

/** An EtherType that is in no table of the builders, and what follows it. */
const tagged = (etherType: number, fields: Buffer, inner: Buffer): Buffer =>
  ethernet({}, { etherType, bytes: Buffer.concat([fields, inner]) })
const typed = ({ etherType, bytes }: NetworkPacket): Buffer => Buffer.concat([u16(etherType), bytes])
const inIp = (protocol: number, bytes: Buffer): Buffer => ipFrame(HOSTS, { protocol, bytes, checksumAt: -1 })

const asked = query('claude.ai')
const frame = ethernet({}, asked)
const eTagged = ethernet({}, eTag(asked))
const LLC_IP = Buffer.from('060603', 'hex')
const cases: { name: string; bytes: Buffer; linkType?: number }[] = [
  { name: 'TPID 0x9300', bytes: ethernet({}, vlan(7, asked, 0x9300)) },
  { name: 'three VLAN tags', bytes: ethernet({}, vlan(1, vlan(2, vlan(3, asked)))) },
  { name: 'HSR', bytes: tagged(0x892f, Buffer.from('10410007', 'hex'), typed(asked)) },
  { name: 'Cisco FabricPath', bytes: tagged(0x8903, u16(0x0420), frame) },
  { name: 'TRILL', bytes: tagged(0x22f3, Buffer.from('001000020001', 'hex'), frame) },
  { name: 'TRILL with options', bytes: tagged(0x22f3, Buffer.from(`009000020001${'00'.repeat(8)}`, 'hex'), frame) },
  { name: 'Arista time, 64 bits', bytes: tagged(0xd28b, Buffer.from('000100100154839be7be0ebd', 'hex'), typed(asked)) },
  { name: 'Arista time, 48 bits', bytes: tagged(0xd28b, Buffer.from('00010020de7ad8200525', 'hex'), typed(asked)) },
  { name: 'Ethernet in IP (SRv6)', bytes: inIp(143, frame) },
  { name: 'tags in a pseudowire without control word', bytes: ethernet({}, mplsPseudowire([7], eTagged)) },
  { name: 'tags in L2TP version 3', bytes: ethernet({}, over(1701, l2tp3InUdp(eTagged))) },
  { name: 'LLC with IP', bytes: ethernet({}, { etherType: 60, bytes: Buffer.concat([LLC_IP, asked.bytes]) }) },
  { name: 'LISP', bytes: ethernet({}, over(4341, Buffer.concat([u32(0xc000_0001), u32(1), asked.bytes]))) },
  { name: 'GUE, variant 0', bytes: ethernet({}, over(6080, Buffer.concat([u32(0x0004_0000), asked.bytes]))) },
  { name: 'GUE, variant 1', bytes: ethernet({}, over(6080, asked.bytes)) },
  { name: 'BSD null with an EtherType', linkType: 0, bytes: Buffer.concat([u32(0x0800), asked.bytes]) },
  {
    name: 'OpenBSD enc',
    linkType: 109,
    bytes: Buffer.concat([Buffer.from([2, 0, 0, 0]), u32(0), u32(0), asked.bytes]),
  },
  { name: 'mPacket', linkType: 274, bytes: Buffer.concat([Buffer.from('55555555555555d5', 'hex'), frame]) },
  { name: 'IPNET', linkType: 226, bytes: Buffer.concat([Buffer.from([1, 2]), Buffer.alloc(22), asked.bytes]) },
  ...[258, 149].map((linkType) => ({
    name: `PKTAP, link type ${linkType}`,
    linkType,
    bytes: Buffer.concat([Buffer.from('6c0000000100000001000000', 'hex'), Buffer.alloc(96), frame]),
  })),
]
for (const { name, bytes, linkType = 1 } of cases) {
  t.test(`encapsulation: ${name}`, async (t) => {
    const { names } = new FrameDecoder().decode([bytes], linkType)
    t.match(names, [{ name: 'claude.ai', client: HOSTS.source }])
    t.equal(names.length, 1)
    // Truncated at any byte, it is no name or the whole one.
    for (let end = 0; end < bytes.length; end++) {
      const cut = new FrameDecoder().decode([bytes.subarray(0, end)], linkType).names
      t.ok(cut.length === 0 || cut[0]?.name === 'claude.ai', `${end} bytes`)
    }
  })
}

t.test('connections with the same addresses and ports are told apart by VLAN and tunnel', async (t) => {
  const networks: Readonly<Record<string, (id: number, packet: NetworkPacket) => Buffer>> = {
    vlan: (id, packet) => ethernet({}, vlan(id, packet)),
    vxlan: (id, packet) => ethernet({}, over(4789, vxlan(id, ethernet({}, packet)))),
    geneve: (id, packet) => ethernet({}, over(6081, geneve(id, packet))),
    gre: (id, packet) => ipFrame(HOSTS, gre({ key: id }, packet)),
    mpls: (id, packet) => ethernet({}, mpls([700, id], packet)),
    backbone: (id, packet) => tagged(0x88e7, u32(id), ethernet({}, packet)),
  }
  for (const [name, wrap] of Object.entries(networks)) {
    const halves = [1, 2].map((id) => {
      const hello = tlsRecords(clientHello({ serverName: `tenant-${id}.claude.ai` }))
      const piece = (start: number, end?: number) =>
        wrap(
          id,
          ipv4(
            HOSTS,
            tcp({ sourcePort: 50_001, destinationPort: 443, sequence: 1 + start }, hello.subarray(start, end)),
          ),
        )
      return [piece(0, 60), piece(60)] as const
    })
    const frames = [0, 1].flatMap((half) => halves.map((pieces) => pieces[half] as Buffer))
    const { names } = new FrameDecoder().decode(frames)
    t.same(names.map((each) => each.name).sort(), ['tenant-1.claude.ai', 'tenant-2.claude.ai'], name)
  }
})

t.test('VXLAN and GENEVE are read on the ports of the settings, and go to the lane of their inner flow', async (t) => {
  const ports = { vxlanPorts: [8473], genevePorts: [6082, 6083] }
  const inLane = new Layers(new UdpTunnels(ports))
  const laneOf = (bytes: Buffer) =>
    flowHash(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), 1, 0, bytes.length, inLane)
  for (const [port, payload, isRead] of [
    [8473, vxlan(7, frame), true],
    [4789, vxlan(7, frame), false],
    [6083, geneve(7, asked), true],
    [6081, geneve(7, asked), false],
  ] as const) {
    const sent = ethernet({}, over(port, payload))
    const { names } = new FrameDecoder(ports).decode([sent])
    t.equal(names.length, isRead ? 1 : 0, `port ${port}`)
    t.equal(laneOf(sent) === laneOf(frame), isRead)
    const { names: byDefault } = new FrameDecoder().decode([sent])
    t.equal(byDefault.length, isRead ? 0 : 1, `port ${port} by default`)
  }
})

t.test('what may have IP inside is not counted as without IP', async (t) => {
  const ppp = (protocol: number) =>
    ethernet({}, { etherType: 0x880b, bytes: Buffer.concat([u16(protocol), asked.bytes]) })
  const snap = (code: string) =>
    ethernet({}, { etherType: 60, bytes: Buffer.concat([Buffer.from(`aaaa03${code}`, 'hex'), frame]) })
  for (const [bytes, packetClass] of [
    [ppp(0x003d), 'etherTypeUnknown'],
    [ppp(0xc021), 'notIp'],
    [snap('0080c20007'), 'etherTypeUnknown'],
    [snap('00000c010b'), 'notIp'],
    [tagged(0x9999, Buffer.alloc(0), frame), 'etherTypeUnknown'],
    [tagged(0x88cc, Buffer.alloc(0), frame), 'notIp'],
  ] as const) {
    t.same(new FrameDecoder().decode([bytes]).classes, [packetClass])
  }
})

/** Segments of DNS over TCP from one client, each with one query. */
function dnsSegments(count: number): { frame: Buffer; name: string; at: number }[] {
  let sequence = 1000
  return Array.from({ length: count }, (_, index) => {
    const name = `q${index}.claude.ai`
    const payload = dnsOverTcp(dnsQuery([name]))
    const frame = ipFrame(HOSTS, tcp({ sourcePort: 50_001, destinationPort: 53, sequence }, payload))
    sequence += payload.length
    return { frame, name, at: index }
  })
}
const SYN = ipFrame(HOSTS, tcp({ sourcePort: 50_001, destinationPort: 53, sequence: 999, flags: TcpFlags.syn }))

t.test('one lost segment of DNS over TCP costs one query, wherever it is', async (t) => {
  const all = dnsSegments(12)
  for (let lost = 0; lost < all.length; lost++) {
    const sent = all.filter(({ at }) => at !== lost)
    const { names } = new FrameDecoder().decode([SYN, ...sent.map(({ frame }) => frame)], 1, { last: true })
    t.same(
      names.map(({ name }) => name),
      sent.map(({ name }) => name),
      `${lost} lost`,
    )
  }
})

t.test('a message whose end does not arrive is counted as lost', async (t) => {
  const [first] = dnsSegments(1)
  const decoder = new FrameDecoder()
  decoder.decode([SYN, (first as { frame: Buffer }).frame.subarray(0, -5)], 1, { last: true })
  t.equal(decoder.counters.dnsGaps, 1)
})

t.test('a long connection goes on after a gap, and a sensor may begin within a message', async (t) => {
  const decoder = new FrameDecoder()
  const all = dnsSegments(300)
  const sent = all.filter(({ at }) => at !== 3)
  decoder.decode([SYN])
  const names = sent.flatMap(({ frame, at }) => {
    const seconds = 1000 + Math.floor((at * DNS_GAP_SECONDS) / 10)
    return decoder.decode([frame], 1, { seconds, last: at === all.length - 1 }).names
  })
  t.equal(names.length, sent.length)
  const middle = ipFrame(
    HOSTS,
    tcp({ sourcePort: 50_001, destinationPort: 53, sequence: 990 }, Buffer.from('ude\x02ai\x00\x00\x01\x00')),
  )
  const late = new FrameDecoder().decode([middle, ...all.slice(0, 20).map(({ frame }) => frame)])
  t.equal(late.names.length, 20)
})

t.test('after a gap, the next message that begins within a segment is read', async (t) => {
  const messages = Array.from({ length: 200 }, (_, index) => dnsOverTcp(dnsQuery([`q${index}.claude.ai`])))
  const stream = Buffer.concat(messages)
  const [segmentBytes, lost] = [50, 7]
  const decoder = new FrameDecoder()
  decoder.decode([SYN])
  const names: string[] = []
  for (let start = 0; start < stream.length; start += segmentBytes) {
    if (start / segmentBytes === lost) continue
    const fields = { sourcePort: 50_001, destinationPort: 53, sequence: 1000 + start }
    const segment = ipFrame(HOSTS, tcp(fields, stream.subarray(start, start + segmentBytes)))
    const seconds = 1000 + Math.floor((start / segmentBytes) * (DNS_GAP_SECONDS / 10))
    const last = start + segmentBytes >= stream.length
    names.push(...decoder.decode([segment], 1, { seconds, last }).names.map(({ name }) => name))
  }
  let end = 0
  const whole = messages.flatMap(({ length }, index) => {
    end += length
    const isHit = end > lost * segmentBytes && end - length < (lost + 1) * segmentBytes
    return isHit ? [] : [`q${index}.claude.ai`]
  })
  t.same(names, whole)
})

t.test(
  'a query that the capture cut within its type has its name, and stray bytes before a hello do not hide it',
  async (t) => {
    for (let less = 1; less <= 4; less++) {
      const { names } = new FrameDecoder().decode([frame.subarray(0, frame.length - less)])
      t.same(
        names.map(({ name }) => name),
        ['claude.ai'],
        `${less} bytes less`,
      )
    }
    const hello = tlsRecords(clientHello({ serverName: 'stray.claude.ai' }))
    const segment = (sequence: number, payload: Buffer, flags?: number) =>
      ipFrame(HOSTS, tcp({ sourcePort: 50_001, destinationPort: 443, sequence, ...(flags && { flags }) }, payload))
    const start = [segment(999, Buffer.alloc(0), TcpFlags.syn), segment(1000, Buffer.alloc(2))]
    const [first, second] = [segment(1000, hello.subarray(0, 70)), segment(1070, hello.subarray(70))]
    for (const order of [
      [first, second],
      [second, first],
    ]) {
      const { names } = new FrameDecoder().decode([...start, ...order])
      t.same(
        names.map(({ name }) => name),
        ['stray.claude.ai'],
      )
    }
  },
)
