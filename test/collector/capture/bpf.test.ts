import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { captureFilter, type FilterOptions, type FilterWidth } from '../../../collector/capture/bpf.ts'
import { DNS_PORTS, PROXY_PORTS, TLS_PORTS } from '../../../collector/decode/ports.ts'
import {
  EtherType,
  ethernet,
  ipFrame,
  ipv4,
  ipv6,
  type NetworkPacket,
  TcpFlags,
  type Transport,
  tcp,
  udp,
  vlan,
} from '../../support/packets.ts'
import { dnsOverTcp, dnsQuery, dnsResponse } from '../../support/packets-dns.ts'
import { ipv4Fragment, ipv6Fragment } from '../../support/packets-fragments.ts'
import { framesAt, pcapFile } from '../../support/packets-pcap.ts'
import { connectRequest, socks4aRequest, socks5Greeting, socks5Request } from '../../support/packets-proxy.ts'
import { initialDatagrams, QUIC_V1, QUIC_V2 } from '../../support/packets-quic.ts'
import { applicationData, clientHello, tlsRecords } from '../../support/packets-tls.ts'
import { gre, ipInIp, vxlan } from '../../support/packets-tunnel.ts'

/** tcpdump compiles each filter and reports which packets pass. */

const CONFIGURED: FilterOptions = {
  dnsPorts: [53, 5300],
  tlsPorts: [443, 8443],
  proxyPorts: [1080],
  tunnels: false,
  expression: '',
}
const CLIENT4 = { source: '10.0.0.5', destination: '198.51.100.7' }
const CLIENT6 = { source: '2001:db8::5', destination: '2001:db8::7' }

const up = (port: number) => ({ sourcePort: 50_000, destinationPort: port })
const down = (port: number) => ({ sourcePort: port, destinationPort: 50_000 })
const hello = tlsRecords(clientHello({ serverName: 'claude.ai' }))
const data = applicationData(Buffer.alloc(300))
const initial = (version: number) =>
  initialDatagrams(clientHello({ serverName: 'claude.ai' }), {
    version,
    datagrams: 1,
    dcid: Buffer.alloc(8, 7),
  })[0] as Buffer
/** RFC 9000 §17.2: long header of version 1 and type Handshake. */
const handshake = Buffer.concat([Buffer.from([0xe0, 0, 0, 0, 1, 0, 0]), Buffer.alloc(1100)])

/** w: passes the wide filter; wn: passes the narrow filter as well. */
const TRANSPORTS: readonly (readonly [title: string, passes: '' | 'w' | 'wn', transport: Transport])[] = [
  ['a query', 'wn', udp(up(53), dnsQuery(['claude.ai']))],
  ['a query to a port of the configuration', 'wn', udp(up(5300), dnsQuery(['claude.ai']))],
  ['a response', 'w', udp(down(53), dnsResponse('claude.ai', '192.0.2.1'))],
  ['mDNS', '', udp({ sourcePort: 5353, destinationPort: 5353 }, dnsQuery(['printer.local']))],
  ['a query over TCP', 'wn', tcp(up(53), dnsOverTcp(dnsQuery(['claude.ai'])))],
  ['the beginning of a connection', 'w', tcp({ ...up(443), flags: TcpFlags.syn })],
  ['a ClientHello', 'wn', tcp(up(443), hello)],
  ['a ClientHello to a port of the configuration', 'wn', tcp(up(8443), hello)],
  ['a ClientHello to another port', '', tcp(up(444), hello)],
  ['a CONNECT request to a proxy', 'wn', tcp(up(1080), connectRequest('claude.ai:443'))],
  ['the methods of SOCKS 5', 'wn', tcp(up(1080), socks5Greeting())],
  ['a request of SOCKS 5', 'wn', tcp(up(1080), socks5Request('claude.ai'))],
  ['a request of SOCKS 4A', 'wn', tcp(up(1080), socks4aRequest('claude.ai'))],
  ['a ClientHello to a proxy', 'wn', tcp(up(1080), hello)],
  ['another request to a proxy', 'w', tcp(up(1080), data)],
  ['a CONNECT request to another port', '', tcp(up(1081), connectRequest('claude.ai:443'))],
  ['the rest of a ClientHello', 'w', tcp({ ...up(443), sequence: 1400 }, hello.subarray(100))],
  ['an upload', 'w', tcp(up(443), data)],
  ['an acknowledgement', '', tcp(up(443))],
  ['what a server sends', '', tcp(down(443), data)],
  ['QUIC Initial, version 1', 'wn', udp(up(443), initial(QUIC_V1))],
  ['QUIC Initial, version 2', 'wn', udp(up(443), initial(QUIC_V2))],
  ['QUIC Handshake', 'w', udp(up(443), handshake)],
  ['QUIC behind its handshake', '', udp(up(443), Buffer.alloc(1200, 0x41))],
  ["QUIC Initial of a server's", '', udp(down(443), initial(QUIC_V1))],
  ['neither', '', tcp(up(22), data)],
]

const query = udp(up(53), dnsQuery(['claude.ai']))
const inner = ipFrame(CLIENT4, query)
interface Case {
  readonly title: string
  readonly passes: '' | 'w' | 'wn'
  readonly packet: NetworkPacket
  readonly options?: Partial<FilterOptions>
}
const CASES: readonly Case[] = [
  ...TRANSPORTS.flatMap(([title, passes, transport]): Case[] => [
    { title: `IPv4: ${title}`, passes, packet: ipv4(CLIENT4, transport) },
    { title: `IPv6: ${title}`, passes, packet: ipv6(CLIENT6, transport) },
    { title: `VLAN: ${title}`, passes, packet: vlan(7, ipv4(CLIENT4, transport)) },
    { title: `VLAN in VLAN: ${title}`, passes, packet: vlan(7, vlan(8, ipv6(CLIENT6, transport)), EtherType.vlan) },
  ]),
  {
    title: 'a later IPv4 fragment',
    passes: 'w',
    packet: ipv4Fragment({ ...CLIENT4, identification: 9 }, query, 8, 24),
  },
  {
    title: 'a later IPv6 fragment',
    passes: 'w',
    packet: ipv6Fragment({ ...CLIENT6, identification: 9 }, query, 8, 24),
  },
  ...[false, true].flatMap((tunnels): Case[] => [
    {
      title: `VXLAN, tunnels ${tunnels}`,
      passes: tunnels ? 'w' : '',
      packet: ipv4(CLIENT4, udp(up(4789), vxlan(1, inner))),
      options: { tunnels },
    },
    {
      title: `GRE, tunnels ${tunnels}`,
      passes: tunnels ? 'w' : '',
      packet: ipv4(CLIENT4, gre({}, ipv4(CLIENT4, query))),
      options: { tunnels },
    },
    {
      title: `IP in IP, tunnels ${tunnels}`,
      passes: tunnels ? 'w' : '',
      packet: ipv6(CLIENT6, ipInIp(ipv4(CLIENT4, query))),
      options: { tunnels },
    },
  ]),
  ...[true, false].map(
    (httpNames): Case => ({
      title: `plain HTTP, names ${httpNames}`,
      passes: httpNames ? 'w' : '',
      packet: ipv4(CLIENT4, tcp(up(80), Buffer.from('GET / HTTP/1.1\r\nHost: claude.ai\r\n\r\n'))),
      options: { httpNames },
    }),
  ),
  ...(
    [
      ['not host 10.0.0.5', ''],
      ['host 10.0.0.5', 'wn'],
      ['host 10.0.0.6 or udp', 'wn'],
      ['tcp', ''],
    ] as const
  ).flatMap(([expression, passes]): Case[] => [
    { title: `"${expression}"`, passes, packet: ipv4(CLIENT4, query), options: { expression } },
    {
      title: `"${expression}" after a VLAN tag`,
      passes,
      packet: vlan(7, ipv4(CLIENT4, query)),
      options: { expression },
    },
  ]),
]

const folder = mkdtempSync(join(tmpdir(), 'bpf-'))
t.teardown(() => rmSync(folder, { recursive: true }))

/** Reports for each frame whether it passes. Each frame has its index as its time in seconds. */
function passing(frames: readonly Buffer[], filter: string): boolean[] {
  const path = join(folder, 'in.pcap')
  writeFileSync(path, pcapFile(frames.flatMap((frame, index) => framesAt(index * 1000, [frame]))))
  const out = execFileSync('tcpdump', ['-r', path, '-w', '-', filter], { stdio: ['ignore', 'pipe', 'pipe'] })
  const seconds = new Set<number>()
  for (let at = 24; at < out.length; at += 16 + out.readUInt32LE(at + 8)) seconds.add(out.readUInt32LE(at))
  return frames.map((_frame, index) => seconds.has(index))
}

for (const width of ['wide', 'narrow'] satisfies FilterWidth[]) {
  t.test(`the ${width} filter`, async (t) => {
    const byOptions = groupByOptions()
    for (const [key, cases] of byOptions) {
      const filter = captureFilter({ ...CONFIGURED, ...(JSON.parse(key) as Partial<FilterOptions>) }, true, width)
      const passed = passing(
        cases.map(({ packet }) => ethernet({}, packet)),
        filter,
      )
      for (const [index, { title, passes }] of cases.entries()) {
        t.equal(passed[index], passes.includes(width === 'wide' ? 'w' : 'n'), title)
      }
    }
  })
}

function groupByOptions(): Map<string, Case[]> {
  const groups = new Map<string, Case[]>()
  for (const each of CASES) {
    const key = JSON.stringify(each.options ?? {})
    groups.set(key, [...(groups.get(key) ?? []), each])
  }
  return groups
}

t.test(
  "the filter for all default ports, two VLAN tags and tunnels is far below BPF's limit of 4,096 instructions",
  async (t) => {
    for (const width of ['wide', 'narrow'] satisfies FilterWidth[]) {
      const filter = captureFilter(
        {
          dnsPorts: DNS_PORTS,
          tlsPorts: TLS_PORTS,
          proxyPorts: PROXY_PORTS,
          httpNames: true,
          tunnels: true,
          expression: 'not net 10.0.0.0/8',
        },
        true,
        width,
      )
      const program = execFileSync('tcpdump', ['-y', 'EN10MB', '-d', filter], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      t.ok(program.trim().split('\n').length < 2048, `${program.trim().split('\n').length} instructions`)
    }
  },
)

t.test('unbalanced parentheses in an expression are rejected', async (t) => {
  for (const expression of ['udp) or (tcp', '(udp', 'udp)', ')(']) {
    t.throws(() => captureFilter({ ...CONFIGURED, expression }, true, 'wide'), {
      code: 'USAGE',
      message: /unbalanced parentheses/,
    })
  }
  t.match(
    captureFilter({ ...CONFIGURED, expression: '(udp or tcp) and net 10.0.0.0/8' }, false, 'wide'),
    /^\(\(udp or tcp\) and /,
  )
})

t.test('tunnels pass on the ports of the settings', async (t) => {
  const filter = captureFilter({ ...CONFIGURED, tunnels: true, vxlanPorts: [8473], genevePorts: [6082] }, false, 'wide')
  t.match(filter, / or udp port 8473 or 6082 or 4790 or /)
})

t.test('consecutive ports become a range, even a hundred of them', async (t) => {
  const filter = captureFilter({ ...CONFIGURED, tlsPorts: [443, 8443, 8442, 8444, 443] }, false, 'wide')
  t.match(filter, /\(tcp dst port 443 or tcp dst port 1080 or tcp dst portrange 8442-8444\)/)
  const many = Array.from({ length: 1000 }, (_, index) => 10_000 + index)
  t.ok(captureFilter({ ...CONFIGURED, tlsPorts: many }, true, 'wide').includes('portrange 10000-10999'))
})

t.test('words that would change the rest of the filter are rejected; names that contain them are not', async (t) => {
  for (const expression of ['not vlan', 'vlan 7', '(vlan)', 'inbound', 'udp and !outbound', 'mpls 9', 'ip or pppoes']) {
    t.throws(() => captureFilter({ ...CONFIGURED, expression }, true, 'wide'), {
      code: 'USAGE',
      message: /is not supported/,
    })
  }
  t.ok(captureFilter({ ...CONFIGURED, expression: 'not host vlan.example' }, true, 'wide').includes('vlan.example'))
})

t.test('a filter that is too long for the kernel is rejected; one that fits is accepted', async (t) => {
  const hosts = (count: number): string =>
    Array.from({ length: count }, (_, index) => `net 10.${index}.0.0/16`).join(' or ')
  for (const [options, fits] of [
    [{ tlsPorts: Array.from({ length: 54 }, (_, index) => 1000 + 2 * index) }, true],
    [{ tlsPorts: Array.from({ length: 80 }, (_, index) => 1000 + 2 * index) }, false],
    [{ expression: hosts(45) }, true],
    [{ expression: hosts(70) }, false],
  ] as const) {
    const filterOf = () => captureFilter({ ...CONFIGURED, tunnels: true, ...options }, true, 'wide')
    if (!fits) {
      t.throws(filterOf, { code: 'USAGE', message: /does not fit the kernel/ })
      continue
    }
    // The program for an interface, where filters read VLAN tags from the kernel's metadata.
    const program = execFileSync('tcpdump', ['-i', 'lo', '-ddd', filterOf()], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const instructions = Number(program.split('\n')[0])
    t.ok(instructions < 4096, `${instructions} instructions`)
  }
})
