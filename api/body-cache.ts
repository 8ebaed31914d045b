import type { ListState } from './list-state.ts'

/** Bodies stand one behind the other in blocks of this length, made when they are needed: nothing is allocated for a body. */
const BLOCK_BYTES = 4 * 1024 * 1024
/** Of a thread, beside the store's own pages: reading a body from there copies it, which takes longer than all else of a request. */
const BLOCKS_MAX = 8
/** A longer body is not kept. So the end of a block wastes no more than an eighth of it. */
const BODY_BYTES_MAX = BLOCK_BYTES / 8
/** As long as there is less to keep than fits in seven eighths of all blocks but the one that is filled anew, each body is kept. */
const KEPT_FREELY_BYTES = ((BLOCKS_MAX - 1) * BLOCK_BYTES * 7) / 8
/** Beyond it one of so many that were not kept takes the place of older ones: where more is asked for than fits, most of what fits stays. */
const REPLACE_ONE_OF = 64

class Block {
  readonly bytes = new Uint8Array(BLOCK_BYTES)
  usedBytes = 0
  readonly states = new Set<ListState>()
}

/** Bodies of usual answers, for as long as what they are of does not change. */
export class BodyCache {
  readonly #blockOf = new Map<ListState, Block>()
  /** In the order in which they were filled, from the one behind `#at` on. */
  readonly #blocks: Block[] = []
  #at = -1
  #keptBytes = 0
  #missed = 0

  /** Keeps a copy, where there is room; answers it, or the body itself. Either is valid until the next call. */
  keep(state: ListState, body: Uint8Array): Uint8Array {
    if (body.length > BODY_BYTES_MAX) return body
    if (this.#keptBytes + body.length > KEPT_FREELY_BYTES && ++this.#missed % REPLACE_ONE_OF !== 0) return body
    this.drop(state)
    const block = this.#blockFor(body.length)
    block.bytes.set(body, block.usedBytes)
    const copy = block.bytes.subarray(block.usedBytes, block.usedBytes + body.length)
    block.usedBytes += body.length
    block.states.add(state)
    this.#blockOf.set(state, block)
    this.#keptBytes += body.length
    state.body = copy
    return copy
  }

  /** What it is of has changed, or nobody asks for it. */
  drop(state: ListState): void {
    const block = this.#blockOf.get(state)
    if (block === undefined) return
    this.#blockOf.delete(state)
    block.states.delete(state)
    if (block.states.size === 0) block.usedBytes = 0
    this.#keptBytes -= state.body?.length ?? 0
    state.body = undefined
  }

  /** The one that is being filled; where it has too little room, a new one, or the one that was filled the longest ago. */
  #blockFor(bytes: number): Block {
    const filling = this.#blocks[this.#at]
    if (filling !== undefined && filling.usedBytes + bytes <= BLOCK_BYTES) return filling
    this.#at = (this.#at + 1) % BLOCKS_MAX
    const next = this.#blocks[this.#at] ?? new Block()
    this.#blocks[this.#at] = next
    for (const state of next.states) this.drop(state)
    return next
  }
}
