import { isIP } from 'node:net'

/** Returns a name or address without the brackets of an IPv6 address in a URL (RFC 3986 §3.2.2). */
export function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1')
}

/** `posture.example:9443`, `[2001:db8::1]:9443`. `host` has no brackets. */
export function hostAndPort(host: string, port: number): string {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
}
