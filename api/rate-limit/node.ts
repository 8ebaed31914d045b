import { type HomeParts, RateHome, type Takeover } from './home.ts'
import type { RateMemory } from './memory.ts'
import { type Answer, type Ask, HASH_BYTES, type Question, unavailable } from './protocol.ts'
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
  /** undefined: there is none. */
  readonly home: () => Home | undefined
}

/**
 * The rate limit of API keys on a node of a cluster: asks the home for permits, remembers those
 * that it used, and is the home while the node is the primary.
 */
export class RateNode {
  readonly #parts: NodeParts
  #home: RateHome | undefined

  constructor(parts: NodeParts) {
    this.#parts = parts
  }

  /** Seconds until this node knows what earlier homes granted, if it is the home. */
  get unknownSeconds(): number {
    return this.#home?.unknownSeconds ?? 0
  }

  takeOver(parts: Omit<HomeParts, keyof NodeParts>, takeover: Takeover): void {
    this.#home = new RateHome({ ...this.#parts, ...parts }, takeover)
  }

  tick(): void {
    this.#home?.tick()
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

  answer(question: Question): Answer {
    const { id, memory } = this.#parts
    if (question.kind === 'witness') return { kind: 'witness', isKept: memory.witness(question) }
    if (question.kind === 'collect') return memory.collect(id, question)
    const { from, hashes } = question
    return { kind: 'permits', verdicts: this.#home?.grant(from, hashes) ?? unavailable(hashes.length / HASH_BYTES) }
  }
}
