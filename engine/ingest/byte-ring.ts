import assert from 'node:assert/strict'

/*
 * Bytes on their way from the thread of the sockets to a lane: a ring in shared memory with one writer and one reader. Numbers are i32 in the
 * machine's byte order.
 *
 *   0    head      where the writer goes on, in bytes from the start of the records
 *   4    tail      where the reader goes on; equal to head: nothing is there
 *   8    asleep    1 while the reader waits to be called
 *   12   wanted    1 while the writer waits for room
 *   64   records   kind, connection, length, and 4 bytes of nothing, then the bytes, padded to a multiple of 8; a kind of WRAP: go on at the start
 */
const HEAD = 0
const TAIL = 1
const ASLEEP = 2
const WANTED = 3
const HEADER_BYTES = 64
const RECORD_HEADER_BYTES = 16
const WRAP = -1
/** A longer chunk is written in pieces. */
export const RING_CHUNK_BYTES_MAX = 64 * 1024

/** What a record is: the words of RecordKind are the sender's; see thread-lane.ts and lane-thread.ts. */
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

  /** Writes a record of at most RING_CHUNK_BYTES_MAX bytes. Answers false where there is no room. */
  write(kind: RecordKind, connection: number, chunk: Uint8Array): boolean {
    const needed = RECORD_HEADER_BYTES + ((chunk.length + 7) & ~7)
    const head = this.#state[HEAD] ?? 0
    const tail = Atomics.load(this.#state, TAIL)
    let at = head
    if (head >= tail) {
      // A byte stays free, so that a full ring does not look empty.
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

  /** Whether the reader waits to be called; it is told so once. */
  takeAsleep(): boolean {
    return Atomics.exchange(this.#state, ASLEEP, 0) === 1
  }

  /** Says that the writer waits for room. */
  requestSpace(): void {
    Atomics.store(this.#state, WANTED, 1)
  }

  /** Whether the writer waits for room; it is told so once. */
  takeSpaceRequest(): boolean {
    return Atomics.exchange(this.#state, WANTED, 0) === 1
  }

  /** Reads up to `bytesMax` bytes of records. The bytes that `take` gets are the ring's own, for as long as it runs. Answers whether more are there. */
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

  /** Says that the reader waits to be called. Answers false if something came meanwhile: then it must read on. */
  sleep(): boolean {
    Atomics.store(this.#state, ASLEEP, 1)
    if (Atomics.load(this.#state, HEAD) === (this.#state[TAIL] ?? 0)) return true
    Atomics.store(this.#state, ASLEEP, 0)
    return false
  }
}
