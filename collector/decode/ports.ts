/** Destination port of DNS queries (RFC 1035 §4.2). mDNS, LLMNR and NBNS have ports of their own, and are not DNS here. */
export const DNS_PORTS: readonly number[] = [53]

/**
 * Ports of servers that speak TLS from the first byte: HTTPS, LDAPS, SIPS, DNS over TLS, FTPS, TELNETS, IMAPS, POP3S, SMTPS, MQTTS, XMPP, and
 * what proxies and administration take. In a capture file a ClientHello is read on any port; a live capture looks at these, and their
 * streams are followed from the first packet that is seen.
 */
export const TLS_PORTS: readonly number[] = [
  443, 465, 563, 636, 853, 989, 990, 992, 993, 994, 995, 3128, 4433, 5061, 5223, 5349, 8080, 8443, 8883, 9443,
]

/** Which ports are of which kind: 1 at the number of each. */
export class Ports {
  readonly dns: Uint8Array
  readonly tls: Uint8Array

  constructor(dns: readonly number[], tls: readonly number[]) {
    this.dns = marked(dns)
    this.tls = marked(tls)
  }
}

function marked(ports: readonly number[]): Uint8Array {
  const marks = new Uint8Array(65_536)
  for (const port of ports) marks[port] = 1
  return marks
}
