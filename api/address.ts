import { hash } from 'node:crypto'
import { clientOf } from '../engine/process/network.ts'

/** Returns a hash of the address, or of its /64 for IPv6, under which requests are counted. */
export function addressHash(address: string): Buffer {
  return hash('sha256', clientOf(address), 'buffer')
}
