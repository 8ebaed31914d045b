import { hash } from 'node:crypto'
import { addressBytes } from '../engine/ingest/network.ts'

/** An IPv6 client has a /64 to itself, in bytes: what stands behind it is one and the same to us. */
const IPV6_PREFIX_BYTES = 8
/** IPv4 stands behind these in IPv6's form (RFC 4291 §2.5.5.2). */
const MAPPED_PREFIX = Buffer.from('00000000000000000000ffff', 'hex')

/** What an address counts under, as a hash: itself, or its /64. */
export function addressHash(address: string): Buffer {
  const bytes = addressBytes(address)
  if (bytes === undefined) return hash('sha256', address, 'buffer')
  const isIpv4 = MAPPED_PREFIX.equals(bytes.subarray(0, MAPPED_PREFIX.length))
  return hash('sha256', isIpv4 ? bytes : bytes.subarray(0, IPV6_PREFIX_BYTES), 'buffer')
}
