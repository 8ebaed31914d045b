import type { NodeMessages } from '../../engine/log/node-messages.ts'
import { logFailure } from '../../engine/process/failure.ts'
import type { Logger } from '../../engine/process/log.ts'
import type { MetricRow } from '../../engine/process/metrics.ts'
import type { ClusterMember, Takeover } from '../../engine/replication/cluster-member.ts'
import { confirmChanges } from '../../engine/store/confirm-changes.ts'
import type { Store } from '../../engine/store/store.ts'
import type { Allowance } from './allowance.ts'
import { ALLOWANCE_ID, type KeptGrants, type ResumedRates } from './kept-rates.ts'
import { RateMemory } from './memory.ts'
import { permitRows } from './metrics.ts'
import { RateNode } from './node.ts'
import { type Answer, GRANT_MS, HASH_BYTES, PERMIT_MS, type Question, shareOf } from './protocol.ts'
import type { RateLimit } from './rate-limit.ts'
import { NodeSightings, type Sighted } from './sightings.ts'
import { packAnswer, packQuestion, unpackAnswer, unpackQuestion } from './wire.ts'

const POLL_MS = 250
/** How long a node that has resigned answers the next home. */
const LINGER_MS = 1500
/** It has collected, if it has not asked for this time. */
const COLLECTED_MS = 300

export interface ClusterRateOptions {
  readonly store: Store
  readonly member: ClusterMember
  readonly messages: NodeMessages
  /** The name of this node. */
  readonly name: string
  readonly log: Logger
  /** The counts of all nodes, while this one is the primary. */
  readonly counts: RateLimit
  readonly allowance: Allowance
  readonly resumed: ResumedRates
}

interface Polled {
  readonly rows: readonly Sighted[]
  /** The last change of the store. */
  readonly change: number
  readonly polledMs: number
}

/** Connects the rate limit of API keys (node.ts) with brokers, store and API threads. */
export class ClusterRate {
  readonly #options: ClusterRateOptions
  readonly #id: string
  readonly #memory: RateMemory
  readonly #allowanceCompleteFromMs: number
  readonly #sightings = new NodeSightings()
  readonly #node: RateNode
  #timer: NodeJS.Timeout | undefined
  /** Rows that the brokers may lack. */
  #unconfirmed: Polled | undefined
  #generation = 0
  #isHome = false
  /** Every node of the table knows allowances. */
  #mayLease = false
  #collectedMs = Number.NEGATIVE_INFINITY

  constructor(options: ClusterRateOptions) {
    this.#options = options
    const { store, name, resumed } = options
    const { node: id } = options.member.state
    this.#id = id
    const rows = store.environment.read(() => store.nodes.all())
    // A home grants only to nodes whose report is in the table.
    const mayHaveUsed = resumed.isFound || rows.some((row) => row.id === id || row.name === name)
    // Nobody asks this store for what the one before it has used.
    const kept = resumed.kept?.node === id ? resumed.kept : undefined
    const isComplete = kept !== undefined || !mayHaveUsed
    this.#memory = new RateMemory(nowMs, isComplete ? nowMs() : nowMs() + GRANT_MS)
    const grants = new Map(kept?.grants)
    const uses = grants.get(ALLOWANCE_ID)
    grants.delete(ALLOWANCE_ID)
    if (kept !== undefined) this.#memory.resume(id, grants, kept.elapsedMs)
    if (kept !== undefined && uses !== undefined) options.allowance.resume(uses, kept.elapsedMs)
    this.#allowanceCompleteFromMs = uses === undefined && mayHaveUsed ? nowMs() + GRANT_MS : nowMs()
    this.#node = new RateNode({
      id,
      nowMs,
      ask: (node, question, done, timeoutMs) => void this.#ask(node, question, timeoutMs).then(done),
      memory: this.#memory,
      sightings: this.#sightings,
      allowance: options.allowance,
      allowanceCompleteFromMs: this.#allowanceCompleteFromMs,
      shareOf,
      home: () => options.member.primary,
    })
  }

  start(): void {
    this.#options.messages.listen(this.#id, (question, respond) => this.#answer(question, respond))
    this.#poll()
    this.#timer = setInterval(() => {
      this.#poll()
      this.#node.tick()
    }, POLL_MS)
  }

  /** Permits of an API thread. */
  permits(hashes: Uint8Array, done: (verdicts: Uint8Array) => void): void {
    this.#node.permits(hashes, done)
  }

  /** This node is the primary, and its row is in the store. */
  takeOver({ generation, previous, isFirst }: Takeover): void {
    const { member, store, counts, log } = this.#options
    this.#isHome = true
    // The last home may have admitted a node after the last poll.
    const rows = store.environment.read(() => store.nodes.all())
    this.#sightings.addUnknown(
      rows.map(({ id }) => id),
      nowMs(),
    )
    this.#poll()
    // Another one was the primary for less than a poll.
    if (previous !== undefined) this.#notePrimary(previous)
    const parts = {
      counts,
      mayGrant: () => member.isOnlyPrimary,
      mayLease: () => this.#mayLease,
      noteUnwitnessed: (isUnwitnessed: boolean, done: (isNoted: boolean) => void) =>
        void this.#noteUnwitnessed([this.#id], isUnwitnessed).then(done),
      forgetUnwitnessed: () => {
        const others = store.environment.read(() => store.nodes.unwitnessed()).filter((id) => id !== this.#id)
        if (others.length > 0) void this.#noteUnwitnessed(others, false)
      },
    }
    this.#node.takeOver(parts, {
      generation,
      // Counts that this node has kept have uses of allowances that nodes report again.
      isKnown: isFirst,
      previous,
      unwitnessed: store.environment.read(() => store.nodes.unwitnessed()),
    })
    const { unknownSeconds } = this.#node
    if (unknownSeconds > 0) log.info('collects the counts of the rate limit from the other nodes')
  }

  /** Call after the node has resigned. Other nodes may still ask it. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    const hasOthers = this.#sightings.admitted(nowMs()).some((id) => id !== this.#id)
    const endMs = nowMs() + (this.#isHome && hasOthers ? LINGER_MS : 0)
    const hasCollected = (): boolean => nowMs() - this.#collectedMs >= COLLECTED_MS && this.#collectedMs > 0
    while (nowMs() < endMs && !hasCollected()) await new Promise((resolve) => setTimeout(resolve, POLL_MS / 10))
    this.#options.messages.stop()
  }

  /**
   * What the next process needs. Call after stop(), and when the API threads have ended. undefined:
   * this one does not know it.
   */
  kept(): KeptGrants | undefined {
    if (!this.#memory.isComplete) return undefined
    const grants = this.#memory.all(this.#id)
    if (nowMs() >= this.#allowanceCompleteFromMs) grants.set(ALLOWANCE_ID, this.#options.allowance.all())
    return { node: this.#id, grants }
  }

  rows(): MetricRow[] {
    const { notRemembered } = this.#memory
    const { unknownSeconds, notBound } = this.#node
    const { used: allowed, full: allowanceFull, answered, unavailable } = this.#options.allowance.counters
    return permitRows({ allowed, answered, unavailable, allowanceFull, notBound, notRemembered, unknownSeconds })
  }

  #poll(): void {
    const { store, member } = this.#options
    const polledMs = nowMs()
    const { rows, change, first } = store.environment.read(() => {
      const { state, firstUnpublished } = store.environment.replication
      return { rows: store.nodes.all(), change: state?.change ?? 0, first: firstUnpublished }
    })
    this.#mayLease = rows.every(({ knowsAllowances }) => knowsAllowances === true)
    const polled = { rows: rows.map(({ id, reportedAtMs }) => ({ id, stamp: String(reportedAtMs) })), change, polledMs }
    if (member.primary !== undefined && !this.#isHome) this.#notePrimary(member.primary)
    this.#unconfirmed ??= polled
    const isConfirmed = first === undefined || first > this.#unconfirmed.change
    if (!isConfirmed) return
    this.#sightings.poll(this.#unconfirmed.rows, this.#unconfirmed.polledMs)
    this.#unconfirmed = undefined
    if (first === undefined) this.#sightings.poll(polled.rows, polledMs)
  }

  /** After this node has read that another one is the primary. */
  #notePrimary({ node, generation }: { readonly node: string; readonly generation: number }): void {
    if (generation === this.#generation) return
    this.#generation = generation
    if (node !== this.#id) this.#sightings.onTakeover(nowMs())
  }

  async #noteUnwitnessed(ids: readonly string[], isUnwitnessed: boolean): Promise<boolean> {
    const { store, log } = this.#options
    try {
      store.environment.write(() => {
        for (const id of ids) store.nodes.setUnwitnessed(id, isUnwitnessed)
      })
      await confirmChanges(store)
      return true
    } catch (error) {
      logFailure(log, error, 'the witness of the rate limit was not noted', { level: 'warn' })
      return false
    }
  }

  async #ask(node: string, question: Question, timeoutMs = PERMIT_MS): Promise<Answer | undefined> {
    const bytes = await this.#options.messages.ask(node, packQuestion(question), timeoutMs)
    try {
      return bytes && unpackAnswer(bytes)
    } catch {
      // Of another release.
      return undefined
    }
  }

  #answer(bytes: Uint8Array, respond: (answer: Uint8Array) => void): void {
    let question: Question
    try {
      question = unpackQuestion(bytes)
    } catch {
      // Of another release.
      return
    }
    if ('hashes' in question && question.hashes.length % HASH_BYTES !== 0) return
    if (question.kind === 'collect') this.#collectedMs = nowMs()
    this.#node.answer(question, (answer) => respond(packAnswer(answer)))
  }
}

function nowMs(): number {
  return performance.now()
}
