import type { Outbox, WaitingEvents } from '../outbox/outbox.ts'

/** What a way is given to send, oldest first. */
export interface Supply {
  /** Events that wait for this way. */
  readonly waiting: number
  /** Those of them that it may take now. */
  readonly available: number
  take(countMax: number, bytesMax: number): WaitingEvents | undefined
  /** They are where they should be. @throws Fault STORE_FULL; it is not noted then. */
  done(lastSequence: number): void
  /** They are not, and will be taken again. */
  back(): void
}

/** Of the way that decides: what it has sent leaves the outbox. */
export class DecidingSupply implements Supply {
  readonly #outbox: Outbox
  readonly #before: () => number

  /** `before`: events from this sequence on are not for it yet. */
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

  back(): void {
    this.#outbox.giveBack()
  }

  #until(sequence: number): number {
    return Math.max(0, Math.min(sequence, this.#outbox.settledBefore) - this.#outbox.firstSequence)
  }
}

/** Of a way that sends the same besides: it reads along, and remembers through crashes how far it is. */
export class FollowingSupply implements Supply {
  readonly #outbox: Outbox
  readonly #transport: string
  #sentThrough: number
  #missed = 0

  constructor(outbox: Outbox, transport: string) {
    this.#outbox = outbox
    this.#transport = transport
    // What is gone by now was missed in another run, or sent when this way decided.
    this.#sentThrough = Math.max(outbox.sentThrough(transport), outbox.firstSequence - 1)
  }

  /** Left the outbox before this way had sent them. */
  get missed(): number {
    return this.#missed + this.#gone
  }

  /** Those that it does not know of yet. */
  get #gone(): number {
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
    const gone = this.#gone
    this.#missed += gone
    this.#sentThrough += gone
    return this.#outbox.read(this.#sentThrough + 1, countMax, bytesMax)
  }

  done(lastSequence: number): void {
    this.#outbox.noteSent(this.#transport, lastSequence)
    this.#sentThrough = lastSequence
  }

  back(): void {}
}
