import { setTimeout as later } from 'node:timers/promises'
import type { EventLog, LogMessage } from '../cluster/log/event-log.ts'
import { UNSTORED_BATCHES_MAX, UNSTORED_BYTES_MAX } from '../cluster/log/limits.ts'
import { SECOND_MS } from '../kernel/process/clock.ts'
import { Fault, isFault } from '../kernel/process/error-codes.ts'
import type { Logger } from '../kernel/process/log.ts'
import { RETRY_AFTER_SECONDS } from '../limits.ts'
import type { Store } from '../store/store.ts'
import type { EventAcceptor } from './accept.ts'
import { addCounters, type NodeCounters, unpackCounters } from './node-counters.ts'

/** How often the state of the brokers is read. Few transactions begin in between. */
const SLOW_POLL_MS = 10

/** A message that was read and is not yet durable in the store. */
interface Waiting {
  readonly sequence: number
  readonly bytes: number
  /** In the transaction that is being written, or nothing of it is left to store. */
  isDone: boolean
}

/** Since the start. */
export interface EventLogReadCounters {
  read: number
  /** Batches that no sender of this service can have written. */
  malformed: number
}

/**
 * Stores the batches of a log. The position in the log is written in the transaction that stores
 * the events, and duplicates are recognized by the ids of the events. So each event counts once,
 * whatever is killed and whatever is in the log twice.
 */
export class EventLogReader {
  readonly counters: EventLogReadCounters = { read: 0, malformed: 0 }
  readonly #log: EventLog
  readonly #acceptor: EventAcceptor
  readonly #store: Store
  readonly #logger: Logger
  /** In order of the log. */
  readonly #waiting: Waiting[] = []
  readonly #taking = new Set<Promise<void>>()
  #waitingBytes = 0
  #checkedMs = 0
  /** Called when a message is stored, and when the reading ends. */
  readonly #wakeUps = new Set<() => void>()
  #reading: Promise<void> | undefined
  readonly #stopping = new AbortController()

  constructor(log: EventLog, acceptor: EventAcceptor, store: Store, logger: Logger) {
    this.#log = log
    this.#acceptor = acceptor
    this.#store = store
    this.#logger = logger
  }

  /** The last message whose events are durable in the store. */
  get sequence(): number {
    return this.#store.environment.read(() => this.#store.logPositions.events?.sequence ?? 0)
  }

  /** @param onFailure receives the Fault that ends the reading: the service must stop. */
  start(onFailure: (error: Error) => void): void {
    this.#reading = this.#read(onFailure).catch(onFailure)
  }

  /** Waits until what was read is stored. What was not stays in the log. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#wakeUp()
    this.#log.stopReading()
    await this.#reading
  }

  async #read(onFailure: (error: Error) => void): Promise<void> {
    for await (const message of this.#log.read(this.#store.logPositions.events)) {
      await this.#until(() => this.#waiting.length < UNSTORED_BATCHES_MAX && this.#waitingBytes < UNSTORED_BYTES_MAX)
      await this.#untilPublished()
      if (this.#stopping.signal.aborted) break
      this.counters.read++
      const waiting: Waiting = { sequence: message.sequence, bytes: message.bytes.length, isDone: false }
      this.#waiting.push(waiting)
      this.#waitingBytes += waiting.bytes
      const taken = this.#take(message, waiting)
        .catch(onFailure)
        .finally(() => this.#taking.delete(taken))
      this.#taking.add(taken)
    }
    await Promise.all(this.#taking)
  }

  async #take(message: LogMessage, waiting: Waiting): Promise<void> {
    // What was counted has no ids, so it counts once only if the position is after it.
    if (message.kind === 'counters') await this.#until(() => this.#waiting[0] === waiting)
    for (;;) {
      if (this.#stopping.signal.aborted) return
      if (await this.#tryStore(message, waiting)) break
      await later(RETRY_AFTER_SECONDS * SECOND_MS, undefined, { signal: this.#stopping.signal }).catch(() => {})
    }
    while (this.#waiting[0]?.isDone === true) this.#waitingBytes -= this.#waiting.shift()?.bytes ?? 0
    this.#wakeUp()
  }

  /**
   * Returns whether nothing of the message is left to store.
   *
   * @throws Fault STORE_DAMAGED: a record of the organization. Another node has its own copy of it,
   *   and becomes the primary.
   */
  async #tryStore(message: LogMessage, waiting: Waiting): Promise<boolean> {
    const alongside = (): void => {
      waiting.isDone = true
      this.#putPosition()
    }
    const onAborted = (): void => {
      waiting.isDone = false
    }
    const { bytes, receivedMs } = message
    if (message.kind === 'counters') return this.#tryCount(message, waiting, alongside)
    const options = { deduplicate: true, receivedMs, alongside, onAborted }
    const outcome = await this.#acceptor.acceptPacked(message.organizationId, bytes, options)
    if (outcome.kind === 'retry') {
      if (!outcome.isDamaged) return false
      throw new Fault('STORE_DAMAGED', `organization ${message.organizationId}: its events cannot be stored`)
    }
    if (outcome.kind !== 'stored') this.#skip(message, waiting, outcome.kind === 'malformed' ? outcome.why : undefined)
    return true
  }

  #tryCount(message: LogMessage, waiting: Waiting, alongside: () => void): boolean {
    let counters: NodeCounters
    try {
      counters = unpackCounters(message.bytes)
    } catch (error) {
      this.#skip(message, waiting, (error as Error).message)
      return true
    }
    try {
      this.#store.environment.write(() => {
        addCounters(this.#store, counters)
        alongside()
      })
      return true
    } catch (error) {
      waiting.isDone = false
      if (isFault(error, 'STORE_DAMAGED')) throw error
      if (error instanceof Fault) return false
      // Rows that another release wrote.
      this.#skip(message, waiting, (error as Error).message)
      return true
    }
  }

  /** Nothing of the message can be stored, now or later. */
  #skip({ sequence }: LogMessage, waiting: Waiting, malformed: string | undefined): void {
    if (malformed !== undefined) {
      this.counters.malformed++
      this.#logger.error({ sequence, reason: malformed }, 'a batch in the log is malformed')
    }
    waiting.isDone = true
    try {
      this.#store.environment.write(() => this.#putPosition())
    } catch {
      // The disk is full. The position is written with the next batch.
    }
  }

  /**
   * Runs in the transaction. Messages before one that waits for space are stored later, so the
   * position stays before it.
   */
  #putPosition(): void {
    let sequence = 0
    for (const waiting of this.#waiting) {
      if (!waiting.isDone) break
      sequence = waiting.sequence
    }
    if (sequence > 0) this.#store.logPositions.put({ sequence, created: this.#log.created })
  }

  /** Waits while the brokers are slower than this node stores. */
  async #untilPublished(): Promise<void> {
    if (performance.now() - this.#checkedMs < SLOW_POLL_MS) return
    const { environment } = this.#store
    while (environment.read(() => environment.replication.areBrokersSlow) && !this.#stopping.signal.aborted)
      await later(SLOW_POLL_MS)
    this.#checkedMs = performance.now()
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition() && !this.#stopping.signal.aborted) {
      await new Promise<void>((resolve) => this.#wakeUps.add(resolve))
    }
  }

  #wakeUp(): void {
    const wakeUps = [...this.#wakeUps]
    this.#wakeUps.clear()
    for (const wakeUp of wakeUps) wakeUp()
  }
}
