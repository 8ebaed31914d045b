import type { BatchPool } from '../batch/batch-pool.ts'
import { COUNTER_NAMES } from '../batch/counters.ts'
import { type FrameBatch, type LaneSection, NO_FRAME } from '../batch/frame-batch.ts'
import { PACKET_CLASS_NAMES } from '../batch/packet-class.ts'
import type { Round } from '../capture/round.ts'
import { type ObservedName, readRow, rowBytes, rowFrame, rowIsRefusal } from '../decode/name-rows.ts'
import type { Position, RowConsumer } from '../decode/row-consumer.ts'

/**
 * Called in the order of the frames, never concurrently. `names` is empty if only the position
 * moved.
 */
export type OnNames = (names: readonly ObservedName[], position: Position) => void | Promise<void>

/** Creates an object for each row, for callers that read single names. */
export class NameList implements RowConsumer {
  readonly #take: OnNames
  #names: ObservedName[] = []

  constructor(take: OnNames) {
    this.#take = take
  }

  row(view: DataView, bytes: Buffer, at: number): void {
    if (!rowIsRefusal(view, at)) this.#names.push(readRow(view, bytes, at))
  }

  delivered(position: Position): void | Promise<void> {
    const names = this.#names
    this.#names = []
    return this.#take(names, position)
  }
}

/** Decodes the frames of a lane. */
export interface DecodeLane {
  /**
   * Runs the batch once. Returns true if all frames are decoded, false if the rows must be read and
   * the batch run again.
   */
  decode(batch: number): Promise<boolean>
  /** Switches to another registry. Resolves when it is in use. */
  useTrie(trie: SharedArrayBuffer): Promise<void>
  stop(): Promise<void>
}

/** Totals of decoding, updated while an observation runs. */
export class DecodeCounts {
  frames = 0
  bytes = 0
  names = 0
  matched = 0
  /** Names that were not delivered because they had been delivered before. */
  repeated = 0
  readonly classes = zeros(PACKET_CLASS_NAMES)
  readonly counters = zeros(COUNTER_NAMES)

  get unmatched(): number {
    return this.names - this.matched
  }

  add(section: LaneSection): void {
    const { frames, bytes, names, matched } = section.run
    this.frames += frames
    this.bytes += bytes
    this.names += names
    this.matched += matched
    for (const [index, name] of PACKET_CLASS_NAMES.entries()) this.classes[name] += section.classes[index] ?? 0
    for (const [index, name] of COUNTER_NAMES.entries()) this.counters[name] += section.counters[index] ?? 0
  }
}

function zeros<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>
}

/**
 * Merges the rows of all lanes into the order of the source. The lanes of a round run in parallel,
 * and each may stop when its rows area is full. A delivery contains the names of all frames before
 * the first frame that some lane has not decoded.
 */
export class Delivery {
  readonly counts = new DecodeCounts()
  readonly #pool: BatchPool
  readonly #lanes: readonly DecodeLane[]
  readonly #deliveredFrames: number
  readonly #consumer: RowConsumer

  /**
   * Names of the source's first `deliveredFrames` frames were delivered before and are not
   * delivered again.
   */
  constructor(pool: BatchPool, lanes: readonly DecodeLane[], deliveredFrames: number, consumer: RowConsumer) {
    this.#pool = pool
    this.#lanes = lanes
    this.#deliveredFrames = deliveredFrames
    this.#consumer = consumer
  }

  /** Sends the round's batch to all lanes at once. */
  decode(round: Round): LaneRows[] {
    const batch = this.#pool.batch(round.batch)
    return this.#lanes.map((lane, number) => new LaneRows(batch, batch.lane(number), lane))
  }

  /** Delivers the round that decode() sent. Resolves when all its names were taken. */
  async deliver(round: Round, lanes: readonly LaneRows[]): Promise<void> {
    for (const lane of lanes) await this.#finishRun(lane)
    let deliveredRows = 0
    for (;;) {
      const before = Math.min(round.frames, ...lanes.map((lane) => lane.nextFrame))
      const done = lanes.every((lane) => lane.state === 'done')
      deliveredRows += this.#deliverRows(round, lanes, done ? NO_FRAME : before)
      // Names emitted at the end of the source belong to its last frame, so the names of the last
      // round are delivered together.
      if (done || !round.last) {
        const framesDone = round.firstFrame + (done ? round.frames : before)
        // Frames that were delivered before must not move the position, especially not backward.
        if (framesDone > this.#deliveredFrames || deliveredRows > 0) await this.#consumer.delivered({ framesDone })
        deliveredRows = 0
      }
      if (done) break
      // The slowest lane has no rows left, so this loop always makes progress.
      const again = lanes.filter((lane) => lane.state === 'rowsFull' && lane.empty)
      for (const lane of again) lane.run()
      for (const lane of again) await this.#finishRun(lane)
    }
    this.#pool.free(this.#pool.batch(round.batch))
  }

  /**
   * Delivers the rows of the round's frames before `before`, in the order of the frames. Returns
   * their number.
   */
  #deliverRows(round: Round, lanes: readonly LaneRows[], before: number): number {
    const { view, bytes } = this.#pool.batch(round.batch)
    const consumer = this.#consumer
    const skipped = this.#deliveredFrames - round.firstFrame
    let deliveredRows = 0
    for (;;) {
      let next: LaneRows | undefined
      let frame = before
      for (const lane of lanes) {
        if (lane.rowFrame < frame) {
          next = lane
          frame = lane.rowFrame
        }
      }
      if (next === undefined) return deliveredRows
      if (frame < skipped) {
        this.counts.repeated++
      } else {
        consumer.row(view, bytes, next.rowAt)
        deliveredRows++
      }
      next.nextRow()
    }
  }

  async #finishRun(lane: LaneRows): Promise<void> {
    await lane.finished()
    this.counts.add(lane.section)
  }
}

/** The rows of one lane in a round, and how far they were read. */
export class LaneRows {
  readonly section: LaneSection
  readonly #batch: FrameBatch
  readonly #lane: DecodeLane
  state: 'running' | 'rowsFull' | 'done' = 'running'
  /**
   * Offset of the next row, and the index of its frame in the round; NO_FRAME after the last row.
   */
  rowAt = 0
  rowFrame = NO_FRAME
  #running: Promise<boolean>
  #rowsEnd = 0
  #next = 0

  constructor(batch: FrameBatch, section: LaneSection, lane: DecodeLane) {
    this.#batch = batch
    this.section = section
    this.#lane = lane
    this.#running = this.#decode()
  }

  /** Index in the round of the first frame not yet decoded; NO_FRAME after the last. */
  get nextFrame(): number {
    return this.#next
  }

  get empty(): boolean {
    return this.rowAt === this.#rowsEnd
  }

  run(): void {
    this.state = 'running'
    this.#running = this.#decode()
  }

  #decode(): Promise<boolean> {
    const running = this.#lane.decode(this.#batch.number)
    // finished() awaits the promise later. Until then a rejection must not count as unhandled.
    running.catch(() => {})
    return running
  }

  async finished(): Promise<void> {
    const done = await this.#running
    this.state = done ? 'done' : 'rowsFull'
    this.#next = done ? NO_FRAME : this.section.nextIndex
    this.rowAt = this.section.rowsStart
    this.#rowsEnd = this.rowAt + this.section.run.rowBytes
    this.#checkRow()
  }

  nextRow(): void {
    this.rowAt += rowBytes(this.#batch.view, this.rowAt)
    this.#checkRow()
  }

  #checkRow(): void {
    this.rowFrame = this.empty ? NO_FRAME : rowFrame(this.#batch.view, this.rowAt)
  }
}
