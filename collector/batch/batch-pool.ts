import { allocateBatch, type BatchSizes, BatchState, FrameBatch } from './frame-batch.ts'

/**
 * The fixed pool of batches between a capture thread and its lanes. When all are taken, a file waits (take); a live capture waits a
 * little, while the ring holds what comes (takeWithin), then it drops packets and counts them (tryTake). Beside the batches stands one page of control words, u32:
 *
 *     word 0  turn: counts up whenever a batch becomes free or a stop is asked for; who waits, waits on it
 *          1  stop: 1 when the capture shall end, 2 when nobody reads its rows any more
 *          2  run again: 1 when the rows of a batch were read and the thread that decodes it shall go on
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

/** A thread's hold on the pool. */
export class BatchPool {
  readonly batches: readonly FrameBatch[]
  readonly #control: Int32Array
  #hint = 0

  constructor(shared: SharedPool) {
    this.#control = new Int32Array(shared.control)
    this.batches = shared.batches.map((memory, number) => new FrameBatch(memory, number))
  }

  /** Lanes that each batch has a section for. */
  get lanes(): number {
    return this.batch(0).lanes.length
  }

  batch(number: number): FrameBatch {
    const batch = this.batches[number]
    if (batch === undefined) throw new RangeError(`no batch ${number}`)
    return batch
  }

  /** A batch in state FILLING, or undefined when none is free. */
  tryTake(): FrameBatch | undefined {
    for (let tried = 0; tried < this.batches.length; tried++) {
      const batch = this.batch(this.#hint)
      this.#hint = (this.#hint + 1) % this.batches.length
      if (batch.tryTake()) return batch
    }
    return undefined
  }

  /** A batch in state FILLING; blocks the thread until one is free. Undefined when a stop was asked for. */
  take(): FrameBatch | undefined {
    for (;;) {
      // Read before looking: a batch that becomes free after the look makes the wait return at once.
      const turn = Atomics.load(this.#control, TURN)
      if (this.stopped) return undefined
      const batch = this.tryTake()
      if (batch !== undefined) return batch
      Atomics.wait(this.#control, TURN, turn)
    }
  }

  /** A batch in state FILLING; blocks the thread until one is free, but not longer than so many milliseconds. */
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

  /** Gives back a batch that was decoded and read. */
  free(batch: FrameBatch): void {
    batch.pass(BatchState.ready, BatchState.free)
    this.#wake()
  }

  stop(): void {
    Atomics.compareExchange(this.#control, STOP, 0, 1)
    this.#wake()
  }

  /** Stops, and nobody reads rows any more. */
  abandon(): void {
    Atomics.store(this.#control, STOP, 2)
    this.#wake()
  }

  get stopped(): boolean {
    return Atomics.load(this.#control, STOP) !== 0
  }

  /** The rows of the batch that the capture thread decodes were read. */
  runAgain(): void {
    Atomics.store(this.#control, RUN_AGAIN, 1)
    this.#wake()
  }

  /** Blocks the thread until runAgain(). False when nobody will call it. */
  awaitRunAgain(): boolean {
    for (;;) {
      const turn = Atomics.load(this.#control, TURN)
      if (Atomics.compareExchange(this.#control, RUN_AGAIN, 1, 0) === 1) return true
      if (Atomics.load(this.#control, STOP) === 2) return false
      Atomics.wait(this.#control, TURN, turn)
    }
  }

  /** Blocks the thread for a time, or until a stop is asked for or a batch becomes free. */
  pause(milliseconds: number): void {
    const turn = Atomics.load(this.#control, TURN)
    if (!this.stopped) Atomics.wait(this.#control, TURN, turn, milliseconds)
  }

  #wake(): void {
    Atomics.add(this.#control, TURN, 1)
    Atomics.notify(this.#control, TURN)
  }
}
