import { type Event, packEvent, unpackEvent } from '../kernel/event/event.ts'
import type { Environment } from '../kernel/lmdb/environment.ts'
import { type Slices, slicesOf } from '../kernel/lmdb/queue-chunk.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { EventQueue } from './event-queue.ts'
import type { Places } from './seen-events.ts'

export interface BufferedEvent {
  readonly sequence: number
  readonly event: Event
}

/**
 * The admitted events of each organization, in order of arrival, until a scan adds them to the
 * evidence.
 */
export class EventBuffer extends EventQueue {
  constructor(environment: Environment) {
    super(environment, 'buffer')
  }

  append(organizationId: string, events: readonly Event[]): void {
    this.queue(organizationId).append(slicesOf(events.map(packEvent)))
  }

  /** Appends the packed events at the given places, ascending. Returns their number. */
  appendPacked(organizationId: string, events: Slices, places: readonly Places[]): number {
    const kept = keptOf(events, places)
    this.queue(organizationId).append(kept)
    return kept.count
  }

  /**
   * When the oldest buffered events were stored, in milliseconds since 1970. 0: the buffer is
   * empty, or these events are damaged.
   */
  oldestMs(organizationId: string): number {
    return this.queue(organizationId).oldestChunk?.writtenMs ?? 0
  }

  /** Reads up to `countMax` events from `sequence` on (0: from the oldest). */
  read(organizationId: string, sequence: number, countMax: number): BufferedEvent[] {
    return this.queue(organizationId)
      .read(sequence, countMax)
      .map((entry) => ({ sequence: entry.sequence, event: opened(entry.bytes) }))
  }
}

function opened(bytes: Uint8Array): Event {
  const event = unpackEvent(bytes, true)
  if (typeof event === 'string') throw new Fault('STORE_DAMAGED', `buffered event: ${event}`)
  return event
}

function keptOf(events: Slices, places: readonly Places[]): Slices {
  const count = places.reduce((sum, { from, to }) => sum + to - from, 0)
  if (count === events.count) return events
  const starts = new Uint32Array(count)
  const ends = new Uint32Array(count)
  let at = 0
  for (const { from, to } of places) {
    starts.set(events.starts.subarray(from, to), at)
    ends.set(events.ends.subarray(from, to), at)
    at += to - from
  }
  return { bytes: events.bytes, starts, ends, count }
}
