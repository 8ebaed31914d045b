import type { Environment, Table } from '../kernel/lmdb/environment.ts'
import { openRecord, sealRecord } from '../kernel/lmdb/record.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { READ_BLOCKS_MAX } from '../limits.ts'
import { endOfPrefix, uuidBytes } from './keys.ts'

/** Length of each hash in a key. */
export const BLOCK_KEY_BYTES = 16
/**
 * Maximum files that agree up to a block and in its first two messages, and differ later. Beyond it
 * the oldest is forgotten, and its messages would count again.
 */
const VERSIONS_MAX = 16
/** Blocks are 1 MB each, so the limit is checked only once per this number of blocks. */
const BOUND_EVERY = 50
const WRITTEN_BYTES = 8
const COUNT_BYTES = 4

/**
 * For each message of a block, a 32-bit hash of the block up to the message. Two files agree as far
 * as their hashes do.
 */
export type LineHashes = Uint32Array

/**
 * Remembers which messages of log files were read, so that each counts once, even if a file is read
 * again, renamed, compressed, appended to or truncated.
 *
 *   key    organization (16), hash of the file before the block and of the block's first
 *          message (16), hash of its second message (16; zero if there is none)
 *   value  record, little-endian: time of writing, f64, milliseconds since 1970;
 *          then for each version the number of hashes, u32, and the hashes, u32
 */
export class ReadLines {
  readonly #table: Table
  readonly #blocksMax: number
  #puts = 0

  constructor(environment: Environment, blocksMax = READ_BLOCKS_MAX) {
    this.#table = environment.table('read-lines')
    this.#blocksMax = blocksMax
  }

  /** The stored versions of the block with these keys. */
  versions(organizationId: string, first: Buffer, second: Buffer): LineHashes[] {
    const stored = this.#table.get(keyOf(organizationId, first, second))
    return stored === undefined ? [] : versionsIn(openRecord(stored, 1, 'hashes of log messages'))
  }

  /** Whether a block with this beginning was read, so that its first message is known. */
  knowsFirst(organizationId: string, first: Buffer): boolean {
    const prefix = Buffer.concat([uuidBytes(organizationId), first])
    for (const _one of this.#table.getRange({ start: prefix, end: endOfPrefix(prefix), limit: 1 })) return true
    return false
  }

  /** Stores the hashes. Replaces a version that they extend. */
  put(organizationId: string, first: Buffer, second: Buffer, hashes: LineHashes, nowMs: number): void {
    const last = hashes.length - 1
    const before = this.versions(organizationId, first, second)
    if (before.some((known) => known.length > last && known[last] === hashes[last])) return
    const others = before.filter((known) => known[known.length - 1] !== hashes[known.length - 1])
    const versions = [...others, hashes].slice(-VERSIONS_MAX)
    this.#table.putSync(keyOf(organizationId, first, second), sealRecord(1, packed(versions, nowMs)))
    if (++this.#puts % BOUND_EVERY === 1) this.#bound(organizationId)
  }

  #bound(organizationId: string): void {
    const prefix = uuidBytes(organizationId)
    const range = { start: prefix, end: endOfPrefix(prefix) }
    const count = this.#table.getKeysCount(range)
    if (count <= this.#blocksMax) return
    const blocks = Array.from(this.#table.getRange(range), ({ key, value }) => {
      return { key: Buffer.from(key), writtenMs: openRecord(value, 1, 'hashes of log messages').readDoubleLE(0) }
    })
    blocks.sort((a, b) => a.writtenMs - b.writtenMs)
    for (const { key } of blocks.slice(0, count - Math.floor(this.#blocksMax * 0.9))) this.#table.removeSync(key)
  }
}

function keyOf(organizationId: string, first: Buffer, second: Buffer): Buffer {
  return Buffer.concat([uuidBytes(organizationId), first, second])
}

function packed(versions: readonly LineHashes[], nowMs: number): Buffer {
  const size = versions.reduce((sum, { length }) => sum + COUNT_BYTES + length * 4, WRITTEN_BYTES)
  const bytes = Buffer.allocUnsafe(size)
  bytes.writeDoubleLE(nowMs, 0)
  let at = WRITTEN_BYTES
  for (const hashes of versions) {
    at = bytes.writeUInt32LE(hashes.length, at)
    for (const hash of hashes) at = bytes.writeUInt32LE(hash, at)
  }
  return bytes
}

/**
 * Returns the versions in a stored block.
 *
 * @throws Fault STORE_DAMAGED, STORE_VERSION
 */
export function openBlock(stored: Buffer): LineHashes[] {
  const bytes = openRecord(stored, 1, 'hashes of log messages')
  let at = WRITTEN_BYTES
  let count = 0
  for (; at + COUNT_BYTES <= bytes.length; count++) at += COUNT_BYTES + bytes.readUInt32LE(at) * 4
  if (at === bytes.length && count >= 1 && count <= VERSIONS_MAX) return versionsIn(bytes)
  throw new Fault('STORE_DAMAGED', `hashes of log messages: ${count} versions fill ${at} bytes of ${bytes.length}`)
}

function versionsIn(bytes: Buffer): LineHashes[] {
  const versions: LineHashes[] = []
  for (let at = WRITTEN_BYTES; at + COUNT_BYTES <= bytes.length; ) {
    const count = bytes.readUInt32LE(at)
    at += COUNT_BYTES
    const hashes = new Uint32Array(count)
    for (let index = 0; index < count; index++, at += 4) hashes[index] = bytes.readUInt32LE(at)
    versions.push(hashes)
  }
  return versions
}
