import { addressBytes } from '../../engine/kernel/process/network.ts'
import { u16 } from './packets.ts'

/** What clients and load balancers send before a ClientHello. */

/** RFC 9110 §9.3.6. */
export function connectRequest(target: string, fields: readonly string[] = []): Buffer {
  return Buffer.from([`CONNECT ${target} HTTP/1.1`, `Host: ${target}`, ...fields, '', ''].join('\r\n'))
}

/** RFC 1928 §3, and RFC 1929 §2 with `user`. */
export function socks5Greeting(user?: string, password = ''): Buffer {
  if (user === undefined) return Buffer.from([5, 1, 0])
  const login = [
    Buffer.from([1, user.length]),
    Buffer.from(user),
    Buffer.from([password.length]),
    Buffer.from(password),
  ]
  return Buffer.concat([Buffer.from([5, 2, 0, 2]), ...login])
}

/** RFC 1928 §4: a request for a name, or an IPv4 address. */
export function socks5Request(host: string, command = 1): Buffer {
  const address = /^[\d.]+$/.test(host)
    ? Buffer.from([1, ...host.split('.').map(Number)])
    : Buffer.concat([Buffer.from([3, host.length]), Buffer.from(host)])
  return Buffer.concat([Buffer.from([5, command, 0]), address, u16(443)])
}

/** SOCKS 4A: the address 0.0.0.1, then user and name, each with a final zero. */
export function socks4aRequest(host: string, user = ''): Buffer {
  return Buffer.concat([Buffer.from([4, 1]), u16(443), Buffer.from([0, 0, 0, 1]), Buffer.from(`${user}\0${host}\0`)])
}

interface ProxyHeader {
  readonly client: string
  readonly server: string
  readonly clientPort: number
  readonly serverPort: number
  /** Only version 2. */
  readonly serverName?: string
}

/** The PROXY protocol of HAProxy, §2.1. */
export function proxyV1({ client, server, clientPort, serverPort }: ProxyHeader): Buffer {
  return Buffer.from(`PROXY TCP${client.includes(':') ? 6 : 4} ${client} ${server} ${clientPort} ${serverPort}\r\n`)
}

/** The same, §2.2: with an ALPN before the server name. */
export function proxyV2({ client, server, clientPort, serverPort, serverName }: ProxyHeader, command = 1): Buffer {
  const isV6 = client.includes(':')
  const bytesOf = (address: string): Uint8Array => (addressBytes(address) as Uint8Array).subarray(isV6 ? 0 : 12)
  const tlv = (type: number, value: string): Buffer =>
    Buffer.concat([Buffer.from([type]), u16(value.length), Buffer.from(value)])
  const body = Buffer.concat([
    ...[bytesOf(client), bytesOf(server), u16(clientPort), u16(serverPort)],
    ...(serverName === undefined ? [] : [tlv(1, 'h2'), tlv(2, serverName)]),
  ])
  const head = Buffer.from([0x20 | command, isV6 ? 0x21 : 0x11])
  return Buffer.concat([Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1'), head, u16(body.length), body])
}
