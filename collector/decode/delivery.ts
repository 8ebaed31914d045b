import type { BatchPool } from '../capture/batch-pool.ts'
import { type FrameBatch, NO_FRAME } from '../capture/frame-batch.ts'
import type { Round } from '../capture/round.ts'
import type { Lane } from './lane.ts'
import { type ObservedName, readRow, rowBytes, rowFrame } from './name-rows.ts'
import { PACKET_CLASS_NAMES, type PacketClassName } from './packet-class.ts'

/**
 * From rows back to the order of the source. The lanes of a round work side by side, and each may stop where its rows area is full; what
 * is delivered at once are the names of all frames before the first that some lane has not decoded yet.
 */
export class Delivery {
  readonly #pool: BatchPool
  readonly #lanes: readonly Lane[]
  readonly #onNames: (names: readonly ObservedName[], position: { framesDone: number }) => void | Promise<void>
  readonly #classes = Object.fromEntries(PACKET_CLASS_NAMES.map((name) => [name, 0])) as Record<PacketClassName, number>
  #frames = 0
  #bytes = 0
  #names = 0
  #matched = 0

  constructor(
    pool: BatchPool,
    lanes: readonly Lane[],
    onNames: (names: readonly ObservedName[], position: { framesDone: number }) => void | Promise<void>,
  ) {
    this.#pool = pool
    this.#lanes = lanes
    this.#onNames = onNames
  }

  /** A live view: every reading is of the moment. */
  get counts() {
    const read = {
      frames: () => this.#frames,
      bytes: () => this.#bytes,
      names: () => this.#names,
      matched: () => this.#matched,
      unmatched: () => this.#names - this.#matched,
      dropped: () => this.#pool.dropped,
    }
    const classes = this.#classes
    return {
      classes,
      get frames() {
        return read.frames()
      },
      get bytes() {
        return read.bytes()
      },
      get names() {
        return read.names()
      },
      get matched() {
        return read.matched()
      },
      get unmatched() {
        return read.unmatched()
      },
      get dropped() {
        return read.dropped()
      },
    }
  }

  /** Sends each batch of the round to its lane. */
  decode(round: Round): LaneRows[] {
    const rows: LaneRows[] = []
    for (const [lane, number] of round.batches.entries()) {
      if (number < 0) continue
      rows.push(new LaneRows(this.#pool.batch(number), this.#lanes[lane] as Lane))
    }
    return rows
  }

  /** Delivers the round whose batches decode() sent off; fulfilled when all its names were taken. */
  async deliver(round: Round, lanes: readonly LaneRows[]): Promise<void> {
    for (const lane of lanes) await this.#finishRun(lane)
    for (;;) {
      const before = Math.min(round.frames, ...lanes.map((lane) => lane.nextFrame))
      const names = takeNames(lanes, before)
      await this.#onNames(names, { framesDone: round.firstFrame + before })
      for (const lane of lanes) if (lane.state === 'done' && lane.empty) this.#free(lane)
      if (before === round.frames) return
      // At least the lane that is furthest behind has no rows left, so this loop always goes on.
      const again = lanes.filter((lane) => lane.state === 'rowsFull' && lane.empty)
      for (const lane of again) lane.run()
      for (const lane of again) await this.#finishRun(lane)
    }
  }

  async #finishRun(lane: LaneRows): Promise<void> {
    await lane.finished()
    const { frames, bytes, names, matched } = lane.batch.run
    this.#frames += frames
    this.#bytes += bytes
    this.#names += names
    this.#matched += matched
    for (const [index, name] of PACKET_CLASS_NAMES.entries()) this.#classes[name] += lane.batch.classes[index] as number
  }

  #free(lane: LaneRows): void {
    lane.state = 'freed'
    this.#pool.free(lane.batch)
  }
}

/** The batch that one lane has of a round, and how far its rows were read. */
class LaneRows {
  readonly batch: FrameBatch
  readonly #lane: Lane
  state: 'running' | 'rowsFull' | 'done' | 'freed' = 'running'
  #running: Promise<boolean>
  #rowAt = 0
  #rowsEnd = 0
  #next = 0

  constructor(batch: FrameBatch, lane: Lane) {
    this.batch = batch
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
    const running = this.#lane.decode(this.batch.number)
    // Awaited in its turn; until then a failure must not count as unhandled.
    running.catch(() => {})
    return running
  }

  async finished(): Promise<void> {
    const done = await this.#running
    this.state = done ? 'done' : 'rowsFull'
    this.#next = done ? NO_FRAME : this.batch.nextIndex
    this.#rowAt = this.batch.rowsStart
    this.#rowsEnd = this.#rowAt + this.batch.run.rowBytes
  }

  /** Appends the names of all frames before `before`, each with its frame. */
  take(before: number, into: FrameName[]): void {
    const view = this.batch.view
    while (this.#rowAt < this.#rowsEnd) {
      const frame = rowFrame(view, this.#rowAt)
      if (frame >= before) return
      into.push({ frame, name: readRow(view, this.batch.bytes, this.#rowAt) })
      this.#rowAt += rowBytes(view, this.#rowAt)
    }
  }
}

interface FrameName {
  readonly frame: number
  readonly name: ObservedName
}

/** The names of all frames before `before`, in the order of the frames. A frame is in one lane, and the sort is stable. */
function takeNames(lanes: readonly LaneRows[], before: number): ObservedName[] {
  const found: FrameName[] = []
  for (const lane of lanes) lane.take(before, found)
  if (lanes.length > 1) found.sort((a, b) => a.frame - b.frame)
  return found.map(({ name }) => name)
}
