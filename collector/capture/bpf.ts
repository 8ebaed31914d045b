import { readFileSync } from 'node:fs'

/**
 * The filter expression (pcap-filter(7)) that keeps in the kernel what cannot be a part of a name: of DNS the queries, over UDP and TCP; of
 * TLS what clients send, and how their connections begin; of QUIC the long headers. With `vlan` the same behind one VLAN tag.
 *
 * A filter has no memory, so it cannot tell the second segment of a ClientHello from an upload: both pass, and what servers send stays out.
 * pcap-filter's tcp[] and udp[] read IPv4 only; the same bytes of IPv6 are addressed from its header, which supposes no extension headers.
 */
export function captureFilter(dnsPorts: readonly number[], tlsPorts: readonly number[], vlan: boolean): string {
  const dns = dnsPorts.join(' or ')
  const tls = tlsPorts.join(' or ')
  const begins4 = 'tcp[tcpflags] & tcp-syn != 0'
  const begins6 = 'ip6[53] & 2 != 0'
  // The packet's length without the headers of IP and TCP, whose data offset counts 4 bytes in the high nibble.
  const payload4 = 'ip[2:2] - ((ip[0] & 0xf) << 2) - ((tcp[12] & 0xf0) >> 2) != 0'
  const payload6 = 'ip6[4:2] - ((ip6[52] & 0xf0) >> 2) != 0'
  const untagged = [
    `dst port ${dns}`,
    `(ip and tcp dst port ${tls} and (${begins4} or ${payload4}))`,
    `(ip6 and tcp dst port ${tls} and (${begins6} or ${payload6}))`,
    // RFC 9000 §17.2: the first bit of a long header.
    `(ip and udp dst port ${tls} and udp[8] & 0x80 != 0)`,
    `(ip6 and udp dst port ${tls} and ip6[48] & 0x80 != 0)`,
  ].join(' or ')
  // "vlan" moves the offsets of all that follows it, so it comes last (pcap-filter(7)).
  return vlan ? `${untagged} or (vlan and (${untagged}))` : untagged
}

/** ARPHRD_ETHER and ARPHRD_LOOPBACK of <linux/if_arp.h>: both captured as Ethernet, where "vlan" compiles. */
const ETHERNET_HARDWARE = ['1', '772']

/** Whether frames of the interface can carry VLAN tags. */
export function carriesVlan(interfaceName: string): boolean {
  try {
    return ETHERNET_HARDWARE.includes(readFileSync(`/sys/class/net/${interfaceName}/type`, 'utf8').trim())
  } catch {
    return false
  }
}
