import { setTimeout as later } from 'node:timers/promises'
import type { Environment } from '../../kernel/lmdb/environment.ts'
import type { ReplicationMode } from '../../kernel/lmdb/replication.ts'
import { Fault, isFault } from '../../kernel/process/error-codes.ts'
import { logFailure } from '../../kernel/process/failure.ts'
import type { Logger } from '../../kernel/process/log.ts'
import { StreamPatience } from '../log/brokers.ts'
import type { ChangeStream } from '../log/change-stream.ts'
import {
  FULLNESS_EVERY_MS,
  PAUSE_AFTER_MS,
  PUBLISH_BYTES_MAX,
  PUBLISH_POLL_MS,
  STREAM_SHARE_MAX,
  TICK_MS,
  WATCH_MS,
} from './limits.ts'
import { changeMessages, nodeMessage, type Sender } from './messages.ts'

/** Publishes the changes of the primary's store in order, and ticks while there are none. */
export class ChangePublisher {
  /** Changes published since the start. */
  published = 0
  readonly #environment: Environment
  readonly #stream: ChangeStream
  readonly #sender: Sender
  readonly #log: Logger
  /** The last message of the stream. */
  #sequence: number
  /** When the last acknowledged message was sent. */
  acknowledgedMs: number
  #mode: ReplicationMode = 'primary'
  #isStopping = false
  /** An estimate between two checks. */
  #streamBytes = 0
  /** 0: not known yet. */
  #streamBytesMax = 0
  #isNearlyFull = false
  #checkedMs = 0
  readonly #patience = new StreamPatience()
  #running: Promise<void> | undefined
  #watch: NodeJS.Timeout | undefined

  /**
   * @param sequence the number of the message that made this node the primary
   * @param sentMs when that message was sent
   */
  constructor(
    environment: Environment,
    stream: ChangeStream,
    sender: Sender,
    sequence: number,
    sentMs: number,
    log: Logger,
  ) {
    this.acknowledgedMs = sentMs
    this.#environment = environment
    this.#stream = stream
    this.#sender = sender
    this.#sequence = sequence
    this.#log = log
  }

  /** The last message of the stream that has a change of this store or an earlier one. */
  get sequence(): number {
    return this.#sequence
  }

  get isPaused(): boolean {
    return this.#mode === 'paused'
  }

  /**
   * Whether no other node can be the primary now. A replica takes over when it has read every
   * message, and none for TAKEOVER_AFTER_MS. It reads the last acknowledged one after that was
   * sent, so it waits until acknowledgedMs + TAKEOVER_AFTER_MS. Unlike the mode, this needs no
   * timer, so it also holds right after a pause of the process. After a resignation, another node
   * may take over at once.
   */
  get isAlone(): boolean {
    return !this.#isStopping && performance.now() - this.acknowledgedMs < PAUSE_AFTER_MS
  }

  /** @param onReplaced receives a Fault when another node is the primary. The service must stop. */
  start(onReplaced: (error: unknown) => void): void {
    this.#watch = setInterval(() => this.#pauseIfSilent(), WATCH_MS)
    this.#running = this.#publish()
      .catch(onReplaced)
      .finally(() => clearInterval(this.#watch))
  }

  /** Publishes what is left and resigns, so that another node need not wait. */
  async stop(): Promise<void> {
    clearInterval(this.#watch)
    this.#isStopping = true
    await this.#running
  }

  async #publish(): Promise<void> {
    const { replication } = this.#environment
    let tickedMs = performance.now()
    let after = 0
    const isLeft = (): boolean => this.#environment.read(() => replication.unpublished(after, 1)).length > 0
    while (!this.#isStopping || isLeft()) {
      const changes = this.#environment.read(() => replication.unpublished(after, PUBLISH_BYTES_MAX))
      const last = changes.at(-1)
      if (last !== undefined) {
        const { generation } = this.#sender
        const messages = changeMessages(generation, changes)
        // Only ticks name the primary, for nodes that have joined since.
        if (performance.now() - tickedMs >= TICK_MS) {
          messages.push(nodeMessage('tick', this.#sender))
          tickedMs = performance.now()
        }
        if (!(await this.#append(messages))) return
        after = last.number
        this.published += changes.length
        await this.#checkFullness(messages.reduce((sum, { length }) => sum + length, 0))
        this.#confirm(last.number)
      } else if (performance.now() - tickedMs >= TICK_MS) {
        tickedMs = performance.now()
        if (!(await this.#append([nodeMessage('tick', this.#sender)]))) return
        await this.#checkFullness(0)
      } else {
        await later(PUBLISH_POLL_MS)
      }
      if (this.#mode === 'paused' && !this.#isNearlyFull && performance.now() - this.acknowledgedMs < PAUSE_AFTER_MS)
        this.#setMode('primary')
    }
    await this.#append([nodeMessage('resignation', this.#sender)])
    this.#writeState('replica', after)
  }

  /**
   * Returns when the brokers have all messages, in order. One at a time: the brokers compare only
   * the number of the last message. If the takeover of another node took the number of a message,
   * the next one in flight would have the expected number, and would be appended.
   *
   * @returns false if they did not get them before stop()
   * @throws Fault REPLACED, BROKERS_LOST
   */
  async #append(messages: readonly Buffer[]): Promise<boolean> {
    for (const bytes of messages) {
      // Replicas may have read the first attempt.
      const sentMs = performance.now()
      for (;;) {
        const outcome = await this.#stream.append(bytes, this.#sequence + 1)
        if (outcome.kind !== 'conflict') this.#patience.reset()
        // Without an answer, the next attempt shows whether this one was appended. A read would
        // wait until the brokers have elected a leader, and miss it.
        if (
          outcome.kind === 'appended' ||
          (outcome.kind === 'conflict' && (await this.#isInStream(bytes, this.#sequence + 1)))
        ) {
          this.#sequence++
          this.acknowledgedMs = sentMs
          break
        }
        const why = outcome.kind === 'unknown' ? outcome.why : 'it does not follow the last message of the stream'
        this.#log.warn({ reason: why }, 'a change was not published, trying again')
        if (this.#isStopping) return false
        await later(WATCH_MS)
      }
    }
    return true
  }

  /**
   * @throws Fault REPLACED if another message has the number; BROKERS_LOST if one had it and was
   *   trimmed, if messages before it are lost, or if this is another stream
   */
  async #isInStream(bytes: Buffer, sequence: number): Promise<boolean> {
    let found: Uint8Array | undefined
    try {
      found = await this.#stream.message(sequence)
      if (found === undefined) await this.#stream.assertHas(sequence - 1)
      this.#patience.reset()
    } catch (error) {
      if (!this.#patience.mayPass(error)) throw error
      return false
    }
    if (found === undefined) return false
    if (bytes.equals(found)) return true
    this.#setMode('replica')
    throw new Fault('REPLACED', 'another node is the primary now')
  }

  /** Changes up to `number` are published. */
  #confirm(number: number): void {
    if (!this.#isNearlyFull) this.#mode = 'primary'
    this.#writeState(this.#mode, number)
  }

  /** The rest of a nearly full stream is for ticks, and for what is already written. */
  async #checkFullness(appendedBytes: number): Promise<void> {
    this.#streamBytes += appendedBytes
    const isDue = this.#isNearlyFull || this.#streamBytes > this.#streamBytesMax * STREAM_SHARE_MAX
    if (!isDue || performance.now() - this.#checkedMs < FULLNESS_EVERY_MS) return
    this.#checkedMs = performance.now()
    const state = await this.#stream.state().catch(() => undefined)
    if (state === undefined) return
    this.#streamBytes = state.bytes
    this.#streamBytesMax = state.bytesMax
    const isNearlyFull = state.bytes > state.bytesMax * STREAM_SHARE_MAX
    if (isNearlyFull && !this.#isNearlyFull)
      this.#log.warn('the stream of changes is nearly full, nothing is changed until a snapshot has trimmed it')
    this.#isNearlyFull = isNearlyFull
    if (isNearlyFull && this.#mode === 'primary') this.#setMode('paused')
  }

  #setMode(mode: ReplicationMode): void {
    this.#mode = mode
    this.#writeState(mode, 0)
    if (mode === 'paused') this.#log.warn('the brokers do not acknowledge changes, nothing is changed until they do')
    else if (mode === 'primary') this.#log.info('the brokers acknowledge changes again')
  }

  #writeState(mode: ReplicationMode, number: number): void {
    const { replication } = this.#environment
    try {
      this.#environment.shrinkUnrecorded(() => {
        const { state } = replication
        if (state === undefined) return
        const primary = mode === 'replica' ? '' : state.primary
        replication.putState({ ...replication.removeTo(number, state), mode, primary, sequence: this.#sequence })
      })
    } catch (error) {
      if (!isFault(error, 'STORE_FULL')) throw error
      // The next change that is published removes these, too.
      logFailure(this.#log, error, 'published changes are not removed from the store now', { level: 'warn' })
    }
  }

  #pauseIfSilent(): void {
    if (this.#mode === 'primary' && performance.now() - this.acknowledgedMs > PAUSE_AFTER_MS) this.#setMode('paused')
  }
}
