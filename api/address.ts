import { hash } from 'node:crypto'
import { clientOf } from '../engine/process/network.ts'

/** What an address counts under, as a hash: itself, or its /64. */
export function addressHash(address: string): Buffer {
  return hash('sha256', clientOf(address), 'buffer')
}
