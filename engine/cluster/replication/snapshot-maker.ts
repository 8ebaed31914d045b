import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { DATA_FILE } from '../../kernel/lmdb/file-access.ts'
import type { Clock } from '../../kernel/process/clock.ts'
import { Store } from '../../store/store.ts'
import type { ChangeStream } from '../log/change-stream.ts'
import type { EventLog } from '../log/event-log.ts'
import type { Snapshot, SnapshotStore } from '../log/snapshot-store.ts'
import { PUBLISH_POLL_MS, SNAPSHOT_EVERY_MS, SNAPSHOT_GAP_MS, STREAM_SHARE_MAX } from './limits.ts'

/**
 * Copies the primary's store to the brokers, and deletes from their streams what both of the last
 * two copies contain.
 */
export class SnapshotMaker {
  readonly #store: Store
  readonly #stream: ChangeStream
  readonly #events: Pick<EventLog, 'trim' | 'state'>
  readonly #snapshots: SnapshotStore
  readonly #clock: Clock
  /** Whether no other node can be the primary now. */
  readonly #isAlone: () => boolean
  /** Those of this cluster on the brokers, the last one first. undefined: not asked yet. */
  kept: readonly Snapshot[] | undefined
  #madeAtMs = 0

  constructor(
    store: Store,
    {
      stream,
      events,
      snapshots,
    }: { stream: ChangeStream; events: Pick<EventLog, 'trim' | 'state'>; snapshots: SnapshotStore },
    clock: Clock,
    isAlone: () => boolean,
  ) {
    this.#store = store
    this.#stream = stream
    this.#events = events
    this.#snapshots = snapshots
    this.#clock = clock
    this.#isAlone = isAlone
  }

  /** Returns undefined if the last one is not old, and the streams have space. */
  async makeIfDue(signal: AbortSignal): Promise<Snapshot | undefined> {
    if (this.kept === undefined) {
      this.kept = (await this.#snapshots.list()).filter(({ created }) => created === this.#stream.created)
      this.#madeAtMs = this.kept[0]?.madeAtMs ?? 0
    }
    const ageMs = this.#clock.nowMs() - this.#madeAtMs
    // A negative age: by the clock of another node.
    if (ageMs >= 0 && ageMs < SNAPSHOT_EVERY_MS && (ageMs < SNAPSHOT_GAP_MS || (await this.#fullShare()) <= 0.5))
      return undefined
    const snapshot = await this.#make(signal)
    if (snapshot !== undefined) this.#madeAtMs = this.#clock.nowMs()
    return snapshot
  }

  async #make(signal: AbortSignal): Promise<Snapshot | undefined> {
    const directory = join(this.#store.dataDirectory, 'store.snapshot')
    rmSync(directory, { recursive: true, force: true })
    mkdirSync(join(directory, 'store'), { recursive: true, mode: 0o700 })
    try {
      await this.#store.environment.copyInto(join(directory, 'store'))
      const content = await this.#contentOf(directory)
      // Before, another node could become the primary without the last changes of the copy.
      while (!this.#isPublished(content.change)) {
        if (signal.aborted) return undefined
        await later(PUBLISH_POLL_MS)
      }
      const kept = await this.#snapshots.add(join(directory, 'store', DATA_FILE), content, this.#isAlone)
      this.kept = kept
      // A full stream stops the cluster. A node that loads the older one begins again.
      const trimmed = (await this.#fullShare()) > STREAM_SHARE_MAX ? kept[0] : kept[1]
      if (trimmed !== undefined) {
        await this.#stream.trim(trimmed.sequence)
        await this.#events.trim(trimmed.events)
      }
      return kept[0]
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  }

  /** Of the fuller stream, from 0 to 1. */
  async #fullShare(): Promise<number> {
    const states = await Promise.all([this.#stream.state(), this.#events.state()])
    return Math.max(0, ...states.map((state) => (state === undefined ? 0 : state.bytes / state.bytesMax)))
  }

  async #contentOf(directory: string) {
    const copy = new Store(directory)
    try {
      return copy.environment.read(() => {
        const state = copy.environment.replication.state
        if (state === undefined) throw new Error('internal error: the store is not replicated')
        const { sequence, change, generation, created } = state
        return { sequence, change, generation, created, events: copy.logPositions.events?.sequence ?? 0 }
      })
    } finally {
      await copy.close()
    }
  }

  #isPublished(change: number): boolean {
    const { environment } = this.#store
    const first = environment.read(() => environment.replication.firstUnpublished)
    return first === undefined || first > change
  }
}
