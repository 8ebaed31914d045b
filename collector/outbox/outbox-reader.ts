import { type Event, eventId } from '../../engine/event/event.ts'
import { Environment } from '../../engine/lmdb/environment.ts'
import { DurableQueue } from '../../engine/lmdb/queue.ts'
import { Instances } from './instances.ts'
import { MemoryStore } from './memory-store.ts'
import { OUTBOX_INSTANCE_KEY, OUTBOX_SCHEMA_VERSION } from './outbox.ts'
import { unpackWaiting } from './waiting-event.ts'

/** How many events are read over one snapshot of LMDB, which holds the pages of all that leaves meanwhile. */
const EVENTS_AT_ONCE = 4096

export interface OutboxFigures {
  readonly waiting: number
  /** Those that left included. */
  readonly everWritten: number
  readonly footprintBytes: number
  /** Sequences of the oldest and the newest event that wait; 0 when none does. */
  readonly firstSequence: number
  readonly lastSequence: number
  /** When the oldest was written, in milliseconds since 1970; 0 when none waits or it is not known. */
  readonly oldestWrittenMs: number
}

/** An outbox to look into, beside the collector that runs on it. */
export class OutboxReader {
  readonly #environment: Environment
  readonly #queue: DurableQueue
  readonly #instances: Instances

  /** @throws Fault NOT_FOUND where there is none, STORE_UNWRITABLE, STORE_VERSION, STORE_DAMAGED. */
  constructor(directory: string) {
    this.#environment = new Environment(directory, {
      setting: '--outbox',
      schemaVersion: OUTBOX_SCHEMA_VERSION,
      freeBytesMin: 0,
      readOnly: true,
    })
    // A collector that was killed when it had just begun may have made no tables: then nothing waits.
    this.#instances = Instances.of(this.#environment.tableIfExists('state')?.get(OUTBOX_INSTANCE_KEY))
    const queue = this.#environment.tableIfExists('queue') ?? new MemoryStore().table('queue')
    this.#queue = new DurableQueue(queue, Buffer.alloc(0))
  }

  /** Of the last collector that wrote an event into it, 16 hex digits; empty where none was written yet. */
  get instance(): string {
    return this.#instances.current
  }

  get figures(): OutboxFigures {
    return this.#environment.read(() => {
      const { length, footprintBytes, firstSequence, nextSequence, oldestChunk } = this.#queue
      return {
        waiting: length,
        everWritten: nextSequence - 1,
        footprintBytes,
        firstSequence: length === 0 ? 0 : firstSequence,
        lastSequence: length === 0 ? 0 : nextSequence - 1,
        oldestWrittenMs: oldestChunk?.writtenMs ?? 0,
      }
    })
  }

  /** The events that wait, oldest first, and also those that are still counted; up to `countMax`. Those that leave meanwhile may be missing. */
  *events(countMax = Number.POSITIVE_INFINITY): Generator<Event> {
    let from = 0
    for (let left = countMax; left > 0; ) {
      const entries = this.#environment.read(() => this.#queue.read(from, Math.min(left, EVENTS_AT_ONCE)))
      for (const { sequence, bytes } of entries) {
        yield unpackWaiting(bytes, eventId(this.#instances.at(sequence), sequence))
        from = sequence + 1
      }
      if (entries.length === 0) return
      left -= entries.length
    }
  }

  close(): Promise<void> {
    return this.#environment.close()
  }
}
