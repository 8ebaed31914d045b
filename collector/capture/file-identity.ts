import { createHash } from 'node:crypto'
import { readSync } from 'node:fs'

const HEAD_BYTES = 65_536
/**
 * A shorter file holds no distinguishing packet, so a shorter identity matches only a file of the
 * same length.
 */
const GROWN_BYTES_MIN = 128

/**
 * The identity of a capture file: the number of its first bytes, up to 64 KiB, and their SHA-256:
 * `4096 9f86d0…`. The identity survives renaming and copying. A file that has grown keeps its
 * earlier identity.
 *
 * @param known identities of files that were read before.
 * @throws Error of the system
 */
export function identityOf(descriptor: number, known: readonly string[]): string {
  const buffer = Buffer.alloc(HEAD_BYTES)
  // At a position, so that the file is still at its start for its reader.
  const head = buffer.subarray(0, readSync(descriptor, buffer, 0, HEAD_BYTES, 0))
  const hashes = new Map<number, string>()
  const hashOf = (bytes: number): string => {
    const hash = hashes.get(bytes) ?? createHash('sha256').update(head.subarray(0, bytes)).digest('hex')
    hashes.set(bytes, hash)
    return hash
  }
  const before = known
    .map((identity) => ({ identity, bytes: Number.parseInt(identity, 10) }))
    .filter(({ bytes }) => bytes === head.length || (bytes >= GROWN_BYTES_MIN && bytes < head.length))
    .sort((a, b) => b.bytes - a.bytes)
    .find(({ identity, bytes }) => identity.endsWith(hashOf(bytes)))
  return before?.identity ?? `${head.length} ${hashOf(head.length)}`
}
