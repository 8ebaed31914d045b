import { setTimeout as later } from 'node:timers/promises'
import { systemClock } from '../../kernel/process/clock.ts'
import { isFault } from '../../kernel/process/error-codes.ts'
import { logFailure } from '../../kernel/process/failure.ts'
import type { Logger } from '../../kernel/process/log.ts'
import type { Store } from '../../store/store.ts'
import { patiently, StreamBeginsAfter, StreamEndsBefore } from '../log/brokers.ts'
import type { ChangeStream } from '../log/change-stream.ts'
import type { EventLog } from '../log/event-log.ts'
import type { Snapshot, SnapshotStore } from '../log/snapshot-store.ts'
import { ChangeFollower } from './change-follower.ts'
import { ChangePublisher } from './change-publisher.ts'
import {
  ANSWERING_MS,
  REPORT_EVERY_MS,
  SNAPSHOT_END_MS,
  TAKEOVER_AFTER_MS,
  UPGRADE_AFTER_MS,
  WATCH_MS,
} from './limits.ts'
import { nodeMessage, type Sender } from './messages.ts'
import { SnapshotMaker } from './snapshot-maker.ts'

export interface MemberOptions {
  readonly stream: ChangeStream
  readonly events: EventLog
  readonly snapshots: SnapshotStore
  /** Name of this node, for people. */
  readonly name: string
  /** Whether this node may become the primary. */
  readonly mayLead: boolean
  readonly log: Logger
  /** Starts what only the primary does. The store can be written from now on. */
  readonly onPromoted: () => void | Promise<void>
  /** Receives the Fault with which the node has to stop. */
  readonly onFailure: (error: unknown) => void
}

/**
 * A node of a cluster: follows the changes of the primary, and becomes the primary when that one is
 * silent. The stream of changes is the lock: a node becomes the primary by appending a takeover
 * right after the last message that it has read. So of several nodes one succeeds, and a primary
 * that was paused meanwhile appends nothing more.
 */
export class ClusterMember {
  readonly #store: Store
  readonly #options: MemberOptions
  readonly #follower: ChangeFollower
  readonly #stopping = new AbortController()
  #publisher: ChangePublisher | undefined
  #snapshots: SnapshotMaker | undefined
  #following: Promise<void> | undefined
  #watch: NodeJS.Timeout | undefined
  #report: NodeJS.Timeout | undefined
  /** Since when the brokers answer. undefined: they did not, the last time. */
  #answeringSinceMs: number | undefined
  #snapshotting: Promise<void> | undefined
  #takingOver: Promise<void> | undefined

  constructor(store: Store, options: MemberOptions) {
    this.#store = store
    this.#options = options
    this.#follower = new ChangeFollower(store.environment, options.stream, options.log)
  }

  get isPrimary(): boolean {
    return this.#publisher !== undefined
  }

  /** Id of the store, and the generation of the last primary that it knows. */
  get state(): { readonly node: string; readonly generation: number } {
    return this.#follower.state
  }

  /** Copies of the store on the brokers, as far as this node knows them: as the primary. */
  get kept(): readonly Snapshot[] {
    return this.#snapshots?.kept ?? []
  }

  /** Why nothing can be changed, if this node is the primary. */
  get problem(): string | undefined {
    return this.#publisher?.isPaused ? 'the brokers do not acknowledge changes' : undefined
  }

  /** The last message of the stream of changes that the store has. */
  get sequence(): number {
    return this.#publisher?.sequence ?? this.#follower.state.sequence
  }

  /** The last message of the stream. Throws if the brokers do not answer. */
  lastSequence(): Promise<number> {
    return this.#options.stream.lastSequence()
  }

  /** Changes that this node has published or repeated since its start. */
  get changes(): { readonly published: number; readonly applied: number } {
    return { published: this.#publisher?.published ?? 0, applied: this.#follower.applied }
  }

  /**
   * Milliseconds since the store was last current. On the primary itself, since the last message
   * was sent that the brokers acknowledged.
   */
  get silenceMs(): number {
    return performance.now() - (this.#publisher?.acknowledgedMs ?? this.#follower.freshMs)
  }

  /**
   * Follows the changes, and returns when the store has those that were in the stream at some time
   * since this call.
   *
   * @throws Fault REPLACED, BROKERS_LOST: the store has to be replaced by a snapshot;
   *   BROKERS_UNREACHABLE
   */
  async start(): Promise<void> {
    const { stream, onFailure } = this.#options
    const { sequence } = this.#follower.state
    if ((await patiently(() => stream.lastSequence())) <= sequence) {
      await patiently(() => stream.assertHas(sequence))
      this.#follower.hasCaughtUp = true
    }
    let hasStarted = false
    await new Promise<void>((resolve, reject) => {
      const onRead = (): void => {
        if (this.#follower.hasCaughtUp) resolve()
      }
      const onError = (error: unknown): void => (hasStarted ? onFailure : reject)(error)
      this.#following = this.#follower.follow(onRead).catch(onError)
      onRead()
      this.#stopping.signal.addEventListener('abort', () => resolve())
    })
    hasStarted = true
    // The first node of a cluster waits for no other one, unless its store is empty.
    const { environment, organizations } = this.#store
    const hasData = environment.read(() => organizations.ids().length > 0)
    if (this.#follower.state.sequence === 0 && hasData) this.#follower.isVacant = true
  }

  /** From now on, this node becomes the primary when there is none. Call after start(). */
  watch(): void {
    this.#watch = setInterval(() => {
      this.#takingOver ??= this.#takeOverIfSilent().finally(() => {
        this.#takingOver = undefined
      })
    }, WATCH_MS)
    this.#report = setInterval(() => this.#makeSnapshotIfDue(), REPORT_EVERY_MS)
  }

  /** From now on, this node does not become the primary. Waits if it is just becoming it. */
  async stopWatching(): Promise<void> {
    this.#stopping.abort()
    clearInterval(this.#watch)
    clearInterval(this.#report)
    await this.#takingOver
  }

  /** The primary publishes what is left, and resigns. Call when nothing writes any more. */
  async stop(): Promise<void> {
    await this.stopWatching()
    this.#follower.stop()
    await this.#following
    await this.#publisher?.stop()
    // An upload ends with the connection.
    await Promise.race([this.#snapshotting, later(SNAPSHOT_END_MS, undefined, { ref: false })])
  }

  async #takeOverIfSilent(): Promise<void> {
    const { stream, mayLead, log } = this.#options
    const follower = this.#follower
    if (!mayLead || !follower.hasCaughtUp || this.isPrimary) return
    // The brokers are asked before the primary has been silent for long enough, not after.
    if (performance.now() - follower.heardMs < this.#silenceMin - ANSWERING_MS) {
      this.#answeringSinceMs = undefined
      return
    }
    try {
      const last = await stream.lastSequence()
      const nowMs = performance.now()
      this.#answeringSinceMs ??= nowMs
      // Another node may have taken over while the brokers were asked.
      const silenceMin = this.#silenceMin
      const isSilent = nowMs - follower.heardMs >= silenceMin && nowMs - this.#answeringSinceMs >= ANSWERING_MS
      const isTurn = silenceMin === 0 || isSilent
      if (isTurn && last === follower.lastRead && !this.#store.environment.full) await this.#takeOver()
    } catch (error) {
      this.#answeringSinceMs = undefined
      log.warn({ reason: (error as Error).message }, 'the brokers do not answer')
    }
  }

  /** Milliseconds without a message of the primary, after which this node may take over. */
  get #silenceMin(): number {
    const upgradeMs = this.#store.environment.isMigrationPending ? UPGRADE_AFTER_MS : 0
    return (this.#follower.isVacant ? 0 : TAKEOVER_AFTER_MS) + upgradeMs
  }

  async #takeOver(): Promise<void> {
    const { stream, name, log, onFailure } = this.#options
    const { node, generation } = this.#follower.state
    const { lastRead: sequence } = this.#follower
    const sender: Sender = { node, name, generation: generation + 1 }
    const bytes = nodeMessage('takeover', sender)
    const sentMs = performance.now()
    const { kind } = await stream.append(bytes, sequence + 1)
    if (kind !== 'appended') {
      const found = await stream.message(sequence + 1)
      if (found === undefined || !bytes.equals(found)) return
    }
    if (this.#stopping.signal.aborted) return
    // Everything before it was read, and after it only this node appends.
    this.#follower.stop()
    await this.#following
    try {
      this.#lead(sender, sequence + 1, sentMs)
    } catch (error) {
      return onFailure(error)
    }
    log.info(
      { generation: sender.generation, silentMs: Math.round(performance.now() - this.#follower.heardMs) },
      'this node is the primary',
    )
    try {
      await this.#options.onPromoted()
    } catch (error) {
      onFailure(error)
    }
  }

  #lead(sender: Sender, sequence: number, sentMs: number): void {
    const { environment } = this.#store
    const { stream, log, onFailure } = this.#options
    environment.shrinkUnrecorded(() => {
      const { state } = environment.replication
      if (state === undefined) throw new Error('internal error: the store is not replicated')
      const { generation, name: primary } = sender
      environment.replication.putState({ ...state, mode: 'primary', generation, primary, sequence })
    })
    if (environment.isMigrationPending) {
      environment.migrateCluster()
      log.info({ schema: environment.schemaVersion }, 'the stores of the cluster are migrated')
    }
    this.#snapshots = new SnapshotMaker(
      this.#store,
      this.#options,
      systemClock,
      () => this.#publisher?.isAlone ?? false,
    )
    this.#publisher = new ChangePublisher(environment, stream, sender, sequence, sentMs, log)
    this.#publisher.start(onFailure)
    this.#makeSnapshotIfDue()
  }

  #makeSnapshotIfDue(): void {
    if (this.#snapshots === undefined || this.#snapshotting !== undefined) return
    this.#snapshotting = this.#snapshots
      .makeIfDue(this.#stopping.signal)
      .then((snapshot) => {
        if (snapshot === undefined) return
        const { name, bytes, sequence } = snapshot
        this.#options.log.info({ snapshot: name, bytes, sequence }, 'made a snapshot for other nodes')
      })
      .catch((error: unknown) =>
        logFailure(this.#options.log, error, 'no snapshot was made; retrying', { level: 'warn' }),
      )
      .finally(() => {
        this.#snapshotting = undefined
      })
  }
}

/** Whether the store has to be replaced by a snapshot, because its changes are not the stream's. */
export function needsSnapshot(error: unknown): boolean {
  // The store may be the only one with what the brokers have lost.
  if (error instanceof StreamEndsBefore) return false
  return isFault(error, 'REPLACED') || isFault(error, 'BROKERS_LOST')
}

/** Whether a store that is replaced may have changes that the cluster lacks, and is to be kept. */
export function mayHaveOwnChanges(error: unknown, firstUnpublished: number | undefined): boolean {
  return firstUnpublished !== undefined || !(error instanceof StreamBeginsAfter)
}
