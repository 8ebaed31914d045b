import assert from 'node:assert/strict'

/*
 * A ring buffer in shared memory from the socket thread to a lane, with one writer and one reader.
 * Numbers are i32 in the machine's byte order.
 *
 *   0    head             write offset, in bytes from the start of the records
 *   4    tail             read offset; the ring is empty if it equals head
 *   8    sleeping         1 while the reader waits for a wake-up message
 *   12   space requested  1 while the writer waits for space
 *   64   records          kind, connection, length, 4 unused bytes, then the data,
 *                         padded to a multiple of 8. Kind WRAP: continue at the start.
 */
const HEAD = 0
const TAIL = 1
const SLEEPING = 2
const SPACE_REQUESTED = 3
const HEADER_BYTES = 64
const RECORD_HEADER_BYTES = 16
const WRAP = -1
/** Longer chunks are written in pieces. */
export const RING_CHUNK_BYTES_MAX = 64 * 1024

/** The kinds of records. thread-lane.ts writes them, lane-worker.ts reads them. */
export const RecordKind = { open: 1, data: 2, end: 3, close: 4 } as const
export type RecordKind = (typeof RecordKind)[keyof typeof RecordKind]

export function makeByteRing(recordBytes: number): SharedArrayBuffer {
  assert(recordBytes % 8 === 0 && recordBytes >= 4 * RING_CHUNK_BYTES_MAX)
  return new SharedArrayBuffer(HEADER_BYTES + recordBytes)
}

export class ByteRing {
  readonly #state: Int32Array
  readonly #words: Int32Array
  readonly #bytes: Uint8Array
  readonly #size: number

  constructor(memory: SharedArrayBuffer) {
    this.#state = new Int32Array(memory, 0, HEADER_BYTES / 4)
    this.#words = new Int32Array(memory, HEADER_BYTES)
    this.#bytes = new Uint8Array(memory, HEADER_BYTES)
    this.#size = memory.byteLength - HEADER_BYTES
  }

  /** Writes a record of at most RING_CHUNK_BYTES_MAX bytes. Returns false if there is no space. */
  write(kind: RecordKind, connection: number, chunk: Uint8Array): boolean {
    const needed = RECORD_HEADER_BYTES + ((chunk.length + 7) & ~7)
    const head = this.#state[HEAD] ?? 0
    const tail = Atomics.load(this.#state, TAIL)
    let at = head
    if (head >= tail) {
      // One byte stays free, so that a full ring differs from an empty one.
      const isLast = head + needed > this.#size
      if (isLast && needed >= tail) return false
      if (head + needed === this.#size && tail === 0) return false
      if (isLast) {
        if (head < this.#size) this.#words[head >> 2] = WRAP
        at = 0
      }
    } else if (head + needed >= tail) return false
    const word = at >> 2
    this.#words[word] = kind
    this.#words[word + 1] = connection
    this.#words[word + 2] = chunk.length
    this.#bytes.set(chunk, at + RECORD_HEADER_BYTES)
    const next = at + needed
    Atomics.store(this.#state, HEAD, next === this.#size ? 0 : next)
    return true
  }

  /** Whether the reader is sleeping. Clears the flag, so that only one caller wakes the reader. */
  takeSleeping(): boolean {
    return Atomics.exchange(this.#state, SLEEPING, 0) === 1
  }

  /** Flags that the writer waits for space. */
  requestSpace(): void {
    Atomics.store(this.#state, SPACE_REQUESTED, 1)
  }

  /** Whether the writer waits for space. Clears the flag. */
  takeSpaceRequest(): boolean {
    return Atomics.exchange(this.#state, SPACE_REQUESTED, 0) === 1
  }

  /**
   * Reads about `bytesMax` bytes of records. `take` gets the ring's own bytes, which are valid only
   * during the call. Returns whether records remain.
   */
  read(bytesMax: number, take: (kind: RecordKind, connection: number, chunk: Uint8Array) => void): boolean {
    let tail = this.#state[TAIL] ?? 0
    const head = Atomics.load(this.#state, HEAD)
    let read = 0
    while (tail !== head && read < bytesMax) {
      const word = tail >> 2
      const kind = this.#words[word] ?? WRAP
      if (kind === WRAP) {
        tail = 0
        continue
      }
      const length = this.#words[word + 2] ?? 0
      const start = tail + RECORD_HEADER_BYTES
      take(kind as RecordKind, this.#words[word + 1] ?? 0, this.#bytes.subarray(start, start + length))
      const next = start + ((length + 7) & ~7)
      tail = next === this.#size ? 0 : next
      read += next - start + RECORD_HEADER_BYTES
      Atomics.store(this.#state, TAIL, tail)
    }
    return tail !== head
  }

  /**
   * Flags that the reader sleeps. Returns false if a record arrived in the meantime: the reader
   * must then continue.
   */
  sleep(): boolean {
    Atomics.store(this.#state, SLEEPING, 1)
    if (Atomics.load(this.#state, HEAD) === (this.#state[TAIL] ?? 0)) return true
    Atomics.store(this.#state, SLEEPING, 0)
    return false
  }
}
