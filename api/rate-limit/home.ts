import { Bindings } from './bindings.ts'
import { Lessees } from './lessees.ts'
import type { RateMemory } from './memory.ts'
import {
  type Answer,
  type Ask,
  type Counts,
  GRANT_BYTES,
  GRANT_MS,
  grantedOf,
  HASH_BYTES,
  type Held,
  hashAt,
  type LeaseAnswer,
  type LeaseQuestion,
  REFUSED,
  RETRY_SECONDS,
  type Share,
  UNAVAILABLE,
  unavailable,
  VERDICT_BYTES,
} from './protocol.ts'
import type { RateVerdict } from './rate-limit.ts'
import type { NodeSightings } from './sightings.ts'

/** A node that did not witness is not asked for this time. */
const NO_WITNESS_MS = 5000
/** How often a node that has not answered completely is asked again. */
const COLLECT_AGAIN_MS = 1000
/** Batches that wait until the store notes that grants have no witness. */
const WAITING_MAX = 256

/** How this node became the home. */
export interface Takeover {
  readonly generation: number
  /** There was no home before, so the counts of this node are all. */
  readonly isKnown: boolean
  /** The last home, and when this node read first that it is the home. */
  readonly previous: { readonly node: string; readonly sinceMs: number } | undefined
  /** Nodes that may have used grants without a witness. */
  readonly unwitnessed: readonly string[]
}

/** What the home needs. */
export interface HomeParts {
  readonly id: string
  readonly nowMs: () => number
  readonly ask: Ask
  readonly counts: Counts
  readonly memory: RateMemory
  readonly sightings: NodeSightings
  /**
   * Whether no other node can be the home now: the brokers have acknowledged a message that was
   * sent within PAUSE_AFTER_MS.
   */
  readonly mayGrant: () => boolean
  /**
   * Notes in the replicated store whether this node uses grants without a witness. `done` is called
   * when the brokers have it, or with false.
   */
  readonly noteUnwitnessed: (isUnwitnessed: boolean, done: (isNoted: boolean) => void) => void
  /** Uses no allowance of this node for these keys from now on. */
  readonly hold: (hashes: Uint8Array) => Held
  /** Whether every node that may become the home knows allowances. */
  readonly mayLease: () => boolean
  /** The share of each node by their number. undefined: there are too many. */
  readonly shareOf: (nodes: number) => Share | undefined
  /** Removes such notes of other nodes, whose grants have ended. */
  readonly forgetUnwitnessed: () => void
}

/** What the home asks a node for: its own grants, or those that it witnessed. */
interface Collection {
  readonly node: string
  readonly of: string
  after: number
  instance: string
  askedMs: number
  isAsking: boolean
  isDone: boolean
}

type Continue = (hasWitness: boolean) => void

/**
 * Grants the permits of all nodes, on the primary. Another node knows every grant before it is
 * used, so that the next home can collect those that count: other nodes know the grants to
 * themselves, and a witness knows those to this node.
 */
export class RateHome {
  readonly #parts: HomeParts
  readonly #takeover: Takeover
  readonly #takenOverMs: number
  readonly #collections: readonly Collection[]
  readonly #lessees: Lessees
  readonly #bindings: Bindings
  #isOpen: boolean
  /** false: what was granted before cannot be known until all of it has ended. */
  #canCollect = true
  readonly #refusedUntilMs = new Map<string, number>()
  #note: 'absent' | 'changing' | 'present'
  #unwitnessedMs: number
  #hasForgotten = false
  #waiting: Continue[] = []

  constructor(parts: HomeParts, takeover: Takeover) {
    const { id, counts, memory, nowMs } = parts
    const { generation, isKnown, unwitnessed } = takeover
    this.#parts = parts
    this.#takeover = takeover
    this.#takenOverMs = nowMs()
    this.#isOpen = isKnown
    this.#note = unwitnessed.includes(id) ? 'present' : 'absent'
    this.#unwitnessedMs = this.#takenOverMs
    const exempt = this.#exempt()
    this.#collections = isKnown ? [] : this.#holders(exempt)
    this.#lessees = new Lessees({ nowMs, shareOf: parts.shareOf, inherited: this.#inherited() })
    this.#bindings = new Bindings({ nowMs, counts, lessees: this.#lessees, ask: this.#askToHold })
    if (isKnown) return
    counts.clear()
    const own = [id, ...(exempt === undefined ? [] : [exempt])]
    for (const of of own) this.#collectOwn(of, generation)
    this.#canCollect &&= memory.isComplete
    this.tick()
  }

  /** Seconds until all earlier grants have ended. 0: they are known. */
  get unknownSeconds(): number {
    if (this.#isOpen) return 0
    return Math.ceil((this.#takenOverMs + GRANT_MS - this.#parts.nowMs()) / 1000)
  }

  /** Call several times per second. */
  tick(): void {
    const { nowMs, forgetUnwitnessed } = this.#parts
    const now = nowMs()
    if (now - this.#takenOverMs >= GRANT_MS) {
      this.#isOpen = true
      if (!this.#hasForgotten) forgetUnwitnessed()
      this.#hasForgotten = true
    }
    if (!this.#isOpen && this.#canCollect) this.#collect(now)
    if (!this.#isOpen) return
    const hasWitness = this.#witness(now) !== undefined
    if (!hasWitness && this.#note === 'absent') this.#changeNote(true)
    if (hasWitness && this.#note === 'present' && now - this.#unwitnessedMs >= GRANT_MS) this.#changeNote(false)
  }

  /** Keys that were not bound because there were too many. */
  get notBound(): number {
    return this.#bindings.full
  }

  /** Leases an allowance to a node. undefined: it gets none now. */
  lease(question: LeaseQuestion): LeaseAnswer | undefined {
    const mayLease = this.#parts.mayLease() && this.#mayGrantTo(question.from)
    return mayLease ? this.#lessees.lease(question) : undefined
  }

  /** Permits of another node. */
  grant(node: string, hashes: Uint8Array, done: (verdicts: Uint8Array) => void): void {
    if (!this.#isOpen || !this.#mayGrantTo(node)) done(this.#decide(node, hashes))
    else this.#bindings.bind(hashes, () => done(this.#decide(node, hashes)))
  }

  /** Permits of this node. They are in its memory when `done` is called. */
  grantOwn(hashes: Uint8Array, done: (verdicts: Uint8Array) => void): void {
    this.grant(this.#parts.id, hashes, (verdicts) => this.#useOwn(hashes, verdicts, done))
  }

  #useOwn(hashes: Uint8Array, verdicts: Uint8Array, done: (verdicts: Uint8Array) => void): void {
    const { memory } = this.#parts
    const granted = grantedOf(verdicts)
    if (granted.length === 0) return done(verdicts)
    const witnessed = new Uint8Array(granted.length * HASH_BYTES)
    for (const [place, index] of granted.entries()) witnessed.set(hashAt(hashes, index), place * HASH_BYTES)
    this.#askWitness(witnessed, (hasWitness) => {
      // The next home may have collected from this node meanwhile.
      if (hasWitness && memory.generation <= this.#takeover.generation) memory.use(hashes, verdicts)
      else for (const index of granted) verdicts.set([UNAVAILABLE, RETRY_SECONDS], index * VERDICT_BYTES)
      done(verdicts)
    })
  }

  #decide(node: string, hashes: Uint8Array): Uint8Array {
    const permits = hashes.length / HASH_BYTES
    if (!this.#isOpen) return unavailable(permits, Math.max(RETRY_SECONDS, this.unknownSeconds))
    if (!this.#mayGrantTo(node)) return unavailable(permits)
    const verdicts = unavailable(permits)
    for (let index = 0; index < permits; index++) {
      const hash = hashAt(hashes, index)
      const reserved = this.#bindings.reserved(hash)
      if (reserved === undefined) continue
      const { allowed, remaining, resetSeconds, isReserved }: RateVerdict = this.#parts.counts.take(hash, reserved)
      // What is reserved may not have been used: that is no reason to refuse.
      if (isReserved) continue
      verdicts[index * VERDICT_BYTES] = allowed ? remaining : REFUSED
      verdicts[index * VERDICT_BYTES + 1] = resetSeconds
    }
    return verdicts
  }

  /** The next home always asks this node. Its own reports end while its disk is full. */
  #mayGrantTo(node: string): boolean {
    const { id, mayGrant, nowMs, sightings } = this.#parts
    return mayGrant() && (node === id || sightings.isAdmitted(node, nowMs()))
  }

  readonly #askToHold: Ask = (node, question, done, timeoutMs) => {
    const { id, ask, hold } = this.#parts
    if (node === id && question.kind === 'bind') done(hold(question.hashes))
    else ask(node, question, done, timeoutMs)
  }

  /** Nodes that may have a lease of an earlier home, and this one. */
  #inherited(): string[] {
    const { id, sightings } = this.#parts
    const { previous } = this.#takeover
    return [
      ...new Set([id, ...(previous === undefined ? [] : [previous.node]), ...sightings.lessees(this.#takenOverMs)]),
    ]
  }

  #askWitness(hashes: Uint8Array, done: Continue): void {
    const { id, ask, nowMs } = this.#parts
    const node = this.#witness(nowMs())
    if (node === undefined) return this.#withoutWitness(done)
    const { generation } = this.#takeover
    ask(node, { kind: 'witness', from: id, generation, hashes }, (answer) => {
      if (answer?.kind === 'witness' && answer.isKept) return done(true)
      this.#refusedUntilMs.set(node, nowMs() + NO_WITNESS_MS)
      this.#askWitness(hashes, done)
    })
  }

  #witness(now: number): string | undefined {
    const { id, sightings } = this.#parts
    return sightings.admitted(now).find((node) => node !== id && (this.#refusedUntilMs.get(node) ?? 0) <= now)
  }

  /** No other node answers. The next home must know that it cannot learn these grants. */
  #withoutWitness(done: Continue): void {
    if (this.#note === 'present') {
      this.#unwitnessedMs = this.#parts.nowMs()
      return done(true)
    }
    if (this.#waiting.length >= WAITING_MAX) return done(false)
    this.#waiting.push(done)
    if (this.#note === 'absent') this.#changeNote(true)
  }

  #changeNote(isUnwitnessed: boolean): void {
    // From now on, grants need a witness, or wait.
    this.#note = 'changing'
    this.#parts.noteUnwitnessed(isUnwitnessed, (isNoted) => {
      // A note that may still be there does no harm.
      this.#note = isUnwitnessed && isNoted ? 'present' : 'absent'
      const waiting = this.#waiting
      this.#waiting = []
      for (const each of waiting) {
        if (this.#note === 'present') this.#withoutWitness(each)
        else each(false)
      }
    })
  }

  /**
   * The last home need not answer: its grants have witnesses, and what it used before it was the
   * home has ended.
   */
  #exempt(): string | undefined {
    const { previous, unwitnessed } = this.#takeover
    if (previous === undefined || previous.node === this.#parts.id || unwitnessed.includes(previous.node))
      return undefined
    return this.#takenOverMs - previous.sinceMs >= GRANT_MS ? previous.node : undefined
  }

  #holders(exempt: string | undefined): Collection[] {
    const { id, sightings } = this.#parts
    const { previous, unwitnessed } = this.#takeover
    const nodes = new Set([...sightings.holders(this.#takenOverMs), ...unwitnessed])
    if (previous !== undefined) nodes.add(previous.node)
    nodes.delete(id)
    if (exempt !== undefined) nodes.delete(exempt)
    const start = { after: 0, instance: '', askedMs: Number.NEGATIVE_INFINITY, isAsking: false, isDone: false }
    return [...nodes].flatMap((node) =>
      [node, ...(exempt === undefined ? [] : [exempt])].map((of) => ({ ...start, node, of })),
    )
  }

  #collectOwn(of: string, generation: number): void {
    const { id, memory } = this.#parts
    for (let after = 0; ; ) {
      const { part, grants } = memory.collect(id, { kind: 'collect', of, after, generation })
      if (part === 0 || !this.#add(grants)) return
      after = part
    }
  }

  #collect(now: number): void {
    const open = this.#collections.filter(({ isDone }) => !isDone)
    if (open.length === 0) this.#isOpen = true
    for (const each of open) if (!each.isAsking && now - each.askedMs >= COLLECT_AGAIN_MS) this.#askFor(each)
  }

  #askFor(collection: Collection): void {
    const { ask, nowMs } = this.#parts
    const { node, of, after } = collection
    collection.askedMs = nowMs()
    collection.isAsking = true
    const { generation } = this.#takeover
    ask(node, { kind: 'collect', generation, of, after }, (answer) => {
      collection.isAsking = false
      this.#onCollected(collection, answer)
    })
  }

  #onCollected(collection: Collection, answer: Answer | undefined): void {
    if (this.#isOpen || !this.#canCollect || answer?.kind !== 'collect' || !answer.isComplete) return
    const isSame = collection.instance === '' || collection.instance === answer.instance
    collection.instance = answer.instance
    if (!isSame) collection.after = 0
    else if (answer.part === 0) collection.isDone = true
    else if (this.#add(answer.grants)) collection.after = answer.part
    else return
    if (collection.isDone) this.tick()
    else this.#askFor(collection)
  }

  /** Returns false if the counts are full. */
  #add(grants: Uint8Array): boolean {
    const bytes = Buffer.from(grants.buffer, grants.byteOffset, grants.length)
    for (let at = 0; at < bytes.length; at += GRANT_BYTES) {
      const keyHash = bytes.subarray(at, at + HASH_BYTES)
      if (!this.#parts.counts.add(keyHash, bytes.readUInt16LE(at + HASH_BYTES))) this.#canCollect = false
      if (!this.#canCollect) return false
    }
    return true
  }
}
