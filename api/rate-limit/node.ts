import type { Allowance } from './allowance.ts'
import { type HomeParts, RateHome, type Takeover } from './home.ts'
import { Lease } from './lease.ts'
import type { RateMemory } from './memory.ts'
import { type Answer, type Ask, HASH_BYTES, type Question, type Share, unavailable } from './protocol.ts'
import type { NodeSightings } from './sightings.ts'

/** The node that grants, as this node has read in the stream of changes. */
export interface Home {
  readonly node: string
  readonly generation: number
}

export interface NodeParts {
  readonly id: string
  readonly nowMs: () => number
  readonly ask: Ask
  readonly memory: RateMemory
  readonly sightings: NodeSightings
  readonly allowance: Allowance
  /** When uses of the allowance from before the start of the process no longer count. */
  readonly allowanceCompleteFromMs: number
  readonly shareOf: (nodes: number) => Share | undefined
  /** undefined: there is none. */
  readonly home: () => Home | undefined
}

/**
 * The rate limit of API keys on a node of a cluster: asks the home for permits, remembers those
 * that it used, and is the home while the node is the primary.
 */
export class RateNode {
  readonly #parts: NodeParts
  readonly #lease: Lease
  #home: RateHome | undefined

  constructor(parts: NodeParts) {
    this.#parts = parts
    const { allowanceCompleteFromMs: completeFromMs, memory } = parts
    this.#lease = new Lease({ ...parts, instance: memory.instance, completeFromMs })
  }

  /** Seconds until this node knows what earlier homes granted, if it is the home. */
  get unknownSeconds(): number {
    return this.#home?.unknownSeconds ?? 0
  }

  /** Keys that this node, as the home, did not bind because there were too many. */
  get notBound(): number {
    return this.#home?.notBound ?? 0
  }

  takeOver(parts: Omit<HomeParts, keyof NodeParts | 'hold'>, takeover: Takeover): void {
    const hold: HomeParts['hold'] = (hashes) => this.#lease.hold(hashes)
    this.#home = new RateHome({ ...this.#parts, ...parts, hold }, takeover)
  }

  /** Call several times per second. */
  tick(): void {
    const home = this.#home
    home?.tick()
    this.#lease.tick(this.#parts.home()?.node, home && ((question) => home.lease(question)))
  }

  /**
   * Asks for permits. A verdict is valid for PERMIT_MS after this call, by the clock of the caller.
   * Granted permits are in the memory when `done` is called.
   */
  permits(hashes: Uint8Array, done: (verdicts: Uint8Array) => void): void {
    if (this.#home !== undefined) return this.#home.grantOwn(hashes, done)
    const { id, ask, home: homeNow, memory } = this.#parts
    const home = homeNow()
    const none = unavailable(hashes.length / HASH_BYTES)
    if (home === undefined || home.node === id) return done(none)
    ask(home.node, { kind: 'permits', from: id, hashes }, (answer) => {
      if (answer?.kind !== 'permits' || answer.verdicts.length !== none.length) return done(none)
      // A newer home has collected, and does not know these grants.
      if (memory.generation > home.generation) return done(none)
      const verdicts = Uint8Array.from(answer.verdicts)
      memory.use(hashes, verdicts)
      done(verdicts)
    })
  }

  /** Does not call `done` if there is no answer. */
  answer(question: Question, done: (answer: Answer) => void): void {
    const { id, memory } = this.#parts
    if (question.kind === 'witness') return done({ kind: 'witness', isKept: memory.witness(question) })
    if (question.kind === 'collect') return done(memory.collect(id, question))
    if (question.kind === 'bind') return done(this.#lease.hold(question.hashes))
    if (question.kind === 'lease') {
      const lease = this.#home?.lease(question)
      return lease && done(lease)
    }
    const { from, hashes } = question
    const give = (verdicts: Uint8Array): void => done({ kind: 'permits', verdicts })
    if (this.#home === undefined) give(unavailable(hashes.length / HASH_BYTES))
    else this.#home.grant(from, hashes, give)
  }
}
