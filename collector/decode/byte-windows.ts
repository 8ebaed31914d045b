/**
 * Reassembly buffers: a fixed number of short and long buffers in one shared memory. Bytes may
 * arrive in any order and more than once. The first copy of a byte wins.
 *
 *     each short buffer: its bytes, then a mark per byte present; then the long buffers
 */
export const NO_BUFFER = -1

export class ByteWindows {
  readonly view: DataView
  readonly bytes: Uint8Array
  readonly #shortBytes: number
  readonly #shorts: number
  readonly #longBytes: number
  readonly #longs: number
  readonly #free: Int32Array
  #freeShorts: number
  #freeLongs: number
  /**
   * For each buffer: the number of bytes present from its start without a gap, and the end of the
   * farthest byte present.
   */
  readonly #contiguous: Int32Array
  readonly #farthest: Int32Array

  constructor(shortBytes: number, shorts: number, longBytes: number, longs: number) {
    const memory = new SharedArrayBuffer(2 * (shortBytes * shorts + longBytes * longs))
    this.view = new DataView(memory)
    this.bytes = new Uint8Array(memory)
    this.#shortBytes = shortBytes
    this.#shorts = shorts
    this.#longBytes = longBytes
    this.#longs = longs
    // Stacks of free buffers: the short ones from index 0, the long ones from index `shorts`.
    this.#free = Int32Array.from({ length: shorts + longs }, (_none, index) => index)
    this.#freeShorts = shorts
    this.#freeLongs = longs
    this.#contiguous = new Int32Array(shorts + longs)
    this.#farthest = new Int32Array(shorts + longs)
  }

  /** Number of buffers in use. */
  get taken(): number {
    return this.#shorts + this.#longs - this.#freeShorts - this.#freeLongs
  }

  /**
   * Returns an empty buffer of at least `bytes`, or NO_BUFFER if all buffers of that length are in
   * use.
   */
  take(bytes: number): number {
    if (bytes <= this.#shortBytes) {
      return this.#freeShorts === 0 ? NO_BUFFER : (this.#free[--this.#freeShorts] ?? 0)
    }
    if (bytes > this.#longBytes || this.#freeLongs === 0) return NO_BUFFER
    return this.#free[this.#shorts + --this.#freeLongs] ?? 0
  }

  release(buffer: number): void {
    this.clear(buffer)
    if (buffer < this.#shorts) this.#free[this.#freeShorts++] = buffer
    else this.#free[this.#shorts + this.#freeLongs++] = buffer
  }

  /** Empties a buffer. */
  clear(buffer: number): void {
    this.#unmark(buffer, this.#contiguous[buffer] ?? 0, this.#farthest[buffer] ?? 0)
    this.#contiguous[buffer] = 0
    this.#farthest[buffer] = 0
  }

  capacity(buffer: number): number {
    return buffer < this.#shorts ? this.#shortBytes : this.#longBytes
  }

  /** Offset of the buffer's first byte in `view`. */
  start(buffer: number): number {
    if (buffer < this.#shorts) return 2 * buffer * this.#shortBytes
    return 2 * (this.#shorts * this.#shortBytes + (buffer - this.#shorts) * this.#longBytes)
  }

  /** Number of bytes present from the start without a gap. */
  contiguous(buffer: number): number {
    return this.#contiguous[buffer] ?? 0
  }

  /** Offset of the first byte present from `at` on, which is after the first gap; `farthest` if there is none. */
  present(buffer: number, at: number): number {
    const marks = this.start(buffer) + this.capacity(buffer)
    const farthest = this.#farthest[buffer] ?? 0
    let next = at
    while (next < farthest && this.bytes[marks + next] !== 1) next++
    return next
  }

  /** End of the bytes present from `at` on without a gap. */
  runEnd(buffer: number, at: number): number {
    const marks = this.start(buffer) + this.capacity(buffer)
    let end = at
    const farthest = this.#farthest[buffer] ?? 0
    while (end < farthest && this.bytes[marks + end] === 1) end++
    return end
  }

  /** End of the farthest byte present. */
  farthest(buffer: number): number {
    return this.#farthest[buffer] ?? 0
  }

  /**
   * Writes bytes [from, to) of `source` at `offset`. The buffer must have the capacity. Returns the
   * number of new bytes.
   */
  put(buffer: number, offset: number, source: DataView, from: number, to: number): number {
    const contiguous = this.#contiguous[buffer] ?? 0
    const farthest = this.#farthest[buffer] ?? 0
    const end = offset + to - from
    if (end <= contiguous) return 0
    const start = this.start(buffer)
    if (farthest === contiguous && offset <= contiguous) {
      // The common case: all bytes present are in order, and these bytes continue them.
      const skip = contiguous - offset
      copyBytes(source, from + skip, to, this.view, start + contiguous)
      this.#contiguous[buffer] = end
      this.#farthest[buffer] = end
      return end - contiguous
    }
    const marks = start + this.capacity(buffer)
    const bytes = this.bytes
    let added = 0
    for (let at = Math.max(offset, contiguous); at < end; at++) {
      if (bytes[marks + at] === 1) continue
      bytes[marks + at] = 1
      bytes[start + at] = source.getUint8(from + at - offset)
      added++
    }
    const newFarthest = Math.max(farthest, end)
    let reached = contiguous
    while (reached < newFarthest && bytes[marks + reached] === 1) bytes[marks + reached++] = 0
    this.#contiguous[buffer] = reached
    this.#farthest[buffer] = newFarthest
    return added
  }

  /** Drops the first `count` bytes, which must be present, and moves the rest to the start. */
  consume(buffer: number, count: number): void {
    const start = this.start(buffer)
    const marks = start + this.capacity(buffer)
    const contiguous = this.#contiguous[buffer] ?? 0
    const farthest = this.#farthest[buffer] ?? 0
    this.bytes.copyWithin(start, start + count, start + farthest)
    if (farthest > contiguous) {
      this.bytes.copyWithin(marks + contiguous - count, marks + contiguous, marks + farthest)
      this.bytes.fill(0, marks + Math.max(farthest - count, contiguous), marks + farthest)
    }
    this.#contiguous[buffer] = contiguous - count
    this.#farthest[buffer] = farthest - count
  }

  /**
   * Copies the bytes of `from` to `to`, `shift` bytes later. `to` must be empty and have the
   * capacity.
   */
  move(from: number, to: number, shift: number): void {
    const source = this.start(from)
    const sourceMarks = source + this.capacity(from)
    const contiguous = this.#contiguous[from] ?? 0
    const farthest = this.#farthest[from] ?? 0
    if (shift === 0 && contiguous === farthest) {
      this.put(to, 0, this.view, source, source + contiguous)
      return
    }
    for (let at = 0; at < farthest; at++) {
      if (at >= contiguous && this.bytes[sourceMarks + at] !== 1) continue
      let runEnd = at + 1
      while (runEnd < farthest && (runEnd < contiguous || this.bytes[sourceMarks + runEnd] === 1)) runEnd++
      this.put(to, at + shift, this.view, source + at, source + runEnd)
      at = runEnd
    }
  }

  #unmark(buffer: number, contiguous: number, farthest: number): void {
    if (farthest === contiguous) return
    const marks = this.start(buffer) + this.capacity(buffer)
    this.bytes.fill(0, marks + contiguous, marks + farthest)
  }
}

/** Copies bytes [from, to) without creating a view, which would be garbage for each packet. */
export function copyBytes(source: DataView, from: number, to: number, target: DataView, at: number): void {
  let read = from
  let write = at
  for (const last = to - 4; read <= last; read += 4, write += 4) target.setUint32(write, source.getUint32(read))
  for (; read < to; read++, write++) target.setUint8(write, source.getUint8(read))
}
