import type { Environment } from '../lmdb/environment.ts'
import type { LogPosition } from '../log/event-log.ts'
import { Family } from './family.ts'

/** What a store has read of a log, and where its last two backups were. */
export interface LogRead extends LogPosition {
  /** The sequences in the last two backups, the older one first. What is before can be trimmed. */
  readonly backups: readonly number[]
}

const EVENTS = Buffer.from('events')
const BACKUPS_KEPT = 2

/**
 * How far the store has read the log of events. Written in the transaction that stores the events,
 * so that a restored backup continues where it was made.
 */
export class LogPositions {
  readonly #positions: Family<LogRead>

  constructor(environment: Environment) {
    this.#positions = new Family(environment.table('log-positions'), 'position in a log')
  }

  /** undefined: the store has never read a log. */
  get events(): LogRead | undefined {
    return this.#positions.get(EVENTS)
  }

  /** Requires a write transaction. */
  put(position: LogPosition): void {
    this.#positions.put(EVENTS, { ...position, backups: this.events?.backups ?? [] })
  }

  /** Remembers that a backup has everything up to `position`. Requires a write transaction. */
  noteBackup(position: LogPosition | undefined): void {
    const read = this.events
    if (position === undefined || read === undefined) return
    this.#positions.put(EVENTS, { ...read, backups: [...read.backups, position.sequence].slice(-BACKUPS_KEPT) })
  }

  /** Requires a write transaction. */
  forget(): void {
    this.#positions.remove(EVENTS)
  }

  /** The last message that neither of the last two backups needs. 0: there are fewer. */
  get trimmable(): number {
    const { backups = [] } = this.events ?? {}
    return backups.length < BACKUPS_KEPT ? 0 : (backups[0] ?? 0)
  }
}
