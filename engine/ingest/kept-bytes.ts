const NOTHING = Buffer.alloc(0)
/** Space that stays while no bytes are kept. */
const KEPT_BYTES = 4 * 1024

/** The bytes of a connection that wait for more bytes, or for space in a queue. */
export class KeptBytes {
  length = 0
  #buffer: Buffer = NOTHING
  readonly #onSize: (bytes: number) => void

  /** @param onSize receives each change of `capacity`. May call release(). */
  constructor(onSize: (bytes: number) => void) {
    this.#onSize = onSize
  }

  /** Bytes of memory. */
  get capacity(): number {
    return this.#buffer.length
  }

  /** Removes all bytes. The result is valid until bytes are appended. */
  take(): Uint8Array {
    const bytes = this.#buffer.subarray(0, this.length)
    this.length = 0
    return bytes
  }

  /** The space doubles, so that copying stays linear. */
  append(bytes: Uint8Array): void {
    const needed = this.length + bytes.length
    if (needed > this.#buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#buffer.length * 2))
      this.#buffer.copy(larger, 0, 0, this.length)
      const more = larger.length - this.#buffer.length
      this.#buffer = larger
      this.#onSize(more)
      if (this.#buffer !== larger) return
    }
    this.#buffer.set(bytes, this.length)
    this.length = needed
  }

  /** Releases space that `bytes` bytes do not need. */
  shrink(bytes: number): void {
    if (this.#buffer.length > KEPT_BYTES && bytes * 2 < this.#buffer.length) this.release()
  }

  release(): void {
    const bytes = this.#buffer.length
    this.#buffer = NOTHING
    this.length = 0
    if (bytes > 0) this.#onSize(-bytes)
  }
}
