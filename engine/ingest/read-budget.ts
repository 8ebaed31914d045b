import { SYSLOG_UNAUTHENTICATED_BYTES_MAX, SYSLOG_WAITING_BYTES_MAX } from '../limits.ts'

/** A connection, as far as its bytes are bounded. */
export interface WaitingConnection {
  /** Bytes of it that wait in this lane. */
  readonly heldBytes: number
  /** One of its messages was authorized. */
  readonly isAuthenticated: boolean
  /** Whose messages it has; '' where that is not known. */
  readonly organizationId: string
  readonly stalled: boolean
  /** Its socket is not read until `releaseHold`. */
  hold(): void
  releaseHold(): void
  destroy(why: 'limit'): void
}

/** Strangers together may hold this part of the bound; beyond it each only SYSLOG_UNAUTHENTICATED_BYTES_MAX. */
const UNAUTHENTICATED_PART = 4
/** Organizations without room are read no more when this part is full, and again when only half of that is. */
const BACKPRESSURE_PART = 2

/**
 * What all connections of a lane share: the bytes that wait in it, of messages that are not whole, and of those that found no room.
 *
 * The bound is met by reading less, in three steps. Strangers have a quarter, so that they cannot close those who are known. When half is full, the
 * other connections of an organization that has no room are not read either. Who holds the most is closed only when all of it is full.
 */
export class ReadBudget {
  oversized = 0
  /** Room taken, in bytes. */
  waitingBytes = 0
  /** Of that, by connections without an authorised message. */
  unauthenticatedBytes = 0
  readonly #bytesMax: number
  readonly #connections: ReadonlySet<WaitingConnection>
  /** Organizations whose connections are held. */
  readonly #held = new Set<string>()

  constructor(connections: ReadonlySet<WaitingConnection>, bytesMax = SYSLOG_WAITING_BYTES_MAX) {
    this.#connections = connections
    this.#bytesMax = bytesMax
  }

  /** Notes that a connection holds more or less; who holds too much may be closed before this returns. */
  add(connection: WaitingConnection, bytes: number): void {
    this.waitingBytes += bytes
    if (!connection.isAuthenticated) this.unauthenticatedBytes += bytes
    if (bytes <= 0) return
    if (
      !connection.isAuthenticated &&
      connection.heldBytes > SYSLOG_UNAUTHENTICATED_BYTES_MAX &&
      this.unauthenticatedBytes > this.#bytesMax / UNAUTHENTICATED_PART
    )
      return connection.destroy('limit')
    if (connection.stalled && this.waitingBytes > this.#bytesMax / BACKPRESSURE_PART)
      this.#hold(connection.organizationId)
    if (this.waitingBytes > this.#bytesMax) this.#largest()?.destroy('limit')
  }

  /** The connection is authenticated from now on. */
  noteAuthenticated(connection: WaitingConnection): void {
    this.unauthenticatedBytes -= connection.heldBytes
  }

  /** Whether the connections of this organization are not read now. */
  isHeld(organizationId: string): boolean {
    return this.#held.size > 0 && this.#held.has(organizationId)
  }

  /** Reads those again that are held, if there is room. To be called when something may have become less. */
  releaseHold(): void {
    if (this.#held.size === 0 || this.waitingBytes > this.#bytesMax / BACKPRESSURE_PART / 2) return
    const organizations = [...this.#held]
    this.#held.clear()
    for (const connection of this.#connections)
      if (organizations.includes(connection.organizationId)) connection.releaseHold()
  }

  #hold(organizationId: string): void {
    if (this.#held.has(organizationId) || organizationId === '') return
    this.#held.add(organizationId)
    for (const connection of this.#connections) if (connection.organizationId === organizationId) connection.hold()
  }

  #largest(): WaitingConnection | undefined {
    let largest: WaitingConnection | undefined
    for (const connection of this.#connections)
      if (largest === undefined || connection.heldBytes > largest.heldBytes) largest = connection
    return largest
  }
}
