import { allocateBatch, type BatchSizes, BatchState, FrameBatch, resetBatch } from './frame-batch.ts'

/**
 * The fixed pool of batches between a capture thread and its lanes. When all are in use, a capture
 * file waits (take). A live capture waits briefly while the ring holds new packets (takeWithin),
 * then drops and counts them (tryTake). Next to the batches is a page of control words, u32:
 *
 *     word 0  turn: incremented when a batch becomes free or a stop is requested; waited on
 *          1  stop: 1 when the capture must end, 2 when rows are no longer read
 *          2  run again: 1 when the rows of a batch were read and its decoding may continue
 */
export interface SharedPool {
  readonly control: SharedArrayBuffer
  readonly batches: readonly SharedArrayBuffer[]
}

const TURN = 0
const STOP = 1
const RUN_AGAIN = 2
const CONTROL_WORDS = 16

export function allocatePool(batches: number, lanes: number, sizes: BatchSizes): SharedPool {
  return {
    control: new SharedArrayBuffer(CONTROL_WORDS * 4),
    batches: Array.from({ length: batches }, () => allocateBatch(lanes, sizes)),
  }
}

/** Prepares a pool for another source. No thread may use the pool meanwhile. */
export function resetPool({ control, batches }: SharedPool): void {
  new Int32Array(control).fill(0)
  for (const memory of batches) resetBatch(memory)
}

/** A thread's view of the pool. */
export class BatchPool {
  readonly batches: readonly FrameBatch[]
  readonly #control: Int32Array
  #hint = 0

  constructor(shared: SharedPool) {
    this.#control = new Int32Array(shared.control)
    this.batches = shared.batches.map((memory, number) => new FrameBatch(memory, number))
  }

  /** Lanes for which each batch has a section. */
  get lanes(): number {
    return this.batch(0).lanes.length
  }

  batch(number: number): FrameBatch {
    const batch = this.batches[number]
    if (batch === undefined) throw new RangeError(`no batch ${number}`)
    return batch
  }

  /** Returns a batch in state FILLING, or undefined if none is free. */
  tryTake(): FrameBatch | undefined {
    for (let tried = 0; tried < this.batches.length; tried++) {
      const batch = this.batch(this.#hint)
      this.#hint = (this.#hint + 1) % this.batches.length
      if (batch.tryTake()) return batch
    }
    return undefined
  }

  /**
   * Blocks the thread until a batch is free and returns it in state FILLING. Returns undefined if a
   * stop was requested.
   */
  take(): FrameBatch | undefined {
    for (;;) {
      // Read before polling: if a batch becomes free after the poll, the wait returns at once.
      const turn = Atomics.load(this.#control, TURN)
      if (this.stopped) return undefined
      const batch = this.tryTake()
      if (batch !== undefined) return batch
      Atomics.wait(this.#control, TURN, turn)
    }
  }

  /** Like take(), but blocks for at most `milliseconds`. */
  takeWithin(milliseconds: number): FrameBatch | undefined {
    const untilMs = performance.now() + milliseconds
    for (;;) {
      const turn = Atomics.load(this.#control, TURN)
      const batch = this.tryTake()
      const leftMs = untilMs - performance.now()
      if (batch !== undefined || leftMs <= 0 || this.stopped) return batch
      Atomics.wait(this.#control, TURN, turn, leftMs)
    }
  }

  /** Returns a decoded and read batch to the pool. */
  free(batch: FrameBatch): void {
    batch.pass(BatchState.ready, BatchState.free)
    this.#wake()
  }

  stop(): void {
    Atomics.compareExchange(this.#control, STOP, 0, 1)
    this.#wake()
  }

  /** Stops the capture, and rows are no longer read. */
  abandon(): void {
    Atomics.store(this.#control, STOP, 2)
    this.#wake()
  }

  get stopped(): boolean {
    return Atomics.load(this.#control, STOP) !== 0
  }

  /** Reports that the rows of the capture thread's current batch were read. */
  runAgain(): void {
    Atomics.store(this.#control, RUN_AGAIN, 1)
    this.#wake()
  }

  /** Blocks the thread until runAgain(). Returns false if runAgain() will not be called. */
  awaitRunAgain(): boolean {
    for (;;) {
      const turn = Atomics.load(this.#control, TURN)
      if (Atomics.compareExchange(this.#control, RUN_AGAIN, 1, 0) === 1) return true
      if (Atomics.load(this.#control, STOP) === 2) return false
      Atomics.wait(this.#control, TURN, turn)
    }
  }

  /** Blocks the thread for a time, or until a stop is requested or a batch becomes free. */
  pause(milliseconds: number): void {
    const turn = Atomics.load(this.#control, TURN)
    if (!this.stopped) Atomics.wait(this.#control, TURN, turn, milliseconds)
  }

  #wake(): void {
    Atomics.add(this.#control, TURN, 1)
    Atomics.notify(this.#control, TURN)
  }
}
