import { readFileSync } from 'node:fs'
import { Fault } from '../../engine/process/error-codes.ts'

export interface FilterOptions {
  readonly dnsPorts: readonly number[]
  readonly tlsPorts: readonly number[]
  /** Pass tunnels as a whole: what is in them cannot be told by a filter. */
  readonly tunnels: boolean
  /** The operator's own expression, which a packet must pass besides; empty for none. */
  readonly expression: string
}

/** `narrow` is for a link that is faster than the sensor: of each connection only what can begin a ClientHello. */
export type FilterWidth = 'wide' | 'narrow'

/**
 * The filter expression (pcap-filter(7)) that keeps in the kernel what cannot be a part of a name.
 *
 *     wide    of DNS what goes to servers, over UDP and TCP; of TLS what clients send, and how their connections begin; of QUIC the long
 *             headers; later IP fragments; tunnels, where they are asked for
 *     narrow  of DNS the same; of TLS the segments that begin with a ClientHello; of QUIC the Initial packets
 *
 * A filter has no memory, so it cannot tell the second segment of a ClientHello from an upload: wide passes both. What servers send stays
 * out. pcap-filter's tcp[] and udp[] read IPv4 only; the same bytes of IPv6 are addressed from its header, which supposes no extension
 * headers. With `vlan` the same behind up to two VLAN tags. Nothing here may ask for metadata, as "outbound" does: libpcap filters the first
 * ringful a second time without it.
 */
export function captureFilter(options: FilterOptions, vlan: boolean, width: FilterWidth): string {
  assertFitsKernel(options)
  const names = width === 'wide' ? wide(options) : narrow(options)
  const { expression } = options
  const wanted = expression === '' ? names : `(${checked(expression)}) and (${names})`
  // "vlan" moves the offsets of all that follows it, so it comes last; the second one means a tag behind a tag (pcap-filter(7)).
  return vlan ? `${wanted} or (vlan and (${wanted})) or (vlan and (${wanted}))` : wanted
}

/** Ports that follow each other as a range: `(tcp dst port 443 or tcp dst portrange 8440-8449)`. */
function to(protocol: 'tcp' | 'udp' | '', ports: readonly number[]): string {
  const terms = rangesOf(ports).map(({ first, last }) =>
    `${protocol} dst ${first === last ? `port ${first}` : `portrange ${first}-${last}`}`.trimStart(),
  )
  return `(${terms.join(' or ')})`
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
 * The kernel takes 4,096 instructions (BPF_MAXINSNS); of a longer filter libpcap says nothing and filters itself, behind the ring, which is then
 * full of what nobody wants. libpcap makes 850 at least of ours, 45 of each further port or range, and 2 of each character of an expression
 * (measured on a live interface, with VLAN).
 *
 * @throws Fault USAGE
 */
function assertFitsKernel({ dnsPorts, tlsPorts, expression }: FilterOptions): void {
  const ranges = rangesOf(dnsPorts).length + rangesOf(tlsPorts).length
  if (850 + 45 * ranges + 2 * expression.length <= 4000) return
  throw new Fault(
    'USAGE',
    `the filter does not fit the kernel: ${ranges} ports or ranges of them and --filter with ${expression.length} characters; expected at most 70 ports, or 1500 characters, or half of each`,
  )
}

/** Length of a TCP header, from its data offset, which counts 4 bytes in the high nibble. */
const TCP_BYTES4 = '((tcp[12] & 0xf0) >> 2)'
/** The same behind an IPv6 header of 40 bytes. */
const TCP_BYTES6 = '((ip6[52] & 0xf0) >> 2)'

function wide({ dnsPorts, tlsPorts, tunnels }: FilterOptions): string {
  const begins4 = 'tcp[tcpflags] & tcp-syn != 0'
  const begins6 = 'ip6[53] & 2 != 0'
  const payload4 = `ip[2:2] - ((ip[0] & 0xf) << 2) - ${TCP_BYTES4} != 0`
  const payload6 = `ip6[4:2] - ${TCP_BYTES6} != 0`
  return [
    to('', dnsPorts),
    `(ip and ${to('tcp', tlsPorts)} and (${begins4} or ${payload4}))`,
    `(ip6 and ${to('tcp', tlsPorts)} and (${begins6} or ${payload6}))`,
    // RFC 9000 §17.2: the first bit of a long header.
    `(ip and ${to('udp', tlsPorts)} and udp[8] & 0x80 != 0)`,
    `(ip6 and ${to('udp', tlsPorts)} and ip6[48] & 0x80 != 0)`,
    // Fragments behind the first have no ports; RFC 791 §3.1, RFC 8200 §4.5.
    '(ip and (ip proto 6 or ip proto 17) and ip[6:2] & 0x1fff != 0)',
    '(ip6 and ip6[6] = 44)',
    ...(tunnels ? TUNNELS : []),
  ].join(' or ')
}

function narrow({ dnsPorts, tlsPorts }: FilterOptions): string {
  // RFC 8446 §5.1, §4: a record of type handshake and major version 3, which begins with a ClientHello.
  const hello4 = `tcp[${TCP_BYTES4}:2] = 0x1603 and tcp[${TCP_BYTES4} + 5] = 1`
  const hello6 = `ip6[40 + ${TCP_BYTES6}:2] = 0x1603 and ip6[40 + ${TCP_BYTES6} + 5] = 1`
  return [
    to('', dnsPorts),
    `(ip and ${to('tcp', tlsPorts)} and ${hello4})`,
    `(ip6 and ${to('tcp', tlsPorts)} and ${hello6})`,
    // RFC 9000 §17.2.2 and RFC 9369 §3.2: a long header whose type is Initial, 0 in version 1 and 1 in version 2.
    `(ip and ${to('udp', tlsPorts)} and udp[8] & 0xe0 = 0xc0)`,
    `(ip6 and ${to('udp', tlsPorts)} and ip6[48] & 0xe0 = 0xc0)`,
  ].join(' or ')
}

/** Those that decode/tunnel.ts reads: over UDP, GRE, IP in IP, MPLS, PPPoE. */
const TUNNELS: readonly string[] = [
  'udp port 4789 or 8472 or 4790 or 6081 or 2152 or 3544',
  '(ip and (ip proto 47 or ip proto 4 or ip proto 41))',
  '(ip6 and (ip6[6] = 47 or ip6[6] = 4 or ip6[6] = 41))',
  'ether proto 0x8847 or ether proto 0x8848 or ether proto 0x8864',
]

/** What moves the offsets of all that stands behind it, or asks for metadata (pcap-filter(7)). */
const NOT_FOR_OPERATORS = /(?:^|[\s()!])(vlan|mpls|pppoed|pppoes|geneve|inbound|outbound|ifindex|ifname|on)(?=$|[\s()])/

/** @throws Fault USAGE where it would change the meaning of what stands around it. */
function checked(expression: string): string {
  const word = NOT_FOR_OPERATORS.exec(expression)?.[1]
  if (word !== undefined) {
    throw new Fault(
      'USAGE',
      `--filter: ${JSON.stringify(expression)}: "${word}" cannot stand here: it would change what the rest of the filter means; expected hosts, nets, ports and protocols (packets in VLANs are looked at without being asked for)`,
    )
  }
  let depth = 0
  for (const character of expression) {
    if (character === '(') depth++
    if (character === ')') depth--
    if (depth < 0) break
  }
  if (depth === 0) return expression
  throw new Fault('USAGE', `--filter: ${JSON.stringify(expression)}: expected as many "(" as ")", each before its own`)
}

/** ARPHRD_ETHER and ARPHRD_LOOPBACK of <linux/if_arp.h>: both captured as Ethernet, where "vlan" compiles. */
const ARPHRD_ETHER = '1'
const ARPHRD_LOOPBACK = '772'

/** Whether frames of the interface can carry VLAN tags. */
export function carriesVlan(interfaceName: string): boolean {
  const type = hardwareType(interfaceName)
  return type === ARPHRD_ETHER || type === ARPHRD_LOOPBACK
}

/** Whether loopback is, or is among, what is captured. The kernel shows its packets twice, and libpcap passes over those that are sent. */
export function showsLoopback(interfaceName: string): boolean {
  return interfaceName === 'any' || interfaceName === 'lo' || hardwareType(interfaceName) === ARPHRD_LOOPBACK
}

function hardwareType(interfaceName: string): string {
  try {
    return readFileSync(`/sys/class/net/${interfaceName}/type`, 'utf8').trim()
  } catch {
    return ''
  }
}
