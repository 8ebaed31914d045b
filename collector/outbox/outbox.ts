import { type Event, eventId } from '../../engine/event/event.ts'
import { Environment } from '../../engine/lmdb/environment.ts'
import { DamagedChunk, DurableQueue, type QueueEntry, type QueueTable } from '../../engine/lmdb/queue.ts'
import { isFault } from '../../engine/process/error-codes.ts'
import { faultPoint } from '../../engine/process/fault-point.ts'
import { OUTBOX_AGE_MS, OUTBOX_BYTES, OUTBOX_FREE_BYTES_MIN, OUTBOX_SHRINK_BYTES_MIN, SOURCES_MAX } from '../limits.ts'
import { AgeClock } from './age-clock.ts'
import { Instances } from './instances.ts'
import { MemoryStore } from './memory-store.ts'
import { OUTBOX_IN_MEMORY, type OutboxLimits } from './outbox-limits.ts'
import type { OutboxStore } from './outbox-store.ts'
import { type NewEvent, packWaiting, unpackWaiting } from './waiting-event.ts'

/*
 * The events that were matched and are not yet acknowledged by the service, in LMDB.
 *
 *   table   key                      value
 *   state   instance                 see instances.ts
 *   state   clock                    see age-clock.ts
 *   state   position + source name   frames of that capture file whose events are in the queue, u64 big-endian; when it was read last, u64
 *   state   sent + way               through which sequence that way has sent, where another decides what leaves, u64 big-endian
 *   queue   see lmdb/queue.ts        events, see waiting-event.ts
 *
 * An event's id is its instance and its sequence in the queue, so it is the same however often it is sent. Events and the
 * position of their source are written in one transaction: after a crash a file is read on from where the outbox knows it.
 */
export const OUTBOX_SCHEMA_VERSION = 1
export const OUTBOX_INSTANCE_KEY = Buffer.from('instance')
const CLOCK_KEY = Buffer.from('clock')
const POSITION_PREFIX = 'position '
const SENT_PREFIX = 'sent '

/** An event that is in the outbox and counts more now. */
export interface ChangedEvent {
  readonly sequence: number
  readonly event: NewEvent
}

/** What is written in one transaction. */
export interface OutboxChanges {
  readonly added: readonly NewEvent[]
  /** By ascending sequence. */
  readonly changed?: readonly ChangedEvent[]
  readonly position?: SourcePosition
}

/** How far a capture file was read: what identifies its bytes, and how many frames. */
export interface SourcePosition {
  readonly source: string
  readonly framesDone: number
}

export interface WaitingEvents {
  readonly events: readonly Event[]
  /** Acknowledge through this one when all of them are with the service. */
  readonly lastSequence: number
}

export class Outbox {
  readonly #store: OutboxStore
  readonly #state: QueueTable
  readonly #queue: DurableQueue
  #instances: Instances
  /** Whether this run has an instance of its own. */
  #started = false
  readonly #limits: OutboxLimits
  #waiting: number
  readonly #clock: AgeClock
  #heldFrom = Number.POSITIVE_INFINITY
  /** Handed out through this one; what becomes of them is not known yet. */
  #inFlightThrough = 0
  /** Of those that are handed out, those that left by the limits meanwhile. */
  readonly #droppedInFlight = { full: 0, tooOld: 0 }
  /** Events that left at the front by the limits, and were with nobody then. */
  readonly dropped = { full: 0, tooOld: 0, damaged: 0 }

  /** @throws Fault STORE_UNWRITABLE, STORE_VERSION, STORE_DAMAGED, STORE_FULL. */
  constructor(directory: string, limits: OutboxLimits = { bytesMax: OUTBOX_BYTES, ageMsMax: OUTBOX_AGE_MS }) {
    this.#store = directory === OUTBOX_IN_MEMORY ? new MemoryStore() : environmentIn(directory)
    this.#limits = limits
    this.#state = this.#store.table('state')
    this.#queue = new DurableQueue(this.#store.table('queue'), Buffer.alloc(0))
    this.#instances = Instances.of(this.#state.get(OUTBOX_INSTANCE_KEY))
    this.#clock = new AgeClock(this.#state.get(CLOCK_KEY))
    this.#waiting = this.#queue.length
  }

  /** Events that wait. */
  get waiting(): number {
    return this.#waiting + this.#droppedInFlight.full + this.#droppedInFlight.tooOld
  }

  /** What they take, in bytes. */
  get footprintBytes(): number {
    return this.#queue.footprintBytes
  }

  /**
   * Appends events, writes others anew, and how far their source is read, in one transaction; on disk when it returns. Answers the sequence
   * of the first that was added.
   *
   * @throws Fault STORE_FULL; nothing is written then, and the caller keeps the events.
   */
  write({ added, changed = [], position }: OutboxChanges): number {
    let first = 0
    let left = NOTHING_LEFT
    if (!this.#started) this.#start()
    this.#pollClock()
    this.#store.write(() => {
      first = this.#queue.append(packWaiting(added))
      this.#queue.replace(
        changed.map(({ sequence }) => sequence),
        packWaiting(changed.map(({ event }) => event)),
      )
      if (position !== undefined) this.#putPosition(position)
      left = this.#dropOldest()
    })
    this.#note(left)
    faultPoint('outbox:appended')
    return first
  }

  /** Lets go what is too old; later where the disk has not even space for that. */
  dropExpired(): void {
    this.#pollClock()
    const { oldestChunk } = this.#queue
    if (oldestChunk === undefined || !this.#expired(oldestChunk)) return
    whereThereIsSpace(() => this.#note(this.#store.shrink(() => this.#dropOldest())))
  }

  /** Events from this sequence on may still change, and are not handed out. */
  holdFrom(sequence: number): void {
    this.#heldFrom = sequence
  }

  /**
   * The oldest events that wait and do not change any more, or undefined where there is none. They are lent until acknowledge() or giveBack().
   */
  peek(countMax: number, bytesMax: number): WaitingEvents | undefined {
    this.giveBack()
    const waiting = this.read(0, countMax, bytesMax)
    if (waiting !== undefined) this.#inFlightThrough = waiting.lastSequence
    return waiting
  }

  /** The same from a sequence on, to be read only. */
  read(sequence: number, countMax: number, bytesMax: number): WaitingEvents | undefined {
    const entries = this.#readWhole(sequence, countMax, bytesMax)
    const last = entries.at(-1)
    if (last === undefined) return undefined
    const events = entries.map((entry) =>
      unpackWaiting(entry.bytes, eventId(this.#instances.at(entry.sequence), entry.sequence)),
    )
    return { events, lastSequence: last.sequence }
  }

  /** What is damaged on disk is let go: it would stand in the way of all that is whole. */
  #readWhole(sequence: number, countMax: number, bytesMax: number): QueueEntry[] {
    for (;;) {
      try {
        return this.#queue.read(sequence, countMax, bytesMax, this.#heldFrom)
      } catch (error) {
        if (!(error instanceof DamagedChunk)) throw error
        const gone = this.#store.shrink(() => this.#queue.removeDamaged())
        // It is not the oldest that is damaged, so it is reached later.
        if (gone === 0) return []
        this.dropped.damaged += gone
        this.#waiting = this.#queue.length
      }
    }
  }

  /** The sequence of the oldest event that waits, or of the next one. */
  get firstSequence(): number {
    return this.#queue.firstSequence
  }

  /** Events before this sequence do not change any more. */
  get settledBefore(): number {
    return Math.min(this.#heldFrom, this.#queue.nextSequence)
  }

  /** When the oldest event that waits was written, in milliseconds since 1970; 0 when none waits or it is not known. */
  get oldestWrittenMs(): number {
    return this.#waiting === 0 ? 0 : (this.#queue.oldestChunk?.writtenMs ?? 0)
  }

  /** Forgets the events that were lent, up to this sequence, which the service has on its disk. @throws Fault STORE_FULL. */
  acknowledge(lastSequence: number): void {
    this.#store.shrink(() => this.#queue.removeThrough(lastSequence))
    this.#waiting = this.#queue.length
    // They left by the limits and arrived all the same.
    this.#droppedInFlight.full = 0
    this.#droppedInFlight.tooOld = 0
    this.#inFlightThrough = 0
  }

  /** What was lent stays. */
  giveBack(): void {
    this.#inFlightThrough = 0
    this.dropped.full += this.#droppedInFlight.full
    this.dropped.tooOld += this.#droppedInFlight.tooOld
    this.#droppedInFlight.full = 0
    this.#droppedInFlight.tooOld = 0
  }

  /** Through which sequence a way that only reads has sent. */
  sentThrough(transport: string): number {
    const stored = this.#state.get(Buffer.from(SENT_PREFIX + transport))
    return stored === undefined ? 0 : Number(stored.readBigUInt64BE())
  }

  /** @throws Fault STORE_FULL. */
  noteSent(transport: string, lastSequence: number): void {
    this.#store.shrink(() => this.#state.putSync(Buffer.from(SENT_PREFIX + transport), u64(lastSequence)))
  }

  /** The capture files of which it is known how far they were read. */
  get sources(): string[] {
    return this.#positions().map(({ source }) => source)
  }

  /** How many frames of a source have their events in the outbox or with the service. */
  framesDone(source: string): number {
    const stored = this.#state.get(positionKey(source))
    return stored === undefined ? 0 : Number(stored.readBigUInt64BE())
  }

  close(): Promise<void> {
    return this.#store.close()
  }

  /**
   * Not before the first write: who only looks, or finds another collector here, changes nothing.
   *
   * @throws Fault STORE_FULL where there was no instance and none can be written.
   */
  #start(): void {
    const started = this.#instances.started(this.#queue.firstSequence, this.#queue.nextSequence)
    try {
      this.#store.shrink(() => this.#state.putSync(OUTBOX_INSTANCE_KEY, started.record))
      this.#instances = started
    } catch (error) {
      if (this.#instances.current === '' || !isFault(error, 'STORE_FULL')) throw error
    }
    this.#started = true
  }

  #expired({ writtenMs, lastSequence }: { readonly writtenMs: number; readonly lastSequence: number }): boolean {
    return this.#clock.ageMs(writtenMs, lastSequence) > this.#limits.ageMsMax
  }

  #putPosition({ source, framesDone }: SourcePosition): void {
    const key = positionKey(source)
    if (this.#state.get(key) === undefined) {
      const others = this.#positions().sort((a, b) => a.readMs - b.readMs)
      for (const other of others.slice(0, Math.max(0, others.length + 1 - SOURCES_MAX))) {
        this.#state.removeSync(positionKey(other.source))
      }
    }
    this.#state.putSync(key, Buffer.concat([u64(framesDone), u64(Date.now())]))
  }

  #positions(): { readonly source: string; readonly readMs: number }[] {
    const start = positionKey('')
    const end = Buffer.from(start)
    end[end.length - 1] = (end.at(-1) as number) + 1
    return Array.from(this.#state.getRange({ start, end }), ({ key, value }) => ({
      source: key.toString('utf8', start.length),
      readMs: Number(value.readBigUInt64BE(8)),
    }))
  }

  /** A clock that was set makes nothing older than it is. */
  #pollClock(): void {
    if (!this.#clock.poll(this.#queue.firstSequence, this.#queue.nextSequence)) return
    whereThereIsSpace(() => this.#store.shrink(() => this.#state.putSync(CLOCK_KEY, this.#clock.record)))
  }

  /** What leaves by the limits, inside a transaction. */
  #dropOldest(): Left {
    const left = { full: 0, tooOld: 0, inFlightFull: 0, inFlightTooOld: 0 }
    for (;;) {
      const full = this.#queue.footprintBytes > this.#limits.bytesMax
      const chunk = this.#queue.oldestChunk
      if (chunk === undefined || !(full || this.#expired(chunk))) return left
      const first = this.#queue.firstSequence
      const lent = Math.max(0, Math.min(chunk.lastSequence, this.#inFlightThrough) - first + 1)
      const gone = this.#queue.removeThrough(chunk.lastSequence)
      left[full ? 'full' : 'tooOld'] += gone - lent
      left[full ? 'inFlightFull' : 'inFlightTooOld'] += lent
    }
  }

  /** After the transaction: one that fails has let nothing go. */
  #note({ full, tooOld, inFlightFull, inFlightTooOld }: Left): void {
    this.dropped.full += full
    this.dropped.tooOld += tooOld
    this.#droppedInFlight.full += inFlightFull
    this.#droppedInFlight.tooOld += inFlightTooOld
    this.#waiting = this.#queue.length
  }
}

/** Does what can be left where the disk has no space at all. */
function whereThereIsSpace(work: () => void): void {
  try {
    work()
  } catch (error) {
    if (!isFault(error, 'STORE_FULL')) throw error
  }
}

interface Left {
  readonly full: number
  readonly tooOld: number
  readonly inFlightFull: number
  readonly inFlightTooOld: number
}

const NOTHING_LEFT: Left = { full: 0, tooOld: 0, inFlightFull: 0, inFlightTooOld: 0 }

function environmentIn(directory: string): Environment {
  return new Environment(directory, {
    setting: '--outbox',
    schemaVersion: OUTBOX_SCHEMA_VERSION,
    freeBytesMin: OUTBOX_FREE_BYTES_MIN,
    shrinkBytesMin: OUTBOX_SHRINK_BYTES_MIN,
    chown: 'by the caller',
  })
}

function positionKey(source: string): Buffer {
  return Buffer.from(POSITION_PREFIX + source)
}

function u64(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeBigUInt64BE(BigInt(value))
  return bytes
}
