import { readFileSync } from 'node:fs'

/**
 * The filter expression (pcap-filter(7)) that keeps in the kernel what the decoder would only count: DNS queries and, of TLS, the
 * segments that begin with a ClientHello. With `vlan` the same behind one VLAN tag.
 *
 * pcap-filter's tcp[] reads IPv4 only; the same bytes of IPv6 are addressed from its header, which supposes no extension headers.
 */
export function captureFilter(dnsPorts: readonly number[], tlsPorts: readonly number[], vlan: boolean): string {
  const dns = dnsPorts.map((port) => `udp dst port ${port}`).join(' or ')
  const tls = tlsPorts.map((port) => `tcp dst port ${port}`).join(' or ')
  // A TLS record of type handshake (22), and in it behind 5 bytes of record header a handshake message of type ClientHello (1).
  const hello4 = '(tcp[(tcp[12] & 0xf0) >> 2] = 22 and tcp[((tcp[12] & 0xf0) >> 2) + 5] = 1)'
  const hello6 = '(ip6[40 + ((ip6[52] & 0xf0) >> 2)] = 22 and ip6[40 + ((ip6[52] & 0xf0) >> 2) + 5] = 1)'
  const untagged = `${dns} or (ip and (${tls}) and ${hello4}) or (ip6 and (${tls}) and ${hello6})`
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
