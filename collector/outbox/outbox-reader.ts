import { type Event, eventId } from '../../engine/kernel/event/event.ts'
import { Environment } from '../../engine/kernel/lmdb/environment.ts'
import { DurableQueue } from '../../engine/kernel/lmdb/queue.ts'
import { Instances } from './instances.ts'
import { MemoryStore } from './memory-store.ts'
import { OUTBOX_INSTANCE_KEY, OUTBOX_SCHEMA_VERSION } from './outbox.ts'
import { unpackWaiting } from './waiting-event.ts'

/**
 * Number of events read in one LMDB snapshot. A snapshot keeps the pages of events removed
 * meanwhile.
 */
const EVENTS_AT_ONCE = 4096

export interface OutboxFigures {
  readonly waiting: number
  /** Total, including events already removed. */
  readonly everWritten: number
  readonly footprintBytes: number
  /** Sequences of the oldest and newest waiting event; 0 if none waits. */
  readonly firstSequence: number
  readonly lastSequence: number
  /**
   * When the oldest waiting event was written, in milliseconds since 1970; 0 if none waits or the
   * time is unknown.
   */
  readonly oldestWrittenMs: number
}

/** Reads an outbox while a collector runs on it. */
export class OutboxReader {
  readonly #environment: Environment
  readonly #queue: DurableQueue
  readonly #instances: Instances

  /**
   * @throws Fault NOT_FOUND if there is no outbox, STORE_UNWRITABLE, STORE_VERSION, STORE_DAMAGED.
   */
  constructor(directory: string) {
    this.#environment = new Environment(directory, {
      setting: '--outbox',
      schemaVersion: OUTBOX_SCHEMA_VERSION,
      freeBytesMin: 0,
      readOnly: true,
    })
    // A collector killed right after its start may have created no tables. Then no event waits.
    this.#instances = Instances.of(this.#environment.tableIfExists('state')?.get(OUTBOX_INSTANCE_KEY))
    const queue = this.#environment.tableIfExists('queue') ?? new MemoryStore().table('queue')
    this.#queue = new DurableQueue(queue, Buffer.alloc(0))
  }

  /**
   * The last collector instance that wrote an event, 16 hex digits; empty if none was written yet.
   */
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

  /**
   * Yields up to `countMax` waiting events, oldest first, including open ones. Events that leave
   * the outbox meanwhile may be missing.
   */
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
