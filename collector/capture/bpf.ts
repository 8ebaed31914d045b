import { readFileSync } from 'node:fs'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { httpPorts, type ServerPorts } from '../decode/ports.ts'
import { tunnelPorts } from '../decode/tunnel.ts'

export interface FilterOptions extends ServerPorts {
  /** Pass all tunnel packets. A filter cannot see inside a tunnel. */
  readonly tunnels: boolean
  /** The operator's own expression, which every packet must also match. Empty for none. */
  readonly expression: string
}

/**
 * `narrow` is for a link that is faster than the sensor: it passes only packets that can begin a
 * ClientHello.
 */
export type FilterWidth = 'wide' | 'narrow'

/**
 * The filter expression (pcap-filter(7)). The kernel drops every packet that cannot carry a part of
 * a name.
 *
 *     wide    DNS:  packets to servers, over UDP and TCP, and answers over UDP
 *             TLS:  packets from clients, and the start of their connections
 *             QUIC: long headers
 *             also later IP fragments, the first packets of encrypted tunnels over
 *             IPv4, and tunnels if configured
 *     narrow  DNS:  packets to servers
 *             TLS:  segments that begin with a ClientHello, or a proxy's handshake
 *             QUIC: Initial packets
 *
 * A filter has no memory and cannot distinguish the second segment of a ClientHello from an upload,
 * so wide passes both. Other packets from servers are dropped. pcap-filter's tcp[] and udp[] read
 * only IPv4. For IPv6 the expression addresses the same bytes from the IPv6 header, which assumes
 * no extension headers. With `vlan`, the filter also matches after one to three VLAN tags. The filter
 * must not ask for metadata (such as "outbound"), because libpcap filters the first ringful a
 * second time, without metadata.
 */
export function captureFilter(options: FilterOptions, vlan: boolean, width: FilterWidth): string {
  assertFitsKernel(options)
  const names = width === 'wide' ? wide(options) : narrow(options)
  const { expression } = options
  const wanted = expression === '' ? names : `(${checked(expression)}) and (${names})`
  // "vlan" moves all offsets that come after it, so it comes last. Each further "vlan" matches a tag
  // after a tag (pcap-filter(7)). Three tags are rare: all TCP and UDP passes there, so that the
  // program for the kernel does not get longer.
  const tagged = ` or (vlan and (${wanted}))`
  const deep = ` or (vlan and ${expression === '' ? '' : `(${expression}) and `}(tcp or udp))`
  return vlan ? `${wanted}${tagged.repeat(2)}${width === 'wide' ? deep : ''}` : wanted
}

/** Writes consecutive ports as a range: `(tcp dst port 443 or tcp dst portrange 8440-8449)`. */
function to(protocol: 'tcp' | 'udp' | '', ports: readonly number[]): string {
  const terms = rangesOf(ports).map(({ first, last }) =>
    `${protocol} dst ${first === last ? `port ${first}` : `portrange ${first}-${last}`}`.trimStart(),
  )
  return `(${terms.join(' or ')})`
}

/** Packets from these ports. */
function from(ports: readonly number[]): string {
  return to('', ports).replaceAll('dst ', 'src ')
}

function rangesOf(ports: readonly number[]): { first: number; last: number }[] {
  const ranges: { first: number; last: number }[] = []
  for (const port of [...new Set(ports)].sort((a, b) => a - b)) {
    const range = ranges.at(-1)
    if (range?.last === port - 1) range.last = port
    else ranges.push({ first: port, last: port })
  }
  return ranges
}

/**
 * The kernel accepts 4,096 instructions (BPF_MAXINSNS). For a longer filter, libpcap silently
 * filters in user space, after the ring, and the ring fills with unwanted packets. libpcap compiles
 * at most 1,650 instructions for the fixed part, 43 for each port or range, and 2.3 for each
 * character of an expression (measured on a live interface, with VLAN).
 *
 * @throws Fault USAGE
 */
function assertFitsKernel(options: FilterOptions): void {
  const { dnsPorts, expression, tunnels } = options
  const moreTunnels = tunnels ? Math.max(0, tunnelPorts(options).length - tunnelPorts({}).length) : 0
  const ranges = rangesOf(dnsPorts).length + rangesOf(followedPorts(options)).length + moreTunnels
  if (1650 + 43 * ranges + 2.3 * expression.length <= 4090) return
  throw new Fault(
    'USAGE',
    `the filter does not fit the kernel: ${ranges} ports or ranges of them and --capture-filter with ${expression.length} characters; expected at most 55 ports, or 900 characters with the default ports`,
  )
}

/** Length of a TCP header in bytes. The data offset in the high nibble counts units of 4 bytes. */
const TCP_BYTES4 = '((tcp[12] & 0xf0) >> 2)'
/** The same after an IPv6 header of 40 bytes. */
const TCP_BYTES6 = '((ip6[52] & 0xf0) >> 2)'

/** TCP ports of servers to which all payload passes. */
function followedPorts({ tlsPorts, proxyPorts, httpNames = false }: FilterOptions): number[] {
  return [...tlsPorts, ...proxyPorts, ...httpPorts(httpNames, proxyPorts)]
}

function wide(options: FilterOptions): string {
  const { dnsPorts, tlsPorts, tunnels } = options
  const followed = to('tcp', followedPorts(options))
  const begins4 = 'tcp[tcpflags] & tcp-syn != 0'
  const begins6 = 'ip6[53] & 2 != 0'
  const payload4 = `ip[2:2] - ((ip[0] & 0xf) << 2) - ${TCP_BYTES4} != 0`
  const payload6 = `ip6[4:2] - ${TCP_BYTES6} != 0`
  return [
    to('', dnsPorts),
    `(udp and ${from(dnsPorts)})`,
    `(ip and ${followed} and (${begins4} or ${payload4}))`,
    `(ip6 and ${followed} and (${begins6} or ${payload6}))`,
    // RFC 9000 §17.2: the first bit is 1 in a long header.
    `(ip and ${to('udp', tlsPorts)} and udp[8] & 0x80 != 0)`,
    `(ip6 and ${to('udp', tlsPorts)} and ip6[48] & 0x80 != 0)`,
    // Fragments after the first have no ports (RFC 791 §3.1, RFC 8200 §4.5).
    '(ip and (ip proto 6 or ip proto 17) and ip[6:2] & 0x1fff != 0)',
    '(ip6 and ip6[6] = 44)',
    HIDDEN,
    ...(tunnels ? [`udp port ${tunnelPorts(options).join(' or ')}`, ...TUNNELS] : []),
  ].join(' or ')
}

function narrow({ dnsPorts, tlsPorts, proxyPorts }: FilterOptions): string {
  // RFC 8446 §5.1, §4: a handshake record, major version 3, that begins with a ClientHello.
  const hello4 = `tcp[${TCP_BYTES4}:2] = 0x1603 and tcp[${TCP_BYTES4} + 5] = 1`
  const hello6 = `ip6[40 + ${TCP_BYTES6}:2] = 0x1603 and ip6[40 + ${TCP_BYTES6} + 5] = 1`
  const followed = to('tcp', [...tlsPorts, ...proxyPorts])
  return [
    to('', dnsPorts),
    `(ip and ${followed} and (${hello4}${handshake(`tcp[${TCP_BYTES4}`, proxyPorts)}))`,
    `(ip6 and ${followed} and (${hello6}${handshake(`ip6[40 + ${TCP_BYTES6}`, proxyPorts)}))`,
    // RFC 9000 §17.2.2, RFC 9369 §3.2: a long header of type Initial, 0 in version 1 and 1 in
    // version 2.
    `(ip and ${to('udp', tlsPorts)} and udp[8] & 0xe0 = 0xc0)`,
    `(ip6 and ${to('udp', tlsPorts)} and ip6[48] & 0xe0 = 0xc0)`,
  ].join(' or ')
}

/**
 * Segments that begin with "CONN", with a SOCKS 4 request, or as SOCKS 5: its methods or a request
 * (decode/proxy-handshake.ts). `at` is the payload without the end of its index.
 */
function handshake(at: string, proxyPorts: readonly number[]): string {
  if (proxyPorts.length === 0) return ''
  // The shortest first: a filter rejects a packet if it reads after the packet's end.
  const begins = `${at}] = 5 or ${at}:2] = 0x0401 or ${at}:4] = 0x434f4e4e`
  return ` or (${to('tcp', proxyPorts)} and (${begins}))`
}

/** The tunnels that decode/tunnel.ts reads, except those over UDP: over IP; MPLS, PPPoE and tags. */
const TUNNELS: readonly string[] = [
  '(ip and (ip proto 97 or ip proto 137 or ip proto 47 or ip proto 4 or ip proto 41 or ip proto 115 or ip proto 143))',
  '(ip6 and (ip6[6] = 97 or ip6[6] = 137 or ip6[6] = 47 or ip6[6] = 4 or ip6[6] = 41 or ip6[6] = 115 or ip6[6] = 143 or ip6[6] = 43))',
  'ether proto 0x8847 or ether proto 0x8848 or ether proto 0x8864',
  'ether proto 0x8926 or ether proto 0x893f or ether proto 0x88e7 or ether proto 0x8909 or ether proto 0x894f',
  'ether proto 0x9200 or ether proto 0x88e5 or ether proto 0x9300 or ether proto 0x22f3 or ether proto 0x892f or ether proto 0x8903 or ether proto 0xd28b',
]

/**
 * The packets by which decode/hidden.ts counts encrypted traffic over IPv4: the first of a
 * connection, and of ESP one in 256, because its security associations have no beginning that is
 * visible.
 */
const HIDDEN =
  '(ip proto 50 and ip[27] = 1) or (ip proto 17 and ip[0] = 0x45 and ip[6:2] & 0x1fff = 0 and (' +
  '(ip[24:2] = 156 and ip[28:4] = 0x01000000) or (ip[28:2] = 0x16fe and ip[31:2] = 0) or ' +
  'ip[28:4] = 0x7236666e or (ip[22:2] = 1194 and ip[28] & 0x97 = 0x10) or (ip[22:2] = 4500 and ip[35] = 1)))'

/** Primitives that move all later offsets or ask for metadata (pcap-filter(7)). */
const NOT_FOR_OPERATORS = /(?:^|[\s()!])(vlan|mpls|pppoed|pppoes|geneve|inbound|outbound|ifindex|ifname|on)(?=$|[\s()])/

/** @throws Fault USAGE if the expression would change the meaning of the rest of the filter. */
function checked(expression: string): string {
  const word = NOT_FOR_OPERATORS.exec(expression)?.[1]
  if (word !== undefined) {
    throw new Fault(
      'USAGE',
      `--capture-filter: ${JSON.stringify(expression)}: "${word}" is not supported: it would change the meaning of the rest of the filter; expected hosts, nets, ports and protocols (packets in VLANs are always captured)`,
    )
  }
  let depth = 0
  for (const character of expression) {
    if (character === '(') depth++
    if (character === ')') depth--
    if (depth < 0) break
  }
  if (depth === 0) return expression
  throw new Fault('USAGE', `--capture-filter: ${JSON.stringify(expression)}: unbalanced parentheses`)
}

/**
 * ARPHRD_ETHER and ARPHRD_LOOPBACK of <linux/if_arp.h>. Both are captured as Ethernet, for which
 * "vlan" compiles.
 */
const ARPHRD_ETHER = '1'
const ARPHRD_LOOPBACK = '772'

/** Whether frames of the interface can carry VLAN tags. */
export function carriesVlan(interfaceName: string): boolean {
  const type = hardwareType(interfaceName)
  return type === ARPHRD_ETHER || type === ARPHRD_LOOPBACK
}

/**
 * Whether the capture includes loopback. The kernel shows each loopback packet twice, as sent and
 * as received; libpcap skips the sent copy.
 */
export function capturesLoopback(interfaceName: string): boolean {
  return interfaceName === 'any' || interfaceName === 'lo' || hardwareType(interfaceName) === ARPHRD_LOOPBACK
}

function hardwareType(interfaceName: string): string {
  try {
    return readFileSync(`/sys/class/net/${interfaceName}/type`, 'utf8').trim()
  } catch {
    return ''
  }
}
