import type { Outbox, WaitingEvents } from '../outbox/outbox.ts'

/** The events for a transport to send, oldest first. */
export interface EventSource {
  /** Number of events that wait for this transport. */
  readonly waiting: number
  /** Number of waiting events that the transport may take now. */
  readonly available: number
  take(countMax: number, bytesMax: number): WaitingEvents | undefined
  /**
   * The events up to this sequence were accepted. @throws Fault STORE_FULL if that could not be
   * recorded.
   */
  done(lastSequence: number): void
  /** The events were not accepted and will be taken again. */
  putBack(): void
}

/** For the deciding transport: events that it has sent leave the outbox. */
export class DecidingSource implements EventSource {
  readonly #outbox: Outbox
  readonly #before: () => number

  /** `before` returns the first sequence that is not yet available. */
  constructor(outbox: Outbox, before: () => number = () => Number.POSITIVE_INFINITY) {
    this.#outbox = outbox
    this.#before = before
  }

  get waiting(): number {
    return this.#until(Number.POSITIVE_INFINITY)
  }

  get available(): number {
    return this.#until(this.#before())
  }

  take(countMax: number, bytesMax: number): WaitingEvents | undefined {
    const { available } = this
    return available === 0 ? undefined : this.#outbox.peek(Math.min(countMax, available), bytesMax)
  }

  done(lastSequence: number): void {
    this.#outbox.acknowledge(lastSequence)
  }

  putBack(): void {
    this.#outbox.returnInFlight()
  }

  #until(sequence: number): number {
    return Math.max(0, Math.min(sequence, this.#outbox.settledBefore) - this.#outbox.firstSequence)
  }
}

/**
 * For a transport that sends the same events in addition: reads the outbox and records durably how
 * far it has sent.
 */
export class FollowingSource implements EventSource {
  readonly #outbox: Outbox
  readonly #transport: string
  #sentThrough: number
  #missed = 0

  constructor(outbox: Outbox, transport: string) {
    this.#outbox = outbox
    this.#transport = transport
    // Events no longer in the outbox were missed in another run, or sent when this transport
    // decided.
    this.#sentThrough = Math.max(outbox.sentThrough(transport), outbox.firstSequence - 1)
  }

  /** Events that left the outbox before this transport had sent them. */
  get missed(): number {
    return this.#missed + this.#newlyMissed
  }

  /** Missed events that are not yet in #missed. */
  get #newlyMissed(): number {
    return Math.max(0, this.#outbox.firstSequence - 1 - this.#sentThrough)
  }

  get sentThrough(): number {
    return this.#sentThrough
  }

  get available(): number {
    return this.waiting
  }

  get waiting(): number {
    return Math.max(0, this.#outbox.settledBefore - Math.max(this.#outbox.firstSequence, this.#sentThrough + 1))
  }

  take(countMax: number, bytesMax: number): WaitingEvents | undefined {
    const newlyMissed = this.#newlyMissed
    this.#missed += newlyMissed
    this.#sentThrough += newlyMissed
    return this.#outbox.read(this.#sentThrough + 1, countMax, bytesMax)
  }

  done(lastSequence: number): void {
    this.#outbox.recordSent(this.#transport, lastSequence)
    this.#sentThrough = lastSequence
  }

  putBack(): void {}
}
