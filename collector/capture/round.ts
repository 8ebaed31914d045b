import { strict as assert } from 'node:assert'
import type { BatchPool } from './batch-pool.ts'
import { flowHash } from './flow-hash.ts'
import { BatchState, type FrameBatch } from './frame-batch.ts'

/**
 * A round is a run of consecutive frames of the source, distributed over one batch for each lane. Rounds are delivered one after the
 * other and each in the order of its frames, so that at any moment what was delivered is exactly a beginning of the source, however
 * many lanes there are. That is what makes a position to resume at.
 */
export interface Round {
  /** Index in the source of the round's first frame; a frame's own index counts from here. */
  readonly firstFrame: number
  readonly frames: number
  /** For each lane the number of its batch, or -1 when no frame of the round fell to it. */
  readonly batches: readonly number[]
  /** Bytes of the source read so far; 0 for an interface. */
  readonly bytesRead: number
}

/** What to do when no batch is free: a file can wait, the wire cannot. */
export type WhenExhausted = 'wait' | 'drop'

export class RoundFiller {
  readonly #pool: BatchPool
  readonly #linkType: number
  readonly #send: (round: Round) => void
  readonly #whenExhausted: WhenExhausted
  readonly #open: (FrameBatch | undefined)[]
  readonly #sequences: number[]
  #firstFrame: number
  #frames = 0

  constructor(
    pool: BatchPool,
    lanes: number,
    linkType: number,
    firstFrame: number,
    whenExhausted: WhenExhausted,
    send: (round: Round) => void,
  ) {
    assert(pool.batches.length >= lanes, 'a round may need a batch for every lane')
    this.#pool = pool
    this.#linkType = linkType
    this.#firstFrame = firstFrame
    this.#whenExhausted = whenExhausted
    this.#send = send
    this.#open = new Array<FrameBatch | undefined>(lanes).fill(undefined)
    this.#sequences = new Array<number>(lanes).fill(0)
  }

  /** Frames of the round so far. */
  get frames(): number {
    return this.#frames
  }

  /** Puts the frame in bytes [from, from + captured) into the batch of its lane. False when it was dropped or a stop was asked for. */
  put(
    source: Uint8Array,
    view: DataView,
    from: number,
    captured: number,
    original: number,
    seconds: number,
    nanoseconds: number,
    bytesRead: number,
  ): boolean {
    const lanes = this.#open.length
    // With one lane there is nothing to decide.
    const flow = lanes === 1 ? 0 : flowHash(view, this.#linkType, from, from + captured)
    const lane = flow % lanes
    const open = this.#open[lane]
    if (open !== undefined && !open.fits(captured)) this.flush(bytesRead)
    const batch = this.#open[lane] ?? this.#openBatch(lane)
    if (batch === undefined) return false
    batch.put(source, from, captured, original, seconds, nanoseconds, this.#frames, flow)
    this.#frames++
    return true
  }

  #openBatch(lane: number): FrameBatch | undefined {
    const wait = this.#whenExhausted === 'wait'
    const batch = wait ? this.#pool.take() : this.#pool.tryTake()
    if (batch === undefined) {
      if (!wait) this.#pool.countPoolDrop()
      return undefined
    }
    const sequence = this.#sequences[lane] as number
    this.#sequences[lane] = (sequence + 1) >>> 0
    batch.beginFilling(sequence, this.#linkType)
    this.#open[lane] = batch
    return batch
  }

  /** Hands the round on, whatever is in it. */
  flush(bytesRead: number): void {
    if (this.#frames === 0) return
    const batches: number[] = []
    for (const [lane, batch] of this.#open.entries()) {
      batch?.pass(BatchState.filling, BatchState.ready)
      batches.push(batch === undefined ? -1 : batch.number)
      this.#open[lane] = undefined
    }
    this.#send({ firstFrame: this.#firstFrame, frames: this.#frames, batches, bytesRead })
    this.#firstFrame += this.#frames
    this.#frames = 0
  }
}
