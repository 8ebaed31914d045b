import { SYSLOG_UNAUTHENTICATED_BYTES_MAX, SYSLOG_WAITING_BYTES_MAX } from '../limits.ts'

/** A connection as the budget sees it. */
export interface WaitingConnection {
  /** Bytes of the connection that are held in this lane. */
  readonly heldBytes: number
  /** At least one message was authorized. */
  readonly isAuthenticated: boolean
  /** The organization of the messages; '' if not known. */
  readonly organizationId: string
  readonly stalled: boolean
  /** Pauses the socket until `releaseHold`. */
  hold(): void
  releaseHold(): void
  destroy(why: 'limit'): void
}

/**
 * Unauthenticated connections together may hold this fraction of the budget. Beyond it, each may
 * hold only SYSLOG_UNAUTHENTICATED_BYTES_MAX.
 */
const UNAUTHENTICATED_PART = 4
/**
 * Organizations with a full queue are paused when this fraction is in use, and resumed when half of
 * the fraction is.
 */
const BACKPRESSURE_PART = 2

/**
 * The byte budget that all connections of a lane share: incomplete messages, and messages of
 * organizations with a full queue.
 *
 * Three thresholds protect the budget. (1) Unauthenticated connections get a quarter, so that they
 * cannot displace authenticated ones. (2) Above half, all connections of an organization with a
 * full queue are paused. (3) Above the maximum, the connection that holds the most bytes is closed.
 */
export class ReadBudget {
  oversized = 0
  /** Held bytes. */
  waitingBytes = 0
  /** Bytes held by connections without an authorized message. */
  unauthenticatedBytes = 0
  readonly #bytesMax: number
  readonly #connections: ReadonlySet<WaitingConnection>
  /** Organizations whose connections are paused. */
  readonly #held = new Set<string>()

  constructor(connections: ReadonlySet<WaitingConnection>, bytesMax = SYSLOG_WAITING_BYTES_MAX) {
    this.#connections = connections
    this.#bytesMax = bytesMax
  }

  /**
   * Adds held bytes of a connection (negative: releases them). May close connections before it
   * returns.
   */
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

  /** Whether the connections of this organization are paused. */
  isHeld(organizationId: string): boolean {
    return this.#held.size > 0 && this.#held.has(organizationId)
  }

  /**
   * Resumes paused connections if enough bytes were released. Call after bytes may have been
   * released.
   */
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
