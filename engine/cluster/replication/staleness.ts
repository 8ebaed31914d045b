/** Seconds of the monotonic clock, which all threads share. */
function monotonicSeconds(): number {
  return process.hrtime()[0]
}

/** Until when the store of this node is current enough to answer from. */
export function makeStaleness(): SharedArrayBuffer {
  return new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
}

/**
 * The deadline that the main thread moves while it receives changes. API threads compare it before
 * each answer, so they refuse also when the main thread, or the whole process, was stopped.
 */
export class Staleness {
  readonly #deadline: Int32Array

  constructor(memory: SharedArrayBuffer) {
    this.#deadline = new Int32Array(memory)
  }

  get isStale(): boolean {
    return monotonicSeconds() > Atomics.load(this.#deadline, 0)
  }

  /** The store was current `ageMs` ago, and may be used until it is `maxSeconds` old. */
  set(ageMs: number, maxSeconds: number): void {
    Atomics.store(this.#deadline, 0, Math.floor(monotonicSeconds() - ageMs / 1000 + maxSeconds))
  }
}
