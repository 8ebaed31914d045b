/** What a value from outside may contain, so that it needs little memory when it is built. */
export interface ShapeLimits {
  /** Of all pieces together. */
  readonly bytesMax: number
  /** Values at all levels. The keys of maps count. */
  readonly valuesMax: number
  /** Lists and maps around a value. */
  readonly depthMax: number
}

/**
 * Checks a value before anything is built of it. The value may arrive in pieces, so that a body is
 * decompressed no further than the first limit.
 */
export interface ShapeCheck {
  /**
   * Returns an error, or undefined. An error at the limit of values or bytes begins with "too
   * many".
   */
  push(chunk: Uint8Array): string | undefined
  /** Returns the error of a value that ends too early, or undefined. */
  end?(): string | undefined
}

/** Limits the bytes only, for values whose reader builds nothing that it has not checked. */
export class BytesCheck implements ShapeCheck {
  readonly #bytesMax: number
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  push(chunk: Uint8Array): string | undefined {
    this.#bytes += chunk.length
    return this.#bytes > this.#bytesMax ? `too many bytes: expected at most ${this.#bytesMax}` : undefined
  }
}
