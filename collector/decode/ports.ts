import type { ProxyPort } from './proxy-handshake.ts'

/**
 * Destination port of DNS queries (RFC 1035 §4.2). mDNS, LLMNR and NBNS use other ports and are not
 * DNS here.
 */
export const DNS_PORTS: readonly number[] = [53]

/**
 * Ports of servers that speak TLS from the first byte: HTTPS, LDAPS, SIPS, DNS over TLS, FTPS,
 * TELNETS, IMAPS, POP3S, SMTPS, MQTTS, XMPP, and common ports of proxies and administration. In a
 * capture file a ClientHello is read on any port. A live capture reads only these ports. Streams on
 * them are followed from the first packet seen.
 */
export const TLS_PORTS: readonly number[] = [
  443, 465, 563, 636, 853, 989, 990, 992, 993, 994, 995, 3128, 4433, 5061, 5223, 5349, 8080, 8443, 8883, 9443,
]

/** RFC 7348 §5, and the earlier default of Linux. */
export const VXLAN_PORTS: readonly number[] = [4789, 8472]
/** RFC 8926 §3.3. */
export const GENEVE_PORTS: readonly number[] = [6081]

/** Default ports of SOCKS and HTTP proxies: dante, squid, Privoxy, tinyproxy and others. */
export const PROXY_PORTS: readonly number[] = [1080, 3128, 8080, 8118, 8888]

/** Server ports on which names are searched for, and ports of tunnels. */
export interface ServerPorts {
  readonly dnsPorts: readonly number[]
  readonly tlsPorts: readonly number[]
  readonly proxyPorts: readonly number[]
  /** Read names in requests of plain HTTP. */
  readonly httpNames?: boolean
  readonly vxlanPorts?: readonly number[]
  readonly genevePorts?: readonly number[]
}

export const DEFAULT_PORTS: ServerPorts = { dnsPorts: DNS_PORTS, tlsPorts: TLS_PORTS, proxyPorts: PROXY_PORTS }

/** The ports alone, out of settings. */
export function serverPorts(settings: ServerPorts): ServerPorts {
  const { dnsPorts, tlsPorts, proxyPorts, httpNames = false } = settings
  const { vxlanPorts = VXLAN_PORTS, genevePorts = GENEVE_PORTS } = settings
  return { dnsPorts, tlsPorts, proxyPorts, httpNames, vxlanPorts, genevePorts }
}

/** RFC 9110 §4.2.1. */
const HTTP_PORT = 80

/** Ports on which requests of plain HTTP are read. */
export function httpPorts(httpNames: boolean, proxyPorts: readonly number[]): readonly number[] {
  return httpNames ? [HTTP_PORT, ...proxyPorts] : []
}

/** Port sets as lookup tables: 1 at each port number in the set. */
export class Ports {
  readonly dns: Uint8Array
  /** TLS and proxies: streams to these ports are followed from the first packet seen. */
  readonly tls: Uint8Array
  readonly proxy: Uint8Array
  readonly #http: Uint8Array
  readonly #readsProxies: number

  /** Without ports of proxies, no handshakes of proxies are read, on no port. */
  constructor({ dnsPorts, tlsPorts, proxyPorts, httpNames = false }: ServerPorts) {
    this.dns = marked(dnsPorts)
    this.tls = marked([...tlsPorts, ...proxyPorts])
    this.proxy = marked(proxyPorts)
    this.#readsProxies = proxyPorts.length > 0 ? READS_PROXIES : 0
    this.#http = marked(httpPorts(httpNames, proxyPorts))
  }

  proxyPort(port: number): ProxyPort {
    return PROXY_PORT_KINDS[this.#readsProxies | ((this.proxy[port] ?? 0) << 1) | (this.#http[port] ?? 0)] as ProxyPort
  }
}

const READS_PROXIES = 4
const PROXY_PORT_KINDS: readonly ProxyPort[] = [0, 1, 2, 3, 4, 5, 6, 7].map((kind) => ({
  readsProxies: (kind & READS_PROXIES) !== 0,
  isProxy: (kind & 2) !== 0,
  isHttp: (kind & 1) !== 0,
}))

function marked(ports: readonly number[]): Uint8Array {
  const marks = new Uint8Array(65_536)
  for (const port of ports) marks[port] = 1
  return marks
}
