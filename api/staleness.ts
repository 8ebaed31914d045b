/** One flag: 1 while the store of this node may lack what was revoked elsewhere. */
export function makeStaleness(): SharedArrayBuffer {
  return new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
}

/** The flag, which the main thread sets and API threads read before each answer. */
export class Staleness {
  readonly #flag: Int32Array

  constructor(memory: SharedArrayBuffer) {
    this.#flag = new Int32Array(memory)
  }

  get isStale(): boolean {
    return Atomics.load(this.#flag, 0) === 1
  }

  set(isStale: boolean): void {
    Atomics.store(this.#flag, 0, isStale ? 1 : 0)
  }
}
