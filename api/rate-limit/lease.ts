import type { Allowance } from './allowance.ts'
import {
  type Answer,
  type Ask,
  HASH_BYTES,
  type Held,
  hashAt,
  LEASE_MS,
  type LeaseAnswer,
  type LeaseQuestion,
  packUses,
  RENEW_EVERY_MS,
} from './protocol.ts'

export interface LeaseParts {
  readonly id: string
  /** Differs after each start of the node. */
  readonly instance: string
  readonly nowMs: () => number
  readonly ask: Ask
  readonly allowance: Allowance
  /** When uses from before the start of the process no longer count. */
  readonly completeFromMs: number
}

/** The lease of this node's allowance, which it renews while there is a home. */
export class Lease {
  readonly #parts: LeaseParts
  #askedMs = Number.NEGATIVE_INFINITY
  /** When the question was sent that was answered last. */
  #answeredMs = Number.NEGATIVE_INFINITY

  constructor(parts: LeaseParts) {
    this.#parts = parts
  }

  /** @param home answers questions of this node to itself */
  tick(node: string | undefined, home: ((question: LeaseQuestion) => LeaseAnswer | undefined) | undefined): void {
    const { id, instance, nowMs, ask, allowance, completeFromMs } = this.#parts
    const sentMs = nowMs()
    // Not before it can report its uses: with a lease, it counts as one that has used all.
    if (sentMs < completeFromMs || sentMs - this.#askedMs < RENEW_EVERY_MS) return
    const question: LeaseQuestion = { kind: 'lease', from: id, instance, ...allowance.lease }
    const take = (answer: Answer | undefined): void => {
      if (answer?.kind !== 'lease' || sentMs <= this.#answeredMs) return
      this.#answeredMs = sentMs
      // The lease counts from the question on.
      allowance.setLease(answer, LEASE_MS - (nowMs() - sentMs))
    }
    if (home !== undefined) take(home(question))
    else if (node !== undefined && node !== id) ask(node, question, take)
    else return
    this.#askedMs = sentMs
  }

  /** Uses no allowance for these keys from now on. */
  hold(hashes: Uint8Array): Held {
    const { allowance, nowMs, completeFromMs } = this.#parts
    const uses = Array.from({ length: hashes.length / HASH_BYTES }, (_, index) => allowance.hold(hashAt(hashes, index)))
    return { kind: 'bind', isComplete: nowMs() >= completeFromMs, uses: packUses(uses) }
  }
}
