import { strict as assert } from 'node:assert'
import { PACKET_CLASS_COUNT } from '../decode/packet-class.ts'

/**
 * A batch of frames in shared memory, handed from thread to thread whole. All numbers little-endian.
 *
 *     byte    0  u32  state: whose the batch is
 *             4  u32  sequence in its lane, from 0: a lane decodes its batches in this order
 *             8  u32  frames in the batch
 *            12  u32  bytes used of the frames area
 *            16  u32  link type of all frames
 *            20  u32  size of the frames area in bytes
 *            24  u32  next frame to decode                        \  where the next
 *            28  u32  its offset in the frames area               /  run goes on
 *            32  u32  index in the round of the next frame to decode, or NO_FRAME behind the last
 *            36  u32  rows                                        \
 *            40  u32  bytes used of the rows area                  |
 *            44  u32  frames decoded                               |  of the
 *            48  u32  their captured bytes                         |  last run
 *            52  u32  names seen                                   |
 *            56  u32  names matched                                |
 *            64  u32  x 32  packets of each class                 /
 *           192       frames area, then the rows area (decode/name-rows.ts draws a row)
 *
 * A frame, aligned to 8 bytes:
 *
 *     byte    0  u32  captured length in bytes
 *             4  u32  original length in bytes
 *             8  u32  time: seconds since 1970
 *            12  u32  time: nanoseconds of the second
 *            16  u32  index in the round (capture/round.ts)
 *            20  u32  flow hash (capture/flow-hash.ts)
 *            24       the captured bytes
 *
 * One owner at a time, who alone may read and write behind the state word:
 *
 *     FREE ----> FILLING ----> READY ----> DECODING ----> FREE
 *          capture thread            worker of the lane      delivery, when the rows were read
 *
 * A batch whose rows area was full stays DECODING and goes from delivery to worker and back until all its frames were decoded.
 */
export const BatchState = { free: 0, filling: 1, ready: 2, decoding: 3 } as const
export type BatchState = (typeof BatchState)[keyof typeof BatchState]

export const BATCH_HEADER_BYTES = 192
export const NO_FRAME = 0xffff_ffff
export const FRAME_HEADER_BYTES = 24
export const FRAME_CAPTURED = 0
export const FRAME_ORIGINAL = 4
export const FRAME_SECONDS = 8
export const FRAME_NANOSECONDS = 12
export const FRAME_INDEX = 16
export const FRAME_FLOW = 20

const STATE = 0
const SEQUENCE = 1
const FRAMES = 2
const FRAME_BYTES = 3
const LINK_TYPE = 4
const FRAMES_AREA_BYTES = 5
const NEXT_FRAME = 6
const NEXT_OFFSET = 7
const NEXT_INDEX = 8
const ROWS = 9
const ROW_BYTES = 10
const RUN_FRAMES = 11
const RUN_BYTES = 12
const RUN_NAMES = 13
const RUN_MATCHED = 14
const CLASSES = 16

assert(CLASSES + PACKET_CLASS_COUNT <= BATCH_HEADER_BYTES / 4, 'the header has a word for each class')

/** Bytes that a frame takes of the frames area. */
export function frameSpace(capturedBytes: number): number {
  return (FRAME_HEADER_BYTES + capturedBytes + 7) & ~7
}

export function allocateBatch(framesAreaBytes: number, rowsAreaBytes: number): SharedArrayBuffer {
  assert(framesAreaBytes % 8 === 0 && rowsAreaBytes % 8 === 0)
  const memory = new SharedArrayBuffer(BATCH_HEADER_BYTES + framesAreaBytes + rowsAreaBytes)
  new Uint32Array(memory)[FRAMES_AREA_BYTES] = framesAreaBytes
  return memory
}

/** A thread's hold on a batch. */
export class FrameBatch {
  readonly number: number
  readonly words: Uint32Array
  readonly view: DataView
  readonly bytes: Buffer
  readonly framesStart = BATCH_HEADER_BYTES
  readonly framesAreaBytes: number
  readonly rowsStart: number
  readonly rowsEnd: number
  /** The batch's own 32 words of class counts. */
  readonly classes: Uint32Array

  constructor(memory: SharedArrayBuffer, number: number) {
    this.number = number
    this.words = new Uint32Array(memory, 0, BATCH_HEADER_BYTES / 4)
    this.view = new DataView(memory)
    this.bytes = Buffer.from(memory)
    this.framesAreaBytes = this.word(FRAMES_AREA_BYTES)
    this.rowsStart = this.framesStart + this.framesAreaBytes
    this.rowsEnd = memory.byteLength
    this.classes = new Uint32Array(memory, CLASSES * 4, PACKET_CLASS_COUNT)
  }

  private word(index: number): number {
    return this.words[index] as number
  }

  get state(): number {
    return Atomics.load(this.words, STATE)
  }

  /** True when the batch was FREE and is now the caller's. */
  tryTake(): boolean {
    return Atomics.compareExchange(this.words, STATE, BatchState.free, BatchState.filling) === BatchState.free
  }

  /** Hands the batch on; the caller must have been its owner. */
  pass(from: BatchState, to: BatchState): void {
    const found = Atomics.compareExchange(this.words, STATE, from, to)
    assert(found === from, `batch ${this.number}: found state ${found}, expected ${from}`)
  }

  beginFilling(sequence: number, linkType: number): void {
    const words = this.words
    words[SEQUENCE] = sequence
    words[LINK_TYPE] = linkType
    words[FRAMES] = 0
    words[FRAME_BYTES] = 0
    words[NEXT_FRAME] = 0
    words[NEXT_OFFSET] = 0
    words[NEXT_INDEX] = NO_FRAME
    this.beginRun()
  }

  get sequence(): number {
    return this.word(SEQUENCE)
  }
  get linkType(): number {
    return this.word(LINK_TYPE)
  }
  get frames(): number {
    return this.word(FRAMES)
  }

  fits(capturedBytes: number): boolean {
    return this.word(FRAME_BYTES) + frameSpace(capturedBytes) <= this.framesAreaBytes
  }

  /** Copies a frame in; fits() was asked before. */
  put(
    source: Uint8Array,
    from: number,
    captured: number,
    original: number,
    seconds: number,
    nanoseconds: number,
    index: number,
    flow: number,
  ): void {
    const words = this.words
    const view = this.view
    const used = this.word(FRAME_BYTES)
    const at = this.framesStart + used
    view.setUint32(at + FRAME_CAPTURED, captured, true)
    view.setUint32(at + FRAME_ORIGINAL, original, true)
    view.setUint32(at + FRAME_SECONDS, seconds, true)
    view.setUint32(at + FRAME_NANOSECONDS, nanoseconds, true)
    view.setUint32(at + FRAME_INDEX, index, true)
    view.setUint32(at + FRAME_FLOW, flow, true)
    this.bytes.set(source.subarray(from, from + captured), at + FRAME_HEADER_BYTES)
    words[FRAME_BYTES] = used + frameSpace(captured)
    words[FRAMES] = this.word(FRAMES) + 1
  }

  get nextFrame(): number {
    return this.word(NEXT_FRAME)
  }
  get nextOffset(): number {
    return this.word(NEXT_OFFSET)
  }
  /** Index in the round of the next frame to decode; NO_FRAME when all were. */
  get nextIndex(): number {
    return this.word(NEXT_INDEX)
  }

  /** Empties what the last run left. */
  beginRun(): void {
    this.words.fill(0, ROWS, CLASSES + PACKET_CLASS_COUNT)
  }

  endRun(next: { frame: number; offset: number; index: number }, run: RunCounts): void {
    const words = this.words
    words[NEXT_FRAME] = next.frame
    words[NEXT_OFFSET] = next.offset
    words[NEXT_INDEX] = next.index
    words[ROWS] = run.rows
    words[ROW_BYTES] = run.rowBytes
    words[RUN_FRAMES] = run.frames
    words[RUN_BYTES] = run.bytes
    words[RUN_NAMES] = run.names
    words[RUN_MATCHED] = run.matched
  }

  get run(): RunCounts {
    return {
      rows: this.word(ROWS),
      rowBytes: this.word(ROW_BYTES),
      frames: this.word(RUN_FRAMES),
      bytes: this.word(RUN_BYTES),
      names: this.word(RUN_NAMES),
      matched: this.word(RUN_MATCHED),
    }
  }
}

/** What one run over a batch, or over a part of it, came to. */
export interface RunCounts {
  readonly rows: number
  readonly rowBytes: number
  readonly frames: number
  readonly bytes: number
  readonly names: number
  readonly matched: number
}
