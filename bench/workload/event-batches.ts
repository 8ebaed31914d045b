import { randomBytes } from 'node:crypto'
import { type Event, eventId, METHODS, packBatch, packEvent } from '../../engine/event/event.ts'
import { loadCatalog } from '../../registry/catalog.ts'

/** Names in the registry as clients request them: a rule's domain, or a host below it. */
const NAMES = loadCatalog()
  .rules.filter(({ match }) => match !== 'pattern')
  .map(({ domain, match }, index) => (match === 'suffix' && index % 2 === 0 ? `api${index % 100}.${domain}` : domain))

/**
 * Returns the event with this number, from 1, of an instance (16 hex digits). Strides without a
 * common divisor mix clients and names.
 */
export function numberedEvent(instance: string, number: number, firstSeenMs: number): Event {
  const client = number * 7919
  return {
    id: eventId(instance, number),
    name: NAMES[(number * 104_729) % NAMES.length] as string,
    client: `10.${client % 200}.${(client >>> 8) % 250}.${number % 251}`,
    method: METHODS[number % 3] ?? 'dns',
    firstSeenMs,
    lastSeenMs: firstSeenMs + (number % 10_000),
    count: 1 + (number % 40),
  }
}

/** Events of one instance that has just seen them. */
function numberedEvents(): (number: number) => Event {
  const nowMs = Date.now() - 60_000
  return (number) => numberedEvent('0'.repeat(16), number, nowMs)
}

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

  constructor(events: number, eventOf = numberedEvents()) {
    const all = Array.from({ length: events }, (_, index) => eventOf(index + 1))
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
