import type { BatchPool } from '../batch/batch-pool.ts'
import { COUNTER_NAMES } from '../batch/counters.ts'
import { type FrameBatch, type LaneSection, NO_FRAME } from '../batch/frame-batch.ts'
import { PACKET_CLASS_NAMES } from '../batch/packet-class.ts'
import type { Round } from '../capture/round.ts'
import { type ObservedName, readRow, rowBytes, rowFrame } from '../decode/name-rows.ts'
import type { Position, RowTaker } from '../decode/row-taker.ts'

/** Called once at a time, in the order of the frames; perhaps without names, when only the position moved. */
export type TakeNames = (names: readonly ObservedName[], position: Position) => void | Promise<void>

/** Makes an object of each row, for those who look at each name. */
export class NameList implements RowTaker {
  readonly #take: TakeNames
  #names: ObservedName[] = []

  constructor(take: TakeNames) {
    this.#take = take
  }

  row(view: DataView, bytes: Buffer, at: number): void {
    this.#names.push(readRow(view, bytes, at))
  }

  delivered(position: Position): void | Promise<void> {
    const names = this.#names
    this.#names = []
    return this.#take(names, position)
  }
}

/** Decodes the frames of a lane. */
export interface DecodeLane {
  /** Runs the batch once. True when it is done; false when its rows have to be read and it has to be run again. */
  decode(batch: number): Promise<boolean>
  /** Matches by another registry from now on; fulfilled when it does. */
  useTrie(trie: SharedArrayBuffer): Promise<void>
  stop(): Promise<void>
}

/** What was decoded so far: counts up while an observation runs. */
export class DecodeCounts {
  frames = 0
  bytes = 0
  names = 0
  matched = 0
  /** Names that were not delivered, because they had been before. */
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
 * From rows back to the order of the source. The lanes of a round work side by side, and each may stop where its rows area is full; what
 * is delivered at once are the names of all frames before the first that some lane has not decoded yet.
 */
export class Delivery {
  readonly counts = new DecodeCounts()
  readonly #pool: BatchPool
  readonly #lanes: readonly DecodeLane[]
  readonly #deliveredFrames: number
  readonly #taker: RowTaker

  /** Names of the source's first `deliveredFrames` frames were delivered before, and are not again. */
  constructor(pool: BatchPool, lanes: readonly DecodeLane[], deliveredFrames: number, taker: RowTaker) {
    this.#pool = pool
    this.#lanes = lanes
    this.#deliveredFrames = deliveredFrames
    this.#taker = taker
  }

  /** Sends the round's batch to all lanes at once. */
  decode(round: Round): LaneRows[] {
    const batch = this.#pool.batch(round.batch)
    return this.#lanes.map((lane, number) => new LaneRows(batch, batch.lane(number), lane))
  }

  /** Delivers the round that decode() sent off; fulfilled when all its names were taken. */
  async deliver(round: Round, lanes: readonly LaneRows[]): Promise<void> {
    for (const lane of lanes) await this.#finishRun(lane)
    let given = 0
    for (;;) {
      const before = Math.min(round.frames, ...lanes.map((lane) => lane.nextFrame))
      const done = lanes.every((lane) => lane.state === 'done')
      given += this.#give(round, lanes, done ? NO_FRAME : before)
      // Names that come out at the source's end belong to its last frame, so those of the last round are delivered together.
      if (done || !round.last) {
        const framesDone = round.firstFrame + (done ? round.frames : before)
        // What was delivered before moves no position, least of all backwards.
        if (framesDone > this.#deliveredFrames || given > 0) await this.#taker.delivered({ framesDone })
        given = 0
      }
      if (done) break
      // At least the lane that is furthest behind has no rows left, so this loop always goes on.
      const again = lanes.filter((lane) => lane.state === 'rowsFull' && lane.empty)
      for (const lane of again) lane.run()
      for (const lane of again) await this.#finishRun(lane)
    }
    this.#pool.free(this.#pool.batch(round.batch))
  }

  /** Gives the rows of all frames before `before` of the round in the order of the frames; answers how many. */
  #give(round: Round, lanes: readonly LaneRows[], before: number): number {
    const { view, bytes } = this.#pool.batch(round.batch)
    const taker = this.#taker
    const skipped = this.#deliveredFrames - round.firstFrame
    let given = 0
    for (;;) {
      let next: LaneRows | undefined
      let frame = before
      for (const lane of lanes) {
        if (lane.rowFrame < frame) {
          next = lane
          frame = lane.rowFrame
        }
      }
      if (next === undefined) return given
      if (frame < skipped) {
        this.counts.repeated++
      } else {
        taker.row(view, bytes, next.rowAt)
        given++
      }
      next.nextRow()
    }
  }

  async #finishRun(lane: LaneRows): Promise<void> {
    await lane.finished()
    this.counts.add(lane.section)
  }
}

/** What one lane has of a round, and how far its rows were read. */
export class LaneRows {
  readonly section: LaneSection
  readonly #batch: FrameBatch
  readonly #lane: DecodeLane
  state: 'running' | 'rowsFull' | 'done' = 'running'
  /** Where the next row stands, and the index in the round of its frame; NO_FRAME when all rows were read. */
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

  /** Index in the round of the first frame that is not decoded yet; NO_FRAME when all are. */
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
    // Awaited in its turn; until then a failure must not count as unhandled.
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
