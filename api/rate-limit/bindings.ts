import type { Lessee, Lessees } from './lessees.ts'
import {
  type Answer,
  type Ask,
  BIND_WAIT_MS,
  BOUND_MS,
  type Counts,
  HASH_BYTES,
  HOLD_MS,
  hashAt,
  keyName,
  NO_HOLD_MS,
  REBIND_MS,
  unpackUses,
} from './protocol.ts'

/** About 25 MB. */
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
  readonly holders: readonly Lessee[]
  /** Those that did not answer. */
  readonly missing: readonly Lessee[]
}

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
    const binding = this.#bindings.get(keyName(hash))
    if (binding === undefined || nowMs() - binding.sentMs >= BOUND_MS) return undefined
    if (binding.missing.length === 0) return 0
    return binding.missing.filter((lessee) => lessees.has(lessee)).length * lessees.usesMax
  }

  /** Whether to bind the key again although it is bound. */
  #isDue({ sentMs, missing }: Binding, now: number): boolean {
    if (now - sentMs >= REBIND_MS) return true
    if (missing.length === 0 || now - sentMs < NO_HOLD_MS) return false
    return missing.some((lessee) => lessee.retryMs <= now && this.#parts.lessees.has(lessee))
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
    const all = round.answers.map(({ lessee }) => lessee)
    for (const [index, name] of round.names.entries()) {
      const before = this.#bindings.get(name)
      const refused: Lessee[] = []
      for (const { lessee, uses, atMs } of round.answers) {
        const agesMs = uses[index]
        if (agesMs === undefined) refused.push(lessee)
        // What it used before it held the key is in the counts, and it has used nothing since.
        else if (!(before?.holders.includes(lessee) && now - before.sentMs < HOLD_MS))
          for (const ageMs of agesMs) this.#parts.counts.add(hashAt(round.hashes, index), ageMs + now - atMs)
      }
      const holders = refused.length === 0 ? all : all.filter((lessee) => !refused.includes(lessee))
      const missing = refused.length === 0 ? round.missing : [...round.missing, ...refused]
      this.#bindings.delete(name)
      this.#bindings.set(name, { sentMs: round.sentMs, holders, missing })
      this.#pending.delete(name)
    }
    for (const done of round.done) done()
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
