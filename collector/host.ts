import { isIP } from 'node:net'

/** A name or an address, without the brackets that an IPv6 address has in a URL (RFC 3986 §3.2.2). */
export function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1')
}

/** `posture.example:9443`, `[2001:db8::1]:9443`; the host comes without brackets. */
export function hostAndPort(host: string, port: number): string {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
}
