import { type Event, eventId } from '../../engine/kernel/event/event.ts'
import { Environment } from '../../engine/kernel/lmdb/environment.ts'
import { DamagedChunk, DurableQueue, type QueueEntry, type QueueTable } from '../../engine/kernel/lmdb/queue.ts'
import { isFault } from '../../engine/kernel/process/error-codes.ts'
import { faultPoint } from '../../engine/kernel/process/fault-point.ts'
import { OUTBOX_AGE_MS, OUTBOX_BYTES, OUTBOX_FREE_BYTES_MIN, OUTBOX_SHRINK_BYTES_MIN, SOURCES_MAX } from '../limits.ts'
import { AgeClock } from './age-clock.ts'
import { Instances } from './instances.ts'
import { MemoryStore } from './memory-store.ts'
import { OUTBOX_IN_MEMORY, type OutboxLimits, type OutboxStore } from './outbox-store.ts'
import { type NewEvent, packWaiting, unpackWaiting } from './waiting-event.ts'

/*
 * The matched events that the service has not yet acknowledged, in LMDB.
 *
 *   table   key                      value
 *   state   instance                 see instances.ts
 *   state   clock                    see age-clock.ts
 *   state   position + source name   u64 big-endian: frames of the capture file whose events are in
 *                                    the queue; u64: when the file was last read
 *   state   sent + transport         u64 big-endian: last sequence sent by a transport that does
 *                                    not decide which events leave the outbox
 *   queue   see lmdb/queue.ts        events, see waiting-event.ts
 *
 * An event's ID is its instance and its sequence in the queue, so the ID is the same however often
 * the event is sent. Events and the position of their source are written in one transaction. After
 * a crash, reading a file resumes at the position in the outbox.
 */
export const OUTBOX_SCHEMA_VERSION = 1
export const OUTBOX_INSTANCE_KEY = Buffer.from('instance')
const CLOCK_KEY = Buffer.from('clock')
const POSITION_PREFIX = 'position '
const SENT_PREFIX = 'sent '

/** An event in the outbox whose count has grown. */
export interface ChangedEvent {
  readonly sequence: number
  readonly event: NewEvent
}

/** Written in one transaction. */
export interface OutboxChanges {
  readonly added: readonly NewEvent[]
  /** In ascending order of sequence. */
  readonly changed?: readonly ChangedEvent[]
  readonly position?: SourcePosition
}

/** How far a capture file was read: its identity and the number of frames. */
export interface SourcePosition {
  readonly source: string
  readonly framesDone: number
}

export interface WaitingEvents {
  readonly events: readonly Event[]
  /** Acknowledge this sequence when the service has all of the events. */
  readonly lastSequence: number
}

export class Outbox {
  readonly #store: OutboxStore
  readonly #state: QueueTable
  readonly #queue: DurableQueue
  #instances: Instances
  /** Whether this run has created its instance. */
  #started = false
  readonly #limits: OutboxLimits
  #waiting: number
  readonly #clock: AgeClock
  #heldFrom = Number.POSITIVE_INFINITY
  /** Last sequence in flight: sent, but not yet acknowledged or given back. */
  #inFlightThrough = 0
  /** Events in flight that were dropped at a limit meanwhile. */
  readonly #droppedInFlight = { full: 0, tooOld: 0 }
  /** Events dropped at a limit while not in flight. */
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

  /** Number of waiting events. */
  get waiting(): number {
    return this.#waiting + this.#droppedInFlight.full + this.#droppedInFlight.tooOld
  }

  /** Size of the waiting events in bytes. */
  get footprintBytes(): number {
    return this.#queue.footprintBytes
  }

  /**
   * Appends events, rewrites changed events and stores the source's position in one transaction,
   * which is on disk when write() returns. Returns the sequence of the first added event.
   *
   * @throws Fault STORE_FULL; nothing was written, and the caller must keep the events.
   */
  write({ added, changed = [], position }: OutboxChanges): number {
    let first = 0
    let dropped = NOTHING_DROPPED
    if (!this.#started) this.#start()
    this.#pollClock()
    this.#store.write(() => {
      first = this.#queue.append(packWaiting(added))
      this.#queue.replace(
        changed.map(({ sequence }) => sequence),
        packWaiting(changed.map(({ event }) => event)),
      )
      if (position !== undefined) this.#putPosition(position)
      dropped = this.#dropOldest()
    })
    this.#note(dropped)
    faultPoint('outbox:appended')
    return first
  }

  /** Drops events that are too old. On a disk without any free space, they are dropped later. */
  dropExpired(): void {
    this.#pollClock()
    const { oldestChunk } = this.#queue
    if (oldestChunk === undefined || !this.#expired(oldestChunk)) return
    ifDiskHasSpace(() => this.#note(this.#store.shrink(() => this.#dropOldest())))
  }

  /** Events from this sequence on may still change and are not sent. */
  holdFrom(sequence: number): void {
    this.#heldFrom = sequence
  }

  /**
   * Returns the oldest waiting events that no longer change, or undefined if there are none. The
   * events are in flight until acknowledge() or returnInFlight().
   */
  peek(countMax: number, bytesMax: number): WaitingEvents | undefined {
    this.returnInFlight()
    const waiting = this.read(0, countMax, bytesMax)
    if (waiting !== undefined) this.#inFlightThrough = waiting.lastSequence
    return waiting
  }

  /** Like peek(), from a sequence on, without putting the events in flight. */
  read(sequence: number, countMax: number, bytesMax: number): WaitingEvents | undefined {
    const entries = this.#readUndamaged(sequence, countMax, bytesMax)
    const last = entries.at(-1)
    if (last === undefined) return undefined
    const events = entries.map((entry) =>
      unpackWaiting(entry.bytes, eventId(this.#instances.at(entry.sequence), entry.sequence)),
    )
    return { events, lastSequence: last.sequence }
  }

  /** Reads events. Removes damaged chunks, which would otherwise block all later events. */
  #readUndamaged(sequence: number, countMax: number, bytesMax: number): QueueEntry[] {
    for (;;) {
      try {
        return this.#queue.read(sequence, countMax, bytesMax, this.#heldFrom)
      } catch (error) {
        if (!(error instanceof DamagedChunk)) throw error
        const removed = this.#store.shrink(() => this.#queue.removeDamaged())
        // The damaged chunk is not the oldest. It is reached later.
        if (removed === 0) return []
        this.dropped.damaged += removed
        this.#waiting = this.#queue.length
      }
    }
  }

  /** The sequence of the oldest waiting event, or the next sequence if none waits. */
  get firstSequence(): number {
    return this.#queue.firstSequence
  }

  /** Events before this sequence no longer change. */
  get settledBefore(): number {
    return Math.min(this.#heldFrom, this.#queue.nextSequence)
  }

  /**
   * When the oldest waiting event was written, in milliseconds since 1970; 0 if none waits or the
   * time is unknown.
   */
  get oldestWrittenMs(): number {
    return this.#waiting === 0 ? 0 : (this.#queue.oldestChunk?.writtenMs ?? 0)
  }

  /**
   * Removes the events up to this sequence, which the service has on disk. @throws Fault
   * STORE_FULL.
   */
  acknowledge(lastSequence: number): void {
    this.#store.shrink(() => this.#queue.removeThrough(lastSequence))
    this.#waiting = this.#queue.length
    // These events were dropped at a limit, but the service received them.
    this.#droppedInFlight.full = 0
    this.#droppedInFlight.tooOld = 0
    this.#inFlightThrough = 0
  }

  /** Keeps the events that were in flight. */
  returnInFlight(): void {
    this.#inFlightThrough = 0
    this.dropped.full += this.#droppedInFlight.full
    this.dropped.tooOld += this.#droppedInFlight.tooOld
    this.#droppedInFlight.full = 0
    this.#droppedInFlight.tooOld = 0
  }

  /** Returns the last sequence sent by a transport that only reads the outbox. */
  sentThrough(transport: string): number {
    const stored = this.#state.get(Buffer.from(SENT_PREFIX + transport))
    return stored === undefined ? 0 : Number(stored.readBigUInt64BE())
  }

  /** @throws Fault STORE_FULL. */
  recordSent(transport: string, lastSequence: number): void {
    this.#store.shrink(() => this.#state.putSync(Buffer.from(SENT_PREFIX + transport), u64(lastSequence)))
  }

  /** The capture files with a known position. */
  get sources(): string[] {
    return this.#positions().map(({ source }) => source)
  }

  /**
   * Returns the number of frames of a source whose events are in the outbox or were acknowledged.
   */
  framesDone(source: string): number {
    const stored = this.#state.get(positionKey(source))
    return stored === undefined ? 0 : Number(stored.readBigUInt64BE())
  }

  close(): Promise<void> {
    return this.#store.close()
  }

  /**
   * Called at the first write, not before: a program that only reads, or finds another collector
   * running, must change nothing.
   *
   * @throws Fault STORE_FULL if there was no instance and none can be written.
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

  /** Setting the clock must not change the age of any event. */
  #pollClock(): void {
    if (!this.#clock.poll(this.#queue.firstSequence, this.#queue.nextSequence)) return
    ifDiskHasSpace(() => this.#store.shrink(() => this.#state.putSync(CLOCK_KEY, this.#clock.record)))
  }

  /** Drops events at the limits, within a transaction. */
  #dropOldest(): DroppedEvents {
    const dropped = { full: 0, tooOld: 0, inFlightFull: 0, inFlightTooOld: 0 }
    for (;;) {
      const full = this.#queue.footprintBytes > this.#limits.bytesMax
      const chunk = this.#queue.oldestChunk
      if (chunk === undefined || !(full || this.#expired(chunk))) return dropped
      const first = this.#queue.firstSequence
      const inFlight = Math.max(0, Math.min(chunk.lastSequence, this.#inFlightThrough) - first + 1)
      const removed = this.#queue.removeThrough(chunk.lastSequence)
      dropped[full ? 'full' : 'tooOld'] += removed - inFlight
      dropped[full ? 'inFlightFull' : 'inFlightTooOld'] += inFlight
    }
  }

  /** Called after the transaction, because a failed transaction drops nothing. */
  #note({ full, tooOld, inFlightFull, inFlightTooOld }: DroppedEvents): void {
    this.dropped.full += full
    this.dropped.tooOld += tooOld
    this.#droppedInFlight.full += inFlightFull
    this.#droppedInFlight.tooOld += inFlightTooOld
    this.#waiting = this.#queue.length
  }
}

/** Does work that can be postponed if the disk has no free space at all. */
function ifDiskHasSpace(work: () => void): void {
  try {
    work()
  } catch (error) {
    if (!isFault(error, 'STORE_FULL')) throw error
  }
}

interface DroppedEvents {
  readonly full: number
  readonly tooOld: number
  readonly inFlightFull: number
  readonly inFlightTooOld: number
}

const NOTHING_DROPPED: DroppedEvents = { full: 0, tooOld: 0, inFlightFull: 0, inFlightTooOld: 0 }

function environmentIn(directory: string): Environment {
  return new Environment(directory, {
    setting: '--outbox',
    schemaVersion: OUTBOX_SCHEMA_VERSION,
    freeBytesMin: OUTBOX_FREE_BYTES_MIN,
    shrinkBytesMin: OUTBOX_SHRINK_BYTES_MIN,
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
