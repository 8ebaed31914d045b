import type { ListState } from './list-state.ts'

/** Bytes of bodies that a thread keeps beside the store's own pages: reading one from there copies it, which takes longer than all else of a request. */
const KEPT_BYTES_MAX = 32 * 1024 * 1024
/** A longer body is not kept: it would drive out many. */
const BODY_BYTES_MAX = KEPT_BYTES_MAX / 32
/** When it is full, one of so many that were not kept takes the place of the oldest: where more is asked for than fits, most of what fits stays. */
const REPLACE_ONE_OF = 64

/** Bodies of usual answers, for as long as what they are of does not change. */
export class BodyCache {
  readonly #states = new Set<ListState>()
  #bytes = 0
  #missed = 0

  /** Keeps a copy, where there is room; answers it, or the body itself. */
  keep(state: ListState, body: Uint8Array): Uint8Array {
    if (body.length > BODY_BYTES_MAX) return body
    if (this.#bytes + body.length > KEPT_BYTES_MAX) {
      if (++this.#missed % REPLACE_ONE_OF !== 0) return body
      for (const oldest of this.#states) {
        this.drop(oldest)
        if (this.#bytes + body.length <= KEPT_BYTES_MAX) break
      }
    }
    const copy = Uint8Array.from(body)
    state.body = copy
    this.#states.add(state)
    this.#bytes += copy.length
    return copy
  }

  /** What it is of has changed, or nobody asks for it. */
  drop(state: ListState): void {
    if (!this.#states.delete(state)) return
    this.#bytes -= state.body?.length ?? 0
    state.body = undefined
  }
}
