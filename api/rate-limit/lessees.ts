import {
  ALLOWANCE_MAX,
  BOUND_MS,
  FREE_AFTER_MS,
  GRANT_MS,
  HOLD_MS,
  LEASE_MS,
  type LeaseAnswer,
  type LeaseQuestion,
  type Share,
} from './protocol.ts'

/** How long a change of the share takes until no node has uses of the former one. */
const CHANGE_MS = LEASE_MS + GRANT_MS
const NO_SHARE: Share = { allowance: 0, others: 0 }

/** A node that may have uses of an allowance that count. */
export interface Lessee {
  readonly node: string
  /** '': not known, because an earlier home has leased. */
  instance: string
  /** When its lease ends at the latest. */
  untilMs: number
  /** From when on it may use the allowance. */
  freeMs: number
  /** From when on a key that it does not hold counts as one of which it has used all. */
  readonly countsFromMs: number
  /** It did not answer, and is asked again from now on. */
  retryMs: number
}

export interface LesseesOptions {
  readonly nowMs: () => number
  /** The share of each node by their number. undefined: there are too many. */
  readonly shareOf: (nodes: number) => Share | undefined
  /** Nodes with leases of an earlier home. */
  readonly inherited: readonly string[]
}

/**
 * The leases of the home. A node is in the list from its first lease on, until its last use no
 * longer counts, and the home asks it to hold each key. So a node that was in the list without
 * interruption may use its allowance.
 */
export class Lessees {
  readonly #options: LesseesOptions
  readonly #byNode = new Map<string, Lessee>()
  #share: Share
  /** The largest share of a node before the last change. */
  #before: number
  #changedMs: number

  constructor(options: LesseesOptions) {
    const { nowMs, inherited, shareOf } = options
    this.#options = options
    const now = nowMs()
    for (const node of inherited) {
      this.#byNode.set(node, {
        node,
        instance: '',
        untilMs: now + LEASE_MS,
        freeMs: Number.POSITIVE_INFINITY,
        countsFromMs: now,
        retryMs: 0,
      })
    }
    this.#share = this.#leastOf(inherited.length)
    this.#before = inherited.length === 0 ? 0 : (shareOf(1)?.allowance ?? ALLOWANCE_MAX)
    this.#changedMs = now
  }

  /** Those whose uses may count. */
  all(): Lessee[] {
    const now = this.#options.nowMs()
    for (const [node, { untilMs }] of this.#byNode) if (now >= untilMs + GRANT_MS) this.#byNode.delete(node)
    return [...this.#byNode.values()]
  }

  /** Whether uses of it count now, or may come while a grant of now counts. */
  mayUse(lessee: Lessee): boolean {
    const now = this.#options.nowMs()
    if (this.#byNode.get(lessee.node) !== lessee || now >= lessee.untilMs + GRANT_MS) return false
    return now >= lessee.countsFromMs
  }

  /** The most uses of a key that a node may have made within GRANT_MS, or makes now. */
  get usesMax(): number {
    const isChanging = this.#options.nowMs() - this.#changedMs < CHANGE_MS
    return isChanging ? Math.max(this.#before, this.#share.allowance) : this.#share.allowance
  }

  /** Leases the allowance to a node. */
  lease({ from, instance, allowance: current, freeInMs }: LeaseQuestion): LeaseAnswer {
    const now = this.#options.nowMs()
    const nodes = this.all().length
    const known = this.#byNode.get(from)
    const listed = known === undefined ? nodes + 1 : nodes
    this.#change(listed, now)
    const isInherited = known?.instance === '' && current > 0
    const isNew = !isInherited && known?.instance !== instance
    if (isNew && !this.#hasShareFor(listed)) return { kind: 'lease', ...NO_SHARE, freeInMs: 0 }
    // It was not in the list, so it has used nothing that counts.
    const countsFromMs = now + FREE_AFTER_MS - (HOLD_MS - BOUND_MS)
    const lessee = known ?? { node: from, instance, untilMs: 0, freeMs: 0, countsFromMs, retryMs: 0 }
    if (isInherited) lessee.freeMs = now + freeInMs
    if (isNew) lessee.freeMs = now + FREE_AFTER_MS
    lessee.instance = instance
    lessee.untilMs = now + LEASE_MS
    this.#byNode.set(from, lessee)
    const { others } = this.#share
    return { kind: 'lease', allowance: this.#allowanceNow(current), others, freeInMs: Math.max(0, lessee.freeMs - now) }
  }

  /** Grants of the last GRANT_MS have counted what the node had, so it gets no more at once. */
  #allowanceNow(current: number): number {
    const { allowance } = this.#share
    if (this.#options.nowMs() - this.#changedMs >= GRANT_MS) return allowance
    return Math.min(allowance, current > 0 ? current : this.#before)
  }

  #hasShareFor(nodes: number): boolean {
    return (this.#options.shareOf(nodes)?.allowance ?? 0) >= this.#share.allowance
  }

  #change(nodes: number, now: number): void {
    const share = this.#options.shareOf(nodes)
    if (share === undefined || share.allowance === this.#share.allowance || now - this.#changedMs < CHANGE_MS) return
    this.#before = this.#share.allowance
    this.#share = share
    this.#changedMs = now
  }

  /** The share by the number of nodes, or the least one. */
  #leastOf(nodes: number): Share {
    for (let count = Math.max(1, nodes); count > 0; count--) {
      const share = this.#options.shareOf(count)
      if (share !== undefined) return share
    }
    return NO_SHARE
  }
}
