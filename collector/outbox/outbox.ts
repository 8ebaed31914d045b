import { randomBytes } from 'node:crypto'
import { type Event, eventId, packEvent, unpackEvent } from '../../engine/event.ts'
import { Fault } from '../../engine/process/error-codes.ts'
import { faultPoint } from '../../engine/process/fault-point.ts'
import { Environment, type Table } from '../../engine/store/environment.ts'
import { DurableQueue } from '../../engine/store/queue.ts'
import { openRecord, sealRecord } from '../../engine/store/record.ts'
import { OUTBOX_EVENTS_MAX, OUTBOX_FREE_BYTES_MIN } from '../limits.ts'

/*
 * The events that were matched and are not yet acknowledged by the service, in LMDB.
 *
 *   table   key                      value
 *   state   instance                 the collector instance's 8 random bytes, made with the outbox
 *   state   position + source name   frames of that capture file whose events are in the queue, u64 big-endian
 *   queue   see store/queue.ts       an event
 *
 * An event's id is the instance and its sequence in the queue, so it is the same however often it is sent. Events and the
 * position of their source are written in one transaction: after a crash a file is read on from where the outbox knows it.
 */
const SCHEMA_VERSION = 1
const RECORD_VERSION = 1
const INSTANCE_KEY = Buffer.from('instance')
const POSITION_PREFIX = 'position '

/** An event before the outbox has given it an id. */
export type NewEvent = Omit<Event, 'id'>

/** An event that is in the outbox and counts more now. */
export interface ChangedEvent {
  readonly sequence: number
  readonly event: NewEvent
}

/** What is written in one transaction. */
export interface OutboxChanges {
  readonly added: readonly NewEvent[]
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
  readonly #environment: Environment
  readonly #state: Table
  readonly #queue: DurableQueue
  readonly #instance: string
  #waiting: number
  #heldFrom = Number.POSITIVE_INFINITY
  /** Events that left at the front because the outbox was full. */
  dropped = 0

  /** @throws Fault STORE_UNWRITABLE, STORE_VERSION, STORE_DAMAGED. */
  constructor(directory: string) {
    this.#environment = new Environment(directory, {
      setting: '--outbox',
      schemaVersion: SCHEMA_VERSION,
      freeBytesMin: OUTBOX_FREE_BYTES_MIN,
    })
    this.#state = this.#environment.table('state')
    this.#queue = new DurableQueue(this.#environment.table('queue'), Buffer.alloc(0))
    this.#instance = this.#openInstance()
    this.#waiting = this.#queue.length
  }

  /** Events that wait. */
  get waiting(): number {
    return this.#waiting
  }

  /**
   * Appends events, writes others anew, and how far their source is read, in one transaction; on disk when it returns. Answers the sequence
   * of the first that was added.
   *
   * @throws Fault STORE_FULL; nothing is written then, and the caller keeps the events.
   */
  write({ added, changed = [], position }: OutboxChanges): number {
    let first = 0
    this.#environment.write(() => {
      first = this.#queue.nextSequence
      this.#queue.append(added.map((event, index) => this.#sealed(event, first + index)))
      for (const { sequence, event } of changed) this.#queue.replace(sequence, this.#sealed(event, sequence))
      if (position !== undefined) this.#state.putSync(positionKey(position.source), u64(position.framesDone))
      this.#dropOldest()
    })
    this.#waiting = this.#queue.length
    faultPoint('outbox:appended')
    return first
  }

  /** Events from this sequence on may still change, and are not handed out. */
  holdFrom(sequence: number): void {
    this.#heldFrom = sequence
  }

  /** The oldest events that wait and do not change any more, or undefined where there is none. */
  oldest(countMax: number, bytesMax: number): WaitingEvents | undefined {
    const entries = this.#queue.read(0, countMax, bytesMax, this.#heldFrom)
    const last = entries.at(-1)
    if (last === undefined) return undefined
    return { events: entries.map(({ bytes }) => opened(bytes)), lastSequence: last.sequence }
  }

  /** When the oldest event that waits was first seen, in milliseconds since 1970; 0 when none waits. */
  get oldestTimeMs(): number {
    if (this.#waiting === 0) return 0
    const [oldest] = this.#queue.read(0, 1)
    return oldest === undefined ? 0 : opened(oldest.bytes).firstSeenMs
  }

  /** Forgets the events up to this sequence, which the service has on its disk. */
  acknowledge(lastSequence: number): void {
    this.#environment.write(() => this.#queue.removeThrough(lastSequence))
    this.#waiting = this.#queue.length
  }

  /** How many frames of a source have their events in the outbox or with the service. */
  framesDone(source: string): number {
    const stored = this.#state.get(positionKey(source))
    return stored === undefined ? 0 : Number(stored.readBigUInt64BE())
  }

  close(): Promise<void> {
    return this.#environment.close()
  }

  #openInstance(): string {
    const stored = this.#state.get(INSTANCE_KEY)
    if (stored !== undefined) return openRecord(stored, RECORD_VERSION, 'collector instance').toString('hex')
    const made = randomBytes(8)
    this.#environment.write(() => this.#state.putSync(INSTANCE_KEY, sealRecord(RECORD_VERSION, made)))
    return made.toString('hex')
  }

  #sealed(event: NewEvent, sequence: number): Buffer {
    return sealRecord(RECORD_VERSION, packEvent({ ...event, id: eventId(this.#instance, sequence) }))
  }

  #dropOldest(): void {
    const excess = this.#queue.length - OUTBOX_EVENTS_MAX
    if (excess > 0) this.dropped += this.#queue.removeThrough(this.#queue.firstSequence + excess - 1)
  }
}

function opened(bytes: Uint8Array): Event {
  const event = unpackEvent(openRecord(bytes, RECORD_VERSION, 'waiting event'))
  if (typeof event === 'string') throw new Fault('STORE_DAMAGED', `waiting event: ${event}`)
  return event
}

function positionKey(source: string): Buffer {
  return Buffer.from(POSITION_PREFIX + source)
}

function u64(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeBigUInt64BE(BigInt(value))
  return bytes
}
