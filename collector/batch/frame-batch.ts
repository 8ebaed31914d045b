import { strict as assert } from 'node:assert'
import { COUNTER_COUNT } from './counters.ts'
import { PACKET_CLASS_COUNT } from './packet-class.ts'

/**
 * A batch of consecutive frames in shared memory, passed as a whole from thread to thread. One area
 * has the bytes of all frames, as captured. Each lane has its own section, which lists the lane's
 * frames and receives the names found in them. All numbers are u32, little-endian.
 *
 *     batch header, 32 bytes                      section of a lane, 512 bytes
 *     word  0  state: owner of the batch          word  0  frames of the lane
 *           1  sequence, from 0                         1  next frame to decode      } start of
 *           2  1 if no frame follows                    2  its index in the batch,   } the next
 *           3  the source's clock: seconds                 NO_FRAME after the last   } run
 *              since 1970                               3  bytes used of rows area   } result
 *           4  frames of all lanes                      4  frames decoded            } of the
 *           5  size of the frames area, bytes           5  their captured bytes      } last
 *           6  lanes                                    6  names seen                } run
 *           7  capacity of the frame lists              7  names matched             }
 *                                                      16  x 48  packets per class   }
 *     then the frames area, the sections,              64  x 64  the counters of     }
 *     the lanes' frame lists and rows areas                      batch/counters.ts   }
 *     (rows: decode/name-rows.ts)
 *
 * An entry of a frame list, 24 bytes:
 *
 *     word  0  offset of the captured bytes in the batch
 *           1  captured length in bytes
 *           2  time: seconds since 1970
 *           3  time: nanoseconds of the second
 *           4  index in the batch
 *           5  link type
 *
 * A batch has one owner at a time, and only the owner may access it beyond the state word:
 *
 *     FREE --> FILLING --> READY --> FREE
 *
 *     FILLING  owned by the capture thread
 *     READY    owned by the lanes, each its section; then by delivery, which reads the rows
 *
 * A lane whose rows area was full runs again after its rows were read, until all its frames are
 * decoded.
 */
export const BatchState = { free: 0, filling: 1, ready: 2 } as const
export type BatchState = (typeof BatchState)[keyof typeof BatchState]

export const NO_FRAME = 0xffff_ffff

/** Up to this size a loop is faster than set(), which needs an object for each call. */
const COPIED_BY_WORDS = 512

const HEADER_WORDS = 8
const STATE = 0
const SEQUENCE = 1
const LAST = 2
const CLOCK = 3
const FRAMES = 4
const FRAMES_AREA_BYTES = 5
const LANES = 6
const LIST_FRAMES = 7

const SECTION_WORDS = 128
const LANE_FRAMES = 0
const NEXT_FRAME = 1
const NEXT_INDEX = 2
const RUN_ROW_BYTES = 3
const RUN_FRAMES = 4
const RUN_BYTES = 5
const RUN_NAMES = 6
const RUN_MATCHED = 7
const CLASSES = 16
const COUNTERS = 64

const ENTRY_WORDS = 6
const ENTRY_OFFSET = 0
const ENTRY_CAPTURED = 1
const ENTRY_SECONDS = 2
const ENTRY_NANOSECONDS = 3
const ENTRY_INDEX = 4
const ENTRY_LINK_TYPE = 5

assert(CLASSES + PACKET_CLASS_COUNT <= COUNTERS, 'a section has a word for each class')
assert(COUNTERS + COUNTER_COUNT <= SECTION_WORDS, 'a section has a word for each counter')

export interface BatchSizes {
  /** Size of the frames area in bytes. */
  readonly frameBytes: number
  /** Size of each lane's rows area in bytes. */
  readonly rowBytes: number
  /** Capacity of a lane's frame list. */
  readonly listFrames: number
}

export function allocateBatch(lanes: number, sizes: BatchSizes): SharedArrayBuffer {
  const { frameBytes, rowBytes, listFrames } = sizes
  assert(frameBytes % 8 === 0 && rowBytes % 8 === 0 && listFrames % 8 === 0)
  const laneBytes = (SECTION_WORDS + listFrames * ENTRY_WORDS) * 4 + rowBytes
  const memory = new SharedArrayBuffer(HEADER_WORDS * 4 + frameBytes + lanes * laneBytes)
  const words = new Uint32Array(memory, 0, HEADER_WORDS)
  words[FRAMES_AREA_BYTES] = frameBytes
  words[LANES] = lanes
  words[LIST_FRAMES] = listFrames
  return memory
}

/** Makes the batch free, regardless of its owner. */
export function resetBatch(memory: SharedArrayBuffer): void {
  new Uint32Array(memory, 0, HEADER_WORDS)[STATE] = BatchState.free
}

/** A thread's view of a batch. */
export class FrameBatch {
  readonly number: number
  readonly view: DataView
  readonly bytes: Buffer
  /** Frames area: bytes [framesStart, framesEnd). */
  readonly framesStart = HEADER_WORDS * 4
  readonly framesEnd: number
  readonly lanes: readonly LaneSection[]
  readonly #words: Uint32Array
  readonly #allWords: Uint32Array

  constructor(memory: SharedArrayBuffer, number: number) {
    this.number = number
    this.#words = new Uint32Array(memory, 0, HEADER_WORDS)
    this.#allWords = new Uint32Array(memory)
    this.view = new DataView(memory)
    this.bytes = Buffer.from(memory)
    this.framesEnd = this.framesStart + this.#word(FRAMES_AREA_BYTES)
    const lanes = this.#word(LANES)
    const listFrames = this.#word(LIST_FRAMES)
    const listsStart = this.framesEnd + lanes * SECTION_WORDS * 4
    const rowsStart = listsStart + lanes * listFrames * ENTRY_WORDS * 4
    const rowBytes = (memory.byteLength - rowsStart) / lanes
    this.lanes = Array.from({ length: lanes }, (_lane, lane) => {
      const section = this.framesEnd + lane * SECTION_WORDS * 4
      const list = listsStart + lane * listFrames * ENTRY_WORDS * 4
      return new LaneSection(memory, section, list, listFrames, rowsStart + lane * rowBytes, rowBytes)
    })
  }

  #word(index: number): number {
    return this.#words[index] ?? 0
  }

  get state(): number {
    return Atomics.load(this.#words, STATE)
  }

  /** Takes the batch if it is FREE. Returns true if the caller is now its owner. */
  tryTake(): boolean {
    return Atomics.compareExchange(this.#words, STATE, BatchState.free, BatchState.filling) === BatchState.free
  }

  /** Passes the batch on. The caller must be its owner. */
  pass(from: BatchState, to: BatchState): void {
    const found = Atomics.compareExchange(this.#words, STATE, from, to)
    assert(found === from, `batch ${this.number}: found state ${found}, expected ${from}`)
  }

  beginFilling(sequence: number): void {
    this.#words[SEQUENCE] = sequence
    this.#words[LAST] = 0
    this.#words[CLOCK] = 0
    this.#words[FRAMES] = 0
    for (const lane of this.lanes) lane.beginFilling()
  }

  get sequence(): number {
    return this.#word(SEQUENCE)
  }
  /** Frames of all lanes. */
  get frames(): number {
    return this.#word(FRAMES)
  }
  /** Seconds since 1970 of the latest frame, or of the clock if the batch has no frame. */
  get clockSeconds(): number {
    return this.#word(CLOCK)
  }
  set clockSeconds(seconds: number) {
    this.#words[CLOCK] = seconds
  }
  /** No frame follows: the lanes emit the names of incomplete streams. */
  get last(): boolean {
    return this.#word(LAST) === 1
  }
  markLast(): void {
    this.#words[LAST] = 1
  }

  /** Number of frames that can still be listed, in whatever lane. */
  get freeEntries(): number {
    return this.#word(LIST_FRAMES) - this.#word(FRAMES)
  }

  lane(number: number): LaneSection {
    const lane = this.lanes[number]
    if (lane === undefined) throw new RangeError(`no lane ${number}`)
    return lane
  }

  /**
   * Copies a frame of `captured` bytes, given as bytes and as words, to `offset`. The offset must
   * be at a word boundary, and the frame must fit.
   */
  copyIn(offset: number, bytes: Uint8Array, words: Uint32Array, captured: number): void {
    if (captured > COPIED_BY_WORDS) {
      this.bytes.set(bytes.subarray(0, captured), offset)
      return
    }
    const target = this.#allWords
    const shift = offset >>> 2
    for (let word = 0, end = (captured + 3) >>> 2; word < end; word++) target[shift + word] = words[word] ?? 0
  }

  /** Lists a frame in the frames area for a lane. The list must not be full. */
  list(lane: number, offset: number, captured: number, seconds: number, nanoseconds: number, linkType: number): void {
    const index = this.#word(FRAMES)
    this.lane(lane).list(offset, captured, seconds, nanoseconds, index, linkType)
    this.#words[FRAMES] = index + 1
    this.#words[CLOCK] = seconds
  }

  /** Lists the frame that was listed last for all other lanes. */
  listCopies(lane: number, offset: number, captured: number, seconds: number, linkType: number): void {
    const index = this.#word(FRAMES) - 1
    for (const [other, section] of this.lanes.entries()) {
      if (other !== lane) section.list(offset, captured, seconds, 0, index, linkType + ANSWER_COPY)
    }
  }
}

/**
 * Added to the link type of a frame that is listed for another lane than its own, too: a DNS
 * answer, which is only remembered there. Link types are smaller (LINKTYPE has 16 bits, a pcap
 * header 28).
 */
export const ANSWER_COPY = 0x8000_0000

/** The section of one lane in a batch. */
export class LaneSection {
  readonly rowsStart: number
  readonly rowsEnd: number
  /** Packets of each class in the last run. */
  readonly classes: Uint32Array
  /** Values of the counters in batch/counters.ts in the last run. */
  readonly counters: Uint32Array
  readonly #words: Uint32Array
  readonly #entries: Uint32Array

  constructor(
    memory: SharedArrayBuffer,
    section: number,
    list: number,
    listFrames: number,
    rowsStart: number,
    rowBytes: number,
  ) {
    this.#words = new Uint32Array(memory, section, SECTION_WORDS)
    this.#entries = new Uint32Array(memory, list, listFrames * ENTRY_WORDS)
    this.classes = new Uint32Array(memory, section + CLASSES * 4, PACKET_CLASS_COUNT)
    this.counters = new Uint32Array(memory, section + COUNTERS * 4, COUNTER_COUNT)
    this.rowsStart = rowsStart
    this.rowsEnd = rowsStart + rowBytes
  }

  #word(index: number): number {
    return this.#words[index] ?? 0
  }

  beginFilling(): void {
    this.#words.fill(0)
  }

  get frames(): number {
    return this.#word(LANE_FRAMES)
  }
  get nextFrame(): number {
    return this.#word(NEXT_FRAME)
  }
  /** Index in the batch of the next frame to decode; NO_FRAME after the last. */
  get nextIndex(): number {
    return this.#word(NEXT_INDEX)
  }

  list(offset: number, captured: number, seconds: number, nanoseconds: number, index: number, linkType: number): void {
    const frame = this.#word(LANE_FRAMES)
    const entries = this.#entries
    const at = frame * ENTRY_WORDS
    entries[at + ENTRY_OFFSET] = offset
    entries[at + ENTRY_CAPTURED] = captured
    entries[at + ENTRY_SECONDS] = seconds
    entries[at + ENTRY_NANOSECONDS] = nanoseconds
    entries[at + ENTRY_INDEX] = index
    entries[at + ENTRY_LINK_TYPE] = linkType
    this.#words[LANE_FRAMES] = frame + 1
  }

  frameOffset(frame: number): number {
    return this.#entries[frame * ENTRY_WORDS + ENTRY_OFFSET] ?? 0
  }
  frameCaptured(frame: number): number {
    return this.#entries[frame * ENTRY_WORDS + ENTRY_CAPTURED] ?? 0
  }
  frameSeconds(frame: number): number {
    return this.#entries[frame * ENTRY_WORDS + ENTRY_SECONDS] ?? 0
  }
  frameNanoseconds(frame: number): number {
    return this.#entries[frame * ENTRY_WORDS + ENTRY_NANOSECONDS] ?? 0
  }
  frameIndex(frame: number): number {
    return this.#entries[frame * ENTRY_WORDS + ENTRY_INDEX] ?? 0
  }
  frameLinkType(frame: number): number {
    return this.#entries[frame * ENTRY_WORDS + ENTRY_LINK_TYPE] ?? 0
  }

  /** Clears the result of the last run. */
  beginRun(): void {
    this.#words.fill(0, RUN_ROW_BYTES)
  }

  endRun(nextFrame: number, nextIndex: number, run: RunCounts): void {
    const words = this.#words
    words[NEXT_FRAME] = nextFrame
    words[NEXT_INDEX] = nextIndex
    words[RUN_ROW_BYTES] = run.rowBytes
    words[RUN_FRAMES] = run.frames
    words[RUN_BYTES] = run.bytes
    words[RUN_NAMES] = run.names
    words[RUN_MATCHED] = run.matched
  }

  get run(): RunCounts {
    return {
      rowBytes: this.#word(RUN_ROW_BYTES),
      frames: this.#word(RUN_FRAMES),
      bytes: this.#word(RUN_BYTES),
      names: this.#word(RUN_NAMES),
      matched: this.#word(RUN_MATCHED),
    }
  }
}

/** The result of one run over a section or a part of it. */
export interface RunCounts {
  readonly rowBytes: number
  readonly frames: number
  readonly bytes: number
  readonly names: number
  readonly matched: number
}
