import type { Environment } from '../kernel/lmdb/environment.ts'
import type { Slices } from '../kernel/lmdb/queue-chunk.ts'
import { EventQueue } from './event-queue.ts'

/**
 * Events whose name no platform of the organization's registry had when a scan read them. They wait
 * until a changed registry has the name, or until they leave the evidence window.
 */
export class UnmatchedEvents extends EventQueue {
  constructor(environment: Environment) {
    super(environment, 'unmatched-events')
  }

  /** Appends events, and removes the oldest beyond `countMax`. */
  append(organizationId: string, events: Slices, countMax: number): void {
    const queue = this.queue(organizationId)
    queue.append(events)
    const excess = queue.length - countMax
    if (excess > 0) queue.removeThrough(queue.firstSequence + excess - 1)
  }

  /** Removes all events. */
  clear(organizationId: string): void {
    this.removeThrough(organizationId, this.next(organizationId) - 1)
  }
}
