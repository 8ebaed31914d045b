import { setTimeout as later } from 'node:timers/promises'
import type { Environment } from '../../kernel/lmdb/environment.ts'
import type { ReplicationState } from '../../kernel/lmdb/replication.ts'
import { SECOND_MS } from '../../kernel/process/clock.ts'
import { Fault, isFault } from '../../kernel/process/error-codes.ts'
import { logFailure } from '../../kernel/process/failure.ts'
import type { Logger } from '../../kernel/process/log.ts'
import { lostMessages } from '../log/brokers.ts'
import type { ChangeStream } from '../log/change-stream.ts'
import { APPLY_BYTES_MAX, APPLY_CHANGES_MAX, FRESH_PENDING_MAX, PAUSED_AFTER_MS, WATCH_MS } from './limits.ts'
import { type ChangePart, type ChangesMessage, type NodeMessage, readMessage, type Sender } from './messages.ts'

/** A message of which the store has only a note, or a complete change. */
type Pending =
  | { readonly sequence: number; readonly message: NodeMessage }
  | { readonly sequence: number; readonly generation: number; readonly number: number; readonly writes: Buffer }

/** Repeats the changes of the primary in the store of a replica, in order. */
export class ChangeFollower {
  /** Changes that were repeated since the start. */
  applied = 0
  /** When the last message of the primary was read. */
  heardMs = performance.now()
  /** When the store was last close to the end of the stream. */
  freshMs = performance.now()
  /** The last message that was read. The store may lack the first parts of a change at the end. */
  lastRead: number
  /** Whether every message that was in the stream at some time since the start was read. */
  hasCaughtUp = false
  /** Whether the last primary has stopped by itself, or this node was the last one. */
  isVacant = false
  readonly #environment: Environment
  readonly #stream: ChangeStream
  readonly #log: Logger
  readonly #parts: ChangePart[] = []
  #pending: Pending[] = []
  #pendingBytes = 0
  #isStopped = false
  #awakeMs = performance.now()
  #pauses = 0
  /** Messages up to this one may have waited in the connection during a pause of this process. */
  #oldUpTo = 0

  constructor(environment: Environment, stream: ChangeStream, log: Logger) {
    this.#environment = environment
    this.#stream = stream
    this.#log = log
    this.lastRead = this.state.sequence
  }

  /** Ends follow(), also while the disk is full. */
  stop(): void {
    this.#isStopped = true
    this.#stream.stopReading()
  }

  /** @throws Error if the store is not replicated */
  get state(): ReplicationState {
    const state = this.#environment.read(() => this.#environment.replication.state)
    if (state === undefined) throw new Error('internal error: the store is not replicated')
    return state
  }

  /**
   * Follows the stream until stopReading().
   *
   * @param onRead called after each transaction
   * @throws Fault REPLACED if the store has changes that the stream lacks; BROKERS_LOST if the
   *   stream lacks changes of the store
   */
  async follow(onRead: () => void): Promise<void> {
    const watch = setInterval(() => this.#noticePause(), WATCH_MS)
    try {
      for await (const { sequence, bytes, pending } of this.#stream.read(this.state.sequence)) {
        this.#noticePause()
        this.heardMs = performance.now()
        this.#take(sequence, readMessage(bytes))
        const isFull = this.#pendingBytes >= APPLY_BYTES_MAX || this.#pending.length >= APPLY_CHANGES_MAX
        if (pending > 0 && !isFull) continue
        await this.#apply()
        this.lastRead = sequence
        // Not now: the disk, and with it this process, may have hung since.
        if (pending <= FRESH_PENDING_MAX && sequence > this.#oldUpTo) this.freshMs = this.heardMs
        this.hasCaughtUp ||= pending === 0
        onRead()
      }
    } finally {
      clearInterval(watch)
    }
  }

  /** Call before anything that was received is used. */
  #noticePause(): void {
    const nowMs = performance.now()
    const pausedMs = nowMs - this.#awakeMs
    this.#awakeMs = nowMs
    if (pausedMs > PAUSED_AFTER_MS) this.#distrustReceived()
  }

  /** The messages that this process has already received may be as old as its pause. */
  #distrustReceived(): void {
    this.#pauses++
    if (this.#oldUpTo === Number.POSITIVE_INFINITY) return
    this.#oldUpTo = Number.POSITIVE_INFINITY
    void this.#askForLast()
  }

  /** Messages after an answer to a question that was asked after the pause are news. */
  async #askForLast(): Promise<void> {
    while (!this.#isStopped) {
      const pauses = this.#pauses
      const last = await this.#stream.lastSequence().catch(() => undefined)
      this.#noticePause()
      if (last !== undefined && pauses === this.#pauses) {
        this.#oldUpTo = last
        return
      }
      await later(WATCH_MS)
    }
  }

  #take(sequence: number, message: ChangePart | ChangesMessage | NodeMessage): void {
    if (message.kind !== 'change') {
      // A primary that was killed in the middle of a change repeats all its parts.
      this.#parts.length = 0
      if (message.kind === 'changes') this.#takeAll(sequence, message)
      else this.#pending.push({ sequence, message })
      return
    }
    const { generation, number, part, parts } = message
    if (part === 0) this.#parts.length = 0
    // A copy: the client may reuse the memory of a message.
    this.#parts.push({ ...message, writes: Buffer.from(message.writes) })
    if (this.#parts.length !== part + 1) throw lostMessages('changes', `change ${number} is incomplete`)
    if (part + 1 < parts) return
    const writes = Buffer.concat(this.#parts.map((each) => each.writes))
    this.#parts.length = 0
    this.#pending.push({ sequence, generation, number, writes })
    this.#pendingBytes += writes.length
  }

  #takeAll(sequence: number, { generation, first, writes: all }: ChangesMessage): void {
    // A copy: the client may reuse the memory of a message.
    for (const [index, writes] of all.entries())
      this.#pending.push({ sequence, generation, number: first + index, writes: Buffer.from(writes) })
    this.#pendingBytes += all.reduce((sum, { length }) => sum + length, 0)
  }

  /** Waits while the disk is full. */
  async #apply(): Promise<void> {
    const pending = this.#pending
    this.#pending = []
    this.#pendingBytes = 0
    while (pending.length > 0 && !this.#isStopped) {
      try {
        return this.#write(pending)
      } catch (error) {
        if (!isFault(error, 'STORE_FULL')) throw error
        logFailure(this.#log, error, 'the changes of the primary are not stored, trying again', { level: 'warn' })
        await later(SECOND_MS)
        this.#distrustReceived()
      }
    }
  }

  #write(pending: readonly Pending[]): void {
    const { replication } = this.#environment
    this.#environment.writeUnrecorded(() => {
      let state = replication.state
      if (state === undefined) throw new Error('internal error: the store is not replicated')
      for (const each of pending)
        state = 'message' in each ? this.#noted(state, each.message) : this.#repeated(state, each)
      replication.putState({ ...state, sequence: pending.at(-1)?.sequence ?? state.sequence })
    })
  }

  #noted(state: ReplicationState, { kind, sender }: NodeMessage): ReplicationState {
    const isOwn = sender.node === state.node
    if (!isOwn) this.#assertPublished()
    // The store of the first primary is only in its snapshot.
    if (!isOwn && state.generation === 0) throw new Fault('REPLACED', `${sender.name} is the first node of the cluster`)
    assertFollows(state, kind, sender)
    this.isVacant = kind === 'resignation' || isOwn
    const { generation, name: primary } = sender
    return { ...state, generation, primary: kind === 'resignation' ? '' : primary }
  }

  #repeated(state: ReplicationState, change: Extract<Pending, { writes: Buffer }>): ReplicationState {
    const { replication } = this.#environment
    const { generation, number, writes } = change
    if (generation !== state.generation)
      throw lostMessages('changes', `change ${number} is of generation ${generation}, after ${state.generation}`)
    if (number <= state.change) {
      // A change of this store, which was published before the node stopped.
      return replication.removeTo(number, state)
    }
    this.#assertPublished()
    if (number !== state.change + 1) throw lostMessages('changes', `change ${number} follows change ${state.change}`)
    replication.repeat(writes)
    this.applied++
    return { ...state, change: number }
  }

  /** @throws Fault REPLACED */
  #assertPublished(): void {
    if (this.#environment.replication.firstUnpublished === undefined) return
    throw new Fault('REPLACED', 'another node became the primary before the last changes of this store were published')
  }
}

/**
 * Each primary begins with a takeover, in the generation after the last one. Otherwise the brokers
 * were restored from a copy that is older than the store, and another node has continued it.
 *
 * @throws Fault BROKERS_LOST
 */
function assertFollows({ generation, primary }: ReplicationState, kind: NodeMessage['kind'], sender: Sender): void {
  const isNext = sender.generation === generation + 1
  // '': the store is a snapshot, or this node was the primary.
  const isSame = sender.generation === generation && (primary === '' || primary === sender.name)
  if (kind === 'takeover' ? isNext : isSame) return
  const found = `${kind} of ${sender.name} in generation ${sender.generation}`
  throw lostMessages('changes', `${found}, after ${primary || 'a primary'} in generation ${generation}`)
}
