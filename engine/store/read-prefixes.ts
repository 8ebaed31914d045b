import { READ_BLOCKS_MAX } from '../limits.ts'
import type { Environment } from './environment.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'

/** How much of a block of a log file was read before: so many bytes, with this SHA-256 in hex. */
export interface ReadPrefix {
  readonly bytes: number
  readonly sha256: string
}

interface StoredBlock {
  readonly prefixes: readonly ReadPrefix[]
  readonly readAtMs: number
}

/** Files that begin alike and then differ share a block's key; more of them than this, and the oldest counts again. */
const PREFIXES_MAX = 64

/**
 * Which parts of log files were read, so that a file that is read again counts once, also if it has grown. A file is known block by block: the
 * key of a block is the hash of all that stands before it.
 */
export class ReadPrefixes {
  readonly #blocks: Family<StoredBlock>
  readonly #blocksMax: number

  constructor(environment: Environment, blocksMax = READ_BLOCKS_MAX) {
    this.#blocks = new Family(environment.table('read-blocks'), 'part of a log file')
    this.#blocksMax = blocksMax
  }

  /** What was read of the block that has this before it, the longest first. */
  of(organizationId: string, before: Uint8Array): readonly ReadPrefix[] {
    const stored = this.#blocks.get(keyOf(organizationId, before))
    return [...(stored?.prefixes ?? [])].sort((a, b) => b.bytes - a.bytes)
  }

  /** Remembers a prefix in the place of a shorter one of the same file. Inside a transaction of the caller. */
  put(
    organizationId: string,
    before: Uint8Array,
    prefix: ReadPrefix,
    replaces: ReadPrefix | undefined,
    nowMs: number,
  ): void {
    const key = keyOf(organizationId, before)
    const stored = this.#blocks.get(key)
    const others = (stored?.prefixes ?? []).filter(({ sha256 }) => sha256 !== replaces?.sha256)
    this.#blocks.put(key, { prefixes: [...others, prefix].slice(-PREFIXES_MAX), readAtMs: nowMs })
    if (stored === undefined) this.#bound(organizationId)
  }

  /** Blocks come by the megabyte of logs: looking them all through costs little beside reading them, once in a hundred. */
  #bound(organizationId: string): void {
    if (++this.#added % 100 !== 0) return
    const all = Array.from(this.#blocks.range(uuidBytes(organizationId)))
    if (all.length <= this.#blocksMax) return
    all.sort((a, b) => a.value.readAtMs - b.value.readAtMs)
    for (const { key } of all.slice(0, all.length - this.#blocksMax)) this.#blocks.remove(key)
  }
  #added = 0
}

function keyOf(organizationId: string, before: Uint8Array): Buffer {
  return Buffer.concat([uuidBytes(organizationId), before])
}
