import { type LookupAddress, type LookupOptions, lookup } from 'node:dns'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { addressBytes, contains, isLoopbackHost, type Network, networkOf, withoutBrackets } from './network.ts'
import { proxyFor, tunnel } from './proxy.ts'

/**
 * The addresses to which the service connects because a member entered a URL or a host name: that
 * of an identity provider, for example. Without this check, a member could make the service send
 * requests to its own machine, to other machines of its networks, and to the metadata service of a
 * cloud, which hands out credentials (server-side request forgery).
 */

/**
 * Networks that no public host is in: the IANA IPv4 Special-Purpose Address Registry (RFC 6890),
 * multicast, and one platform address.
 */
const NOT_PUBLIC_IPV4 = networks(
  '0.0.0.0/8', // this host on this network (RFC 791 §3.2); Linux connects 0.0.0.0 to itself
  '10.0.0.0/8', // private use (RFC 1918)
  '100.64.0.0/10', // shared address space behind carrier-grade NAT (RFC 6598)
  '127.0.0.0/8', // loopback (RFC 1122 §3.2.1.3)
  '168.63.129.16', // Azure: a public address that reaches the metadata of the virtual machine
  '169.254.0.0/16', // link-local (RFC 3927), with the metadata service of most clouds
  '172.16.0.0/12', // private use (RFC 1918)
  '192.0.0.0/24', // IETF protocol assignments (RFC 6890 §2.1)
  '192.0.2.0/24', // documentation (RFC 5737)
  '192.88.99.0/24', // relays from IPv6 to IPv4 (RFC 7526)
  '192.168.0.0/16', // private use (RFC 1918)
  '198.18.0.0/15', // benchmarks (RFC 2544)
  '198.51.100.0/24', // documentation (RFC 5737)
  '203.0.113.0/24', // documentation (RFC 5737)
  '224.0.0.0/4', // multicast (RFC 5771)
  '240.0.0.0/4', // reserved (RFC 1112 §4), with the broadcast address
)

/**
 * All public IPv6 hosts are in this network (RFC 4291 §2.4). Loopback, unspecified, unique local,
 * link-local, site-local and multicast addresses are not.
 */
const PUBLIC_IPV6 = networks('2000::/3')

/** Networks in PUBLIC_IPV6 that no public host is in. */
const NOT_PUBLIC_IPV6 = networks(
  '2001::/23', // IETF protocol assignments (RFC 2928), with Teredo, which contains IPv4 addresses
  '2001:db8::/32', // documentation (RFC 3849)
  '2002::/16', // 6to4 (RFC 3056), which contains IPv4 addresses
  '3fff::/20', // documentation (RFC 9637)
)

const IPV4_MAPPED = networks('::ffff:0:0/96')
/** The last four bytes are the IPv4 address to which a translator sends (RFC 6052 §2.1). */
const NAT64 = networks('64:ff9b::/96')

function networks(...texts: readonly string[]): readonly Network[] {
  return texts.map((text) => {
    const network = networkOf(text)
    if (network === undefined) throw new Error(`not a network: ${text}`)
    return network
  })
}

/**
 * The networks of this machine's interfaces, and those that it reaches without a gateway. They may
 * have public addresses, whose services only a firewall further out protects.
 */
function ownNetworks(): readonly Network[] {
  const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  const texts = [...interfaces.map(({ cidr }) => cidr ?? ''), ...onLinkIpv4(), ...onLinkIpv6()]
  return texts.flatMap((text) => networkOf(text) ?? [])
}

/** A larger network is not on a link: a VPN routes most addresses into its interface. */
const ON_LINK_BITS_MIN = { ipv4: 8, ipv6: 32 }

/** /proc/net/route: interface, destination, gateway ... mask; addresses as little-endian hex. */
function onLinkIpv4(): string[] {
  return rowsOf('/proc/net/route').flatMap(([, destination = '', gateway, , , , , mask = '']) => {
    if (!/^[0-9A-F]{8}$/.test(destination) || gateway !== '00000000') return []
    const bits = [...Number.parseInt(mask, 16).toString(2)].filter((bit) => bit === '1').length
    return bits < ON_LINK_BITS_MIN.ipv4 ? [] : `${Buffer.from(destination, 'hex').reverse().join('.')}/${bits}`
  })
}

/** /proc/net/ipv6_route: destination, prefix length, source, its length, next hop; all in hex. */
function onLinkIpv6(): string[] {
  return rowsOf('/proc/net/ipv6_route').flatMap(([destination = '', length = '', , , nextHop]) => {
    const bits = Number.parseInt(length, 16)
    if (nextHop !== '0'.repeat(32) || bits < ON_LINK_BITS_MIN.ipv6) return []
    return `${destination.match(/.{4}/g)?.join(':')}/${bits}`
  })
}

function rowsOf(file: string): string[][] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
  } catch {
    // A system without IPv6 has no such file.
    return []
  }
}

/**
 * Whether the service may connect to an address: it is a public one outside of this machine's
 * networks, or one of `allowed` contains it. An IPv4 address within an IPv6 address (IPv4-mapped,
 * NAT64) counts as itself. False for text that is not an address.
 */
export function isAllowedTarget(address: string, allowed: readonly Network[], own = ownNetworks()): boolean {
  const bytes = addressBytes(address)
  if (bytes === undefined) return false
  const ipv4 = isIn(NAT64, bytes) ? mappedIpv4(bytes) : isIn(IPV4_MAPPED, bytes) ? bytes : undefined
  if (isIn(allowed, bytes) || (ipv4 !== undefined && isIn(allowed, ipv4))) return true
  if (isIn(own, ipv4 ?? bytes)) return false
  if (ipv4 !== undefined) return !isIn(NOT_PUBLIC_IPV4, ipv4)
  return isIn(PUBLIC_IPV6, bytes) && !isIn(NOT_PUBLIC_IPV6, bytes)
}

function isIn(all: readonly Network[], bytes: Uint8Array): boolean {
  return all.some((network) => contains(network, bytes))
}

/** The IPv4-mapped form of the last four bytes, in which Network stores IPv4. */
function mappedIpv4(bytes: Uint8Array): Uint8Array {
  const mapped = new Uint8Array(bytes.length)
  mapped.set([0xff, 0xff, ...bytes.subarray(-4)], 10)
  return mapped
}

export const TARGET_REFUSED = 'TARGET_REFUSED'

/**
 * The service may not connect to the host. The message names no address: a member would learn the
 * addresses of internal names.
 */
export class TargetRefused extends Error {
  override readonly name = 'TargetRefused'
  readonly code = TARGET_REFUSED

  constructor(host: string) {
    super(
      `${host} is on this machine or in a local or private network, to which the service does not connect. Its operator can allow the network with --outbound-networks`,
    )
  }
}

/** The resolver of names, as dns.lookup with `all`. */
export type ResolveAll = (
  host: string,
  options: LookupOptions & { readonly all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/**
 * Returns the `lookup` option of a connection. It resolves a name only to addresses to which the
 * service may connect, and fails with TargetRefused if there are none. The connection goes to the
 * checked address: the name is not resolved again.
 *
 * node:net looks up no address, so a host that is an address needs isAllowedTarget().
 */
export function checkedLookup(allowed: readonly Network[], resolve: ResolveAll = lookup): LookupFunction {
  return (host, options, callback) => {
    resolve(host, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, '')
      const addresses = found.filter(({ address }) => isAllowedTarget(address, allowed))
      const [first] = addresses
      if (first === undefined) return callback(new TargetRefused(host), '')
      if (options.all === true) return callback(null, addresses)
      callback(null, first.address, first.family)
    })
  }
}

/** @throws TargetRefused if the host is an address to which the service may not connect. */
export function checkAddress(host: string, allowed: readonly Network[]): void {
  const bare = withoutBrackets(host)
  if (isIP(bare) !== 0 && !isAllowedTarget(bare, allowed)) throw new TargetRefused(bare)
}

export interface ConnectOptions {
  /** The networks to which the service may connect although they are not public. */
  readonly allowed: readonly Network[]
  /** For the name and the connection. */
  readonly timeoutMs: number
  readonly resolve?: ResolveAll
}

/**
 * Opens a TCP connection to a host, by name or address, if the service may connect to it.
 *
 * @throws TargetRefused, or the error of the connection, with code ETIMEDOUT after `timeoutMs`.
 */
export async function connectChecked(
  host: string,
  port: number,
  { allowed, timeoutMs, resolve }: ConnectOptions,
): Promise<Socket> {
  checkAddress(host, allowed)
  const outgoing = connect({ host: withoutBrackets(host), port, lookup: checkedLookup(allowed, resolve) })
  const timer = setTimeout(() => {
    outgoing.destroy(Object.assign(new Error(`${host} does not answer`), { code: 'ETIMEDOUT' }))
  }, timeoutMs)
  try {
    await once(outgoing, 'connect')
    return outgoing
  } finally {
    clearTimeout(timer)
  }
}

/**
 * A connection to the host of a URL that a member entered, directly or through HTTPS_PROXY, which
 * decides by its own rules to which names it connects.
 *
 * @throws TargetRefused if the address is neither public nor in an allowed network
 */
export async function connectTo(url: URL, allowed: readonly Network[], timeoutMs: number): Promise<Socket> {
  const host = withoutBrackets(url.hostname)
  const isTls = url.protocol === 'https:'
  const port = Number(url.port || (isTls ? 443 : 80))
  const proxy = isTls && !isLoopbackHost(url.hostname) ? proxyFor(url.href) : undefined
  if (proxy === undefined) return connectChecked(host, port, { allowed, timeoutMs })
  checkAddress(host, allowed)
  return tunnel(proxy, host, port, timeoutMs, () => {})
}

/** Sends one request over a connection of connectTo. Follows no redirect. */
export function requestOver(
  socket: Socket,
  url: URL,
  options: RequestOptions,
  body: string,
  tls: Pick<ConnectionOptions, 'ca'> = {},
): Promise<IncomingMessage> {
  const isTls = url.protocol === 'https:'
  const host = withoutBrackets(url.hostname)
  // Server Name Indication is for names only (RFC 6066 §3).
  const servername = isIP(host) === 0 ? { servername: host } : {}
  const createConnection = () => (isTls ? connectTls({ socket, host, ...servername, ...tls }) : socket)
  return new Promise((resolve, reject) => {
    const request = isTls ? httpsRequest : httpRequest
    request(url, { ...options, createConnection })
      .once('response', resolve)
      .once('error', reject)
      // Without this listener, node:http drops the connection and emits no event of these.
      .once('upgrade', (_response, upgraded: Socket) => {
        upgraded.destroy()
        reject(new Error('the server switched to another protocol (status 101)'))
      })
      // After a response or an error, this rejection has no effect.
      .once('close', () => reject(new Error('the connection was closed before a response')))
      .end(body)
  })
}
