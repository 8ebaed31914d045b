import { isIP } from 'node:net'

/**
 * An IPv4 or IPv6 network. IPv4 is stored as an IPv4-mapped address, so that both compare alike
 * (RFC 4291 §2.5.5.2).
 */
export interface Network {
  readonly bytes: Uint8Array
  /** Prefix length, out of 128 bits. */
  readonly prefixBits: number
}

const ADDRESS_BITS = 128
const IPV4_BITS = 32
const ADDRESS_BYTES = ADDRESS_BITS / 8
const IPV4_BYTES = IPV4_BITS / 8

/** Parses `192.0.2.1`, `192.0.2.0/24` or `2001:db8::/32`. undefined: the text is not a network. */
export function networkOf(text: string): Network | undefined {
  const [address = '', bits, ...rest] = text.split('/')
  const bytes = addressBytes(address)
  if (bytes === undefined || rest.length > 0) return undefined
  const own = isIP(address) === 4 ? IPV4_BITS : ADDRESS_BITS
  if (bits === undefined) return { bytes, prefixBits: ADDRESS_BITS }
  if (!/^\d{1,3}$/.test(bits) || Number(bits) > own) return undefined
  return { bytes, prefixBits: ADDRESS_BITS - own + Number(bits) }
}

/** Returns the 16 bytes of an address, or undefined. A zone id is ignored. */
export function addressBytes(address: string): Uint8Array | undefined {
  const bare = address.split('%', 1)[0] ?? ''
  const bytes = new Uint8Array(ADDRESS_BYTES)
  if (isIP(bare) === 4) {
    bytes.set([0xff, 0xff, ...bare.split('.').map(Number)], 10)
    return bytes
  }
  if (isIP(bare) !== 6) return undefined
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(bare)
  const hex =
    dotted === null
      ? bare
      : `${dotted[1]}${((Number(dotted[2]) << 8) | Number(dotted[3])).toString(16)}:${((Number(dotted[4]) << 8) | Number(dotted[5])).toString(16)}`
  const [head = '', tail] = hex.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const groups =
    tail === undefined ? before : [...before, ...new Array(8 - before.length - after.length).fill('0'), ...after]
  for (const [index, group] of groups.entries()) {
    const value = Number.parseInt(group, 16)
    bytes[index * 2] = value >> 8
    bytes[index * 2 + 1] = value & 0xff
  }
  return bytes
}

export function contains({ bytes, prefixBits }: Network, address: Uint8Array): boolean {
  const whole = prefixBits >> 3
  for (let at = 0; at < whole; at++) if (bytes[at] !== address[at]) return false
  const mask = 0xff00 >> (prefixBits & 7)
  return ((bytes[whole] ?? 0) & mask & 0xff) === ((address[whole] ?? 0) & mask & 0xff)
}

/**
 * Returns the canonical text of an address: an IPv4-mapped address as IPv4, IPv6 as in RFC 5952.
 * Other text is returned unchanged.
 */
export function canonicalAddress(text: string): string {
  const bytes = addressBytes(text)
  return bytes === undefined ? text : addressOfBytes(bytes)
}

/** The canonical text of the 4 or 16 bytes of an address. */
export function addressOfBytes(bytes: Uint8Array): string {
  if (bytes.length !== ADDRESS_BYTES || isIpv4InIpv6(bytes)) return bytes.subarray(-IPV4_BYTES).join('.')
  return addressText(new DataView(bytes.buffer, bytes.byteOffset), 0, 6)
}

/** The text of the IPv4 or IPv6 address at `at` (RFC 5952 §4). */
export function addressText(view: DataView, at: number, version: number): string {
  if (version === 4) {
    return `${view.getUint8(at)}.${view.getUint8(at + 1)}.${view.getUint8(at + 2)}.${view.getUint8(at + 3)}`
  }
  // "::" is for the longest run of two or more zero groups, the first of equals.
  let longest = 1
  let longestStart = -1
  for (let group = 0; group < 8; group++) {
    let run = 0
    while (group + run < 8 && view.getUint16(at + (group + run) * 2) === 0) run++
    if (run > longest) {
      longest = run
      longestStart = group
    }
    group += run
  }
  const groups = (from: number, to: number) => {
    const texts: string[] = []
    for (let group = from; group < to; group++) texts.push(view.getUint16(at + group * 2).toString(16))
    return texts.join(':')
  }
  if (longestStart === -1) return groups(0, 8)
  return `${groups(0, longestStart)}::${groups(longestStart + longest, 8)}`
}

/** The text of a network, whose address has no bits after the prefix. */
export function networkText({ bytes, prefixBits }: Network): string {
  const masked = bytes.map((byte, at) => byte & (0xff << Math.max(0, Math.min(8, (at + 1) * 8 - prefixBits))))
  const address = addressOfBytes(masked)
  return `${address}/${address.includes(':') ? prefixBits : prefixBits - (ADDRESS_BITS - IPV4_BITS)}`
}

/** Bytes of the network prefix of an IPv6 address. A host chooses the other bytes freely. */
const SITE_BYTES = 8

/**
 * Returns the client that an address counts as in limits: the IPv4 address, or the IPv6 /64. Other
 * text is returned unchanged.
 */
export function clientOf(text: string): string {
  const bytes = addressBytes(text)
  return bytes === undefined ? text : clientOfBytes(bytes)
}

/** The same of the 4 or 16 bytes of an address; '' of none. */
export function clientOfBytes(bytes: Uint8Array): string {
  if (bytes.length !== ADDRESS_BYTES || isIpv4InIpv6(bytes)) return addressOfBytes(bytes)
  return `${addressOfBytes(bytes.map((byte, at) => (at < SITE_BYTES ? byte : 0)))}/64`
}

export function isIpv4InIpv6(bytes: Uint8Array): boolean {
  for (let at = 0; at < 10; at++) if (bytes[at] !== 0) return false
  return bytes[10] === 0xff && bytes[11] === 0xff
}

/** Whether the host of a URL is this machine: localhost, 127.0.0.0/8 or [::1]. */
export function isLoopbackHost(host: string): boolean {
  return /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/.test(host)
}

/** Returns a name or address without the brackets of an IPv6 address in a URL (RFC 3986 §3.2.2). */
export function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1')
}

/** `posture.example:9443`, `[2001:db8::1]:9443`. `host` has no brackets. */
export function hostAndPort(host: string, port: number): string {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
}
