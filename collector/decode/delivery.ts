import type { BatchPool } from '../capture/batch-pool.ts'
import { type FrameBatch, type LaneSection, NO_FRAME } from '../capture/frame-batch.ts'
import type { Round } from '../capture/round.ts'
import { COUNTER_NAMES } from './counters.ts'
import type { Lane } from './lane.ts'
import { type ObservedName, readRow, rowBytes, rowFrame } from './name-rows.ts'
import { PACKET_CLASS_NAMES } from './packet-class.ts'

/** How far the delivery came. */
export interface Position {
  /**
   * Frames of the source, from its first, whose names have all been delivered; no name of a later frame has. A file can be observed
   * again from here on (deliveredFrames) without losing or repeating a name.
   */
  readonly framesDone: number
}

export type TakeNames = (names: readonly ObservedName[], position: Position) => void | Promise<void>

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
    for (const [index, name] of PACKET_CLASS_NAMES.entries()) this.classes[name] += section.classes[index] as number
    for (const [index, name] of COUNTER_NAMES.entries()) this.counters[name] += section.counters[index] as number
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
  readonly #lanes: readonly Lane[]
  readonly #deliveredFrames: number
  readonly #onNames: TakeNames

  /** Names of the source's first `deliveredFrames` frames were delivered before, and are not again. */
  constructor(pool: BatchPool, lanes: readonly Lane[], deliveredFrames: number, onNames: TakeNames) {
    this.#pool = pool
    this.#lanes = lanes
    this.#deliveredFrames = deliveredFrames
    this.#onNames = onNames
  }

  /** Sends the round's batch to all lanes at once. */
  decode(round: Round): LaneRows[] {
    const batch = this.#pool.batch(round.batch)
    return this.#lanes.map((lane, number) => new LaneRows(batch, batch.lane(number), lane))
  }

  /** Delivers the round that decode() sent off; fulfilled when all its names were taken. */
  async deliver(round: Round, lanes: readonly LaneRows[]): Promise<void> {
    for (const lane of lanes) await this.#finishRun(lane)
    const found: FrameName[] = []
    for (;;) {
      const before = Math.min(round.frames, ...lanes.map((lane) => lane.nextFrame))
      const done = lanes.every((lane) => lane.state === 'done')
      for (const lane of lanes) lane.take(done ? NO_FRAME : before, found)
      // Names that come out at the source's end belong to its last frame, so those of the last round are delivered together.
      if (done || !round.last) await this.#take(round, found, done ? round.frames : before)
      if (done) break
      // At least the lane that is furthest behind has no rows left, so this loop always goes on.
      const again = lanes.filter((lane) => lane.state === 'rowsFull' && lane.empty)
      for (const lane of again) lane.run()
      for (const lane of again) await this.#finishRun(lane)
    }
    this.#pool.free(this.#pool.batch(round.batch))
  }

  /** Hands on what was found in frames before `before` of the round. */
  async #take(round: Round, found: FrameName[], before: number): Promise<void> {
    // A frame is in one lane, and the sort is stable.
    if (this.#lanes.length > 1) found.sort((a, b) => a.frame - b.frame)
    const names: ObservedName[] = []
    for (const { frame, name } of found.splice(0)) {
      if (round.firstFrame + frame < this.#deliveredFrames) this.counts.repeated++
      else names.push(name)
    }
    const framesDone = round.firstFrame + before
    // What was delivered before moves no position, least of all backwards.
    if (framesDone > this.#deliveredFrames || names.length > 0) await this.#onNames(names, { framesDone })
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
  readonly #lane: Lane
  state: 'running' | 'rowsFull' | 'done' = 'running'
  #running: Promise<boolean>
  #rowAt = 0
  #rowsEnd = 0
  #next = 0

  constructor(batch: FrameBatch, section: LaneSection, lane: Lane) {
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
    return this.#rowAt === this.#rowsEnd
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
    this.#rowAt = this.section.rowsStart
    this.#rowsEnd = this.#rowAt + this.section.run.rowBytes
  }

  /** Appends the names of all frames before `before`, each with its frame. */
  take(before: number, into: FrameName[]): void {
    const { view, bytes } = this.#batch
    while (this.#rowAt < this.#rowsEnd) {
      const frame = rowFrame(view, this.#rowAt)
      if (frame >= before) return
      into.push({ frame, name: readRow(view, bytes, this.#rowAt) })
      this.#rowAt += rowBytes(view, this.#rowAt)
    }
  }
}

interface FrameName {
  readonly frame: number
  readonly name: ObservedName
}
