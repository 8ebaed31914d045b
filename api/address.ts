import { hash } from 'node:crypto'
import { addressBytes } from '../engine/ingest/network.ts'

/**
 * Length of an IPv6 prefix in bytes. A client usually has a /64, so all addresses in it count as
 * one.
 */
const IPV6_PREFIX_BYTES = 8
/** Prefix of an IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2). */
const MAPPED_PREFIX = Buffer.from('00000000000000000000ffff', 'hex')

/** Returns a hash of the address, or of its /64 for IPv6, under which requests are counted. */
export function addressHash(address: string): Buffer {
  const bytes = addressBytes(address)
  if (bytes === undefined) return hash('sha256', address, 'buffer')
  const isIpv4 = MAPPED_PREFIX.equals(bytes.subarray(0, MAPPED_PREFIX.length))
  return hash('sha256', isIpv4 ? bytes : bytes.subarray(0, IPV6_PREFIX_BYTES), 'buffer')
}
