import type { LogPosition } from '../cluster/log/event-log.ts'
import type { Environment } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'

const EVENTS = Buffer.from('events')

/**
 * How far the store has read the log of events. Written in the transaction that stores the events,
 * so that a replica that becomes the primary continues where the last one was.
 */
export class LogPositions {
  readonly #positions: Family<LogPosition>

  constructor(environment: Environment) {
    this.#positions = new Family(environment.table('log-positions'), 'position in a log')
  }

  /** undefined: the store has never read a log. */
  get events(): LogPosition | undefined {
    return this.#positions.get(EVENTS)
  }

  put({ sequence, created }: LogPosition): void {
    this.#positions.put(EVENTS, { sequence, created })
  }

  forget(): void {
    this.#positions.remove(EVENTS)
  }
}
