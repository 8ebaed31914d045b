import { randomBytes } from 'node:crypto'
import { packBatch, packEvent } from '../../engine/kernel/event/event.ts'
import { ScanEvents } from './scan-events.ts'

/**
 * Offset of the instance in the ID of an encoded event: after the array's header and the ID's own
 * header of two bytes.
 */
const INSTANCE_OFFSET = 3
const SEQUENCE_OFFSET = INSTANCE_OFFSET + 8

/**
 * A batch in msgpack whose IDs are overwritten in place, so that a sender can send new events
 * without encoding them again.
 */
export class RenumberedBatch {
  readonly bytes: Buffer
  readonly events: number
  readonly #starts: number[] = []
  #sequence = 0

  constructor(events: number) {
    const made = new ScanEvents(Date.now())
    const all = Array.from({ length: events }, (_, index) => made.event(0, index))
    this.bytes = packBatch(all)
    this.events = events
    let at = this.bytes.length
    for (const event of all.toReversed()) {
      at -= packEvent(event).length
      this.#starts.push(at)
    }
    this.#starts.reverse()
  }

  /** Gives the following events an instance that was never used. */
  newInstance(): void {
    const instance = randomBytes(8)
    for (const start of this.#starts) this.bytes.set(instance, start + INSTANCE_OFFSET)
    this.#sequence = 0
  }

  /** Writes the sequences that follow those of the previous batch. */
  next(): void {
    for (const start of this.#starts) this.bytes.writeUInt32BE(++this.#sequence, start + SEQUENCE_OFFSET + 4)
  }
}
