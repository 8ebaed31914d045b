import type { Lessee, Lessees } from './lessees.ts'
import {
  type Answer,
  type Ask,
  BIND_WAIT_MS,
  BOUND_MS,
  type Counts,
  GRANT_MS,
  HASH_BYTES,
  hashAt,
  keyName,
  NO_HOLD_MS,
  REBIND_MS,
  unpackUses,
} from './protocol.ts'

/** About 16 MB, and 42 MB while a node does not answer. */
export const BINDINGS_MAX = 131_072

export interface BindingParts {
  readonly nowMs: () => number
  readonly ask: Ask
  readonly counts: Counts
  readonly lessees: Lessees
}

/** A key that nodes hold. */
interface Binding {
  /** When they were asked. */
  readonly sentMs: number
  /** When each was asked last that holds it. NEVER: it does not. */
  readonly heldSinceMs: ReadonlyMap<Lessee, number>
}

/**
 * How long a node has certainly held a key after it was asked: less than HOLD_MS, because its clock
 * may be faster. Uses from before have ended by then, so none is counted twice.
 */
const HELD_MS = BOUND_MS + GRANT_MS
const NEVER = Number.NEGATIVE_INFINITY

/** Keys for which nodes are asked together. */
interface Round {
  readonly sentMs: number
  readonly names: readonly string[]
  readonly hashes: Uint8Array
  readonly missing: Lessee[]
  readonly answers: { readonly lessee: Lessee; readonly uses: Uses; readonly atMs: number }[]
  readonly done: (() => void)[]
  asked: number
}

/** Ages of the uses of each key. undefined: the node does not hold it. */
type Uses = readonly (readonly number[] | undefined)[]

/**
 * The keys that the home has bound: every node with an allowance holds them, or counts as one that
 * has used all of it.
 */
export class Bindings {
  /** Keys that were not bound because there were too many. */
  full = 0
  readonly #parts: BindingParts
  /** In order of time. */
  readonly #bindings = new Map<string, Binding>()
  readonly #pending = new Map<string, Round>()

  constructor(parts: BindingParts) {
    this.#parts = parts
  }

  /** Binds keys. Calls `done` at once if all are bound, otherwise within BIND_WAIT_MS. */
  bind(hashes: Uint8Array, done: () => void): void {
    const now = this.#parts.nowMs()
    const rounds = new Set<Round>()
    const added = new Map<string, Buffer>()
    let isWaiting = false
    for (let index = 0; index * HASH_BYTES < hashes.length; index++) {
      const hash = hashAt(hashes, index)
      const name = keyName(hash)
      const binding = this.#bindings.get(name)
      const isBound = binding !== undefined && now - binding.sentMs < BOUND_MS
      if (isBound && !this.#isDue(binding, now)) continue
      const round = this.#pending.get(name)
      if (round === undefined) added.set(name, hash)
      else if (!isBound) rounds.add(round)
      isWaiting ||= round === undefined && !isBound
    }
    const round = added.size === 0 ? undefined : this.#ask(added, now)
    if (isWaiting && round !== undefined && round.asked > 0) rounds.add(round)
    let open = rounds.size
    if (open === 0) return done()
    for (const each of rounds) {
      each.done.push(() => {
        if (--open === 0) done()
      })
    }
  }

  /** Uses of a key that nodes may have made without a report. undefined: it is not bound. */
  reserved(hash: Buffer): number | undefined {
    const { nowMs, lessees } = this.#parts
    const now = nowMs()
    const binding = this.#bindings.get(keyName(hash))
    if (binding === undefined || now - binding.sentMs >= BOUND_MS) return undefined
    let nodes = 0
    for (const [lessee, sinceMs] of binding.heldSinceMs) if (this.#mayUse(lessee, sinceMs, now)) nodes++
    return nodes * lessees.usesMax
  }

  /** Whether to bind the key again although it is bound. */
  #isDue({ sentMs, heldSinceMs }: Binding, now: number): boolean {
    if (now - sentMs >= REBIND_MS) return true
    if (now - sentMs < NO_HOLD_MS) return false
    for (const [lessee, sinceMs] of heldSinceMs) {
      if (lessee.retryMs <= now && this.#mayUse(lessee, sinceMs, now)) return true
    }
    return false
  }

  /** A node that has held the key for longer can use its allowance while grants of now count. */
  #mayUse(lessee: Lessee, heldSinceMs: number, now: number): boolean {
    return now - heldSinceMs >= BOUND_MS && this.#parts.lessees.mayUse(lessee)
  }

  #ask(keys: ReadonlyMap<string, Buffer>, now: number): Round {
    const { ask, lessees } = this.#parts
    const names: string[] = []
    const packed: Buffer[] = []
    for (const [name, hash] of keys) {
      if (!this.#hasSpaceFor(name, now)) continue
      names.push(name)
      packed.push(hash)
    }
    const hashes = Buffer.concat(packed)
    const round: Round = { sentMs: now, names, hashes, missing: [], answers: [], done: [], asked: 0 }
    if (names.length === 0) return round
    for (const name of names) this.#pending.set(name, round)
    // One more, so that the round ends after all were asked.
    round.asked = 1
    for (const lessee of lessees.all()) {
      if (lessee.retryMs > now) {
        round.missing.push(lessee)
        continue
      }
      round.asked++
      // Only one round waits for a node that did not answer the last time.
      if (lessee.retryMs > 0) lessee.retryMs = now + NO_HOLD_MS
      ask(lessee.node, { kind: 'bind', hashes }, (answer) => this.#take(round, lessee, answer), BIND_WAIT_MS)
    }
    this.#endIfAnswered(round)
    return round
  }

  #hasSpaceFor(name: string, now: number): boolean {
    if (this.#bindings.has(name)) return true
    for (const [first, { sentMs }] of this.#bindings) {
      if (this.#bindings.size + this.#pending.size < BINDINGS_MAX || now - sentMs < BOUND_MS) break
      this.#bindings.delete(first)
    }
    if (this.#bindings.size + this.#pending.size < BINDINGS_MAX) return true
    this.full++
    return false
  }

  #take(round: Round, lessee: Lessee, answer: Answer | undefined): void {
    const now = this.#parts.nowMs()
    const uses = usesOf(answer, round.names.length)
    if (uses === undefined) {
      lessee.retryMs = now + NO_HOLD_MS
      round.missing.push(lessee)
    } else {
      lessee.retryMs = 0
      round.answers.push({ lessee, uses, atMs: now })
    }
    this.#endIfAnswered(round)
  }

  #endIfAnswered(round: Round): void {
    if (--round.asked > 0) return
    const now = this.#parts.nowMs()
    // Most keys share it, which saves memory.
    const held = new Map(round.answers.map(({ lessee }) => [lessee, round.sentMs]))
    for (const [index, name] of round.names.entries()) {
      this.#pending.delete(name)
      if (!this.#count(round, index, now)) {
        // As if no node had answered: what is bound stays bound, and the next round asks again.
        this.full++
        continue
      }
      const heldSinceMs = this.#heldSince(round, index, held)
      this.#bindings.delete(name)
      this.#bindings.set(name, { sentMs: round.sentMs, heldSinceMs })
    }
    for (const done of round.done) done()
  }

  /** Counts the uses of a key that nodes report. Returns false if the counts are full. */
  #count(round: Round, index: number, now: number): boolean {
    const before = this.#bindings.get(round.names[index] ?? '')
    const hash = hashAt(round.hashes, index)
    for (const { lessee, uses, atMs } of round.answers) {
      // What it used before it held the key is in the counts, and it has used nothing since.
      if (now - (before?.heldSinceMs.get(lessee) ?? NEVER) < HELD_MS) continue
      for (const ageMs of uses[index] ?? []) {
        // The first use gives the key a row. So if one has no place, none was added before it.
        if (!this.#parts.counts.add(hash, ageMs + now - atMs)) return false
      }
    }
    return true
  }

  /** @param held if all nodes hold the key */
  #heldSince(round: Round, index: number, held: ReadonlyMap<Lessee, number>): ReadonlyMap<Lessee, number> {
    if (round.missing.length === 0 && round.answers.every(({ uses }) => uses[index] !== undefined)) return held
    const before = this.#bindings.get(round.names[index] ?? '')
    const heldSinceMs = new Map<Lessee, number>()
    for (const lessee of round.missing) heldSinceMs.set(lessee, before?.heldSinceMs.get(lessee) ?? NEVER)
    for (const { lessee, uses } of round.answers) {
      const sinceMs = before?.heldSinceMs.get(lessee) ?? NEVER
      heldSinceMs.set(lessee, uses[index] === undefined ? sinceMs : round.sentMs)
    }
    return heldSinceMs
  }
}

function usesOf(answer: Answer | undefined, keys: number): Uses | undefined {
  if (answer?.kind !== 'bind' || !answer.isComplete) return undefined
  try {
    return unpackUses(answer.uses, keys)
  } catch {
    // Not of a node.
    return undefined
  }
}
