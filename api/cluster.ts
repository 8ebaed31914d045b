import type { Brokers } from '../engine/cluster/log/brokers.ts'
import type { LogState } from '../engine/cluster/log/event-log.ts'
import type { JetStreamLog } from '../engine/cluster/log/jetstream.ts'
import type { ClusterMember, MemberOptions } from '../engine/cluster/replication/cluster-member.ts'
import type { JoinOptions } from '../engine/cluster/replication/join-cluster.ts'
import { REPORT_EVERY_MS } from '../engine/cluster/replication/limits.ts'
import { makeStaleness, Staleness } from '../engine/cluster/replication/staleness.ts'
import type { EventAcceptor } from '../engine/ingest/accept.ts'
import { EventLogReader } from '../engine/ingest/event-log-reader.ts'
import { type EventLogWriteCounters, EventLogWriter } from '../engine/ingest/event-log-writer.ts'
import type { CounterSink } from '../engine/ingest/ingest-accounting.ts'
import { type NodeCounters, packCounters } from '../engine/ingest/node-counters.ts'
import type { Replication } from '../engine/kernel/lmdb/replication.ts'
import { systemClock } from '../engine/kernel/process/clock.ts'
import { Fault } from '../engine/kernel/process/error-codes.ts'
import type { Logger } from '../engine/kernel/process/log.ts'
import type { MetricRow } from '../engine/kernel/process/metrics.ts'
import { programVersion } from '../engine/kernel/process/version.ts'
import type { ClusterNode, NodeRole } from '../engine/store/nodes.ts'
import { Store } from '../engine/store/store.ts'
import type { ServiceSettings } from './config.ts'
import type { KeyUseSink } from './key-uses.ts'
import { ClusterRate } from './rate-limit/cluster-rate.ts'
import { RateLimit } from './rate-limit/rate-limit.ts'
import { makeUseQueues } from './rate-limit/uses.ts'

const PREFIX = 'posture_log_'

/** The Prometheus metrics of the log. Without `state`, the brokers do not answer. */
export function logRows(
  { appended, deferred, removed }: EventLogWriteCounters,
  reader: Pick<EventLogReader, 'counters' | 'sequence'> | undefined,
  state: LogState | undefined,
): MetricRow[] {
  const outcomes = { appended, deferred, organization_removed: removed }
  const rows: MetricRow[] = [
    ['batches_total', 'counter', 'Batches for the log of the brokers by outcome', outcomes, 'outcome'],
    ['read_batches_total', 'counter', 'Messages that were read from the log', reader?.counters.read ?? 0],
    [
      'malformed_batches_total',
      'counter',
      'Messages in the log that no service can have written',
      reader?.counters.malformed ?? 0,
    ],
    ['up', 'gauge', '1 while the brokers answer', state === undefined ? 0 : 1],
  ]
  if (state !== undefined) {
    if (reader !== undefined) {
      const unread = Math.max(0, state.lastSequence - reader.sequence)
      rows.push(['unread_batches', 'gauge', 'Messages in the log that the store does not have', unread])
    }
    rows.push(
      ['bytes', 'gauge', 'Bytes in the log', state.bytes],
      ['bytes_max', 'gauge', 'Bytes at which the log is full and senders have to wait', state.bytesMax],
    )
  }
  return rows.map(([name, ...rest]) => [PREFIX + name, ...rest] as const)
}

interface ClusterState {
  /** Name of this node. */
  readonly node: string
  readonly isPrimary: boolean
  readonly published: number
  readonly applied: number
  readonly silenceMs: number
}

/** The Prometheus metrics of a node of a cluster. */
export function clusterRows({ node, isPrimary, published, applied, silenceMs }: ClusterState): MetricRow[] {
  return [
    [
      'posture_cluster_node_info',
      'gauge',
      '1, with the name and the release of this node',
      [{ labels: { node, version: programVersion() }, value: 1 }],
    ],
    ['posture_cluster_primary', 'gauge', '1 on the primary', isPrimary ? 1 : 0],
    [
      'posture_cluster_changes_total',
      'counter',
      'Transactions that this node has published as the primary, or repeated as a replica',
      { published, applied },
      'outcome',
    ],
    [
      'posture_cluster_silence_seconds',
      'gauge',
      'Time since this node was up to date: at most 256 messages of the primary unread; on the primary, since its last acknowledged message',
      silenceMs / 1000,
    ],
  ]
}

const MEGABYTE = 1024 * 1024
const STALE_WATCH_MS = 250
/**
 * Of the size of the log of events. Snapshots are made when a stream is half full, and the rest has
 * to last until then.
 */
const CHANGES_SHARE = 0.25
const CHANGES_BYTES_MIN = 256 * MEGABYTE
/** The streams of which the primary reports the state. */
const STREAMS = ['events', 'changes', 'OBJ_snapshots']

/** How the service becomes a node, and what it does as one. */
interface ClusterOptions {
  readonly settings: ServiceSettings
  readonly log: Logger
  readonly signal: AbortSignal
  /** Receives the Fault with which the service has to stop. */
  readonly onFailure: (error: unknown) => void
}

/** The service as a node of a cluster: a log of events on brokers, and a replicated store. */
export class Cluster {
  readonly store: Store
  readonly writer: EventLogWriter
  readonly #brokers: Brokers
  readonly #events: JetStreamLog
  readonly #member: ClusterMember
  readonly #options: ClusterOptions
  #onPromoted: MemberOptions['onPromoted'] = () => {}
  #rate: ClusterRate | undefined
  #reader: EventLogReader | undefined
  /** For API threads. */
  readonly shared: { readonly staleness: SharedArrayBuffer; readonly uses: SharedArrayBuffer }
  readonly #stale: Staleness
  #report: NodeJS.Timeout | undefined
  #isReporting = false
  #staleWatch: NodeJS.Timeout | undefined

  private constructor(
    store: Store,
    brokers: Brokers,
    events: JetStreamLog,
    member: (promoted: MemberOptions['onPromoted']) => ClusterMember,
    options: ClusterOptions,
  ) {
    this.store = store
    this.#brokers = brokers
    this.#events = events
    this.#options = options
    this.shared = { staleness: makeStaleness(), uses: makeUseQueues(options.settings.apiThreads) }
    this.#stale = new Staleness(this.shared.staleness)
    this.writer = new EventLogWriter(events, store, systemClock, () => this.#stale.isStale)
    this.#member = member(() => this.#onPromoted())
  }

  /**
   * Connects to the brokers of the settings, and prepares the data directory: afterwards the store
   * has the changes that the brokers had.
   *
   * @throws Fault USAGE, BROKERS_*, CONFLICT, and those of the store
   */
  static async join(options: ClusterOptions): Promise<Cluster> {
    const { settings, log, onFailure, signal } = options
    const {
      brokers: servers,
      brokerCredentials: credentialsFile,
      brokerCa: caFile,
      brokerMegabytes,
      dataDir,
    } = settings
    // Imported here, because most services have no brokers.
    const [
      { Brokers },
      { JetStreamLog },
      { ChangeStream },
      { SnapshotStore },
      { joinCluster, beginWithSnapshot },
      { ClusterMember, mayHaveOwnChanges, needsSnapshot },
    ] = await Promise.all([
      import('../engine/cluster/log/brokers.ts'),
      import('../engine/cluster/log/jetstream.ts'),
      import('../engine/cluster/log/change-stream.ts'),
      import('../engine/cluster/log/snapshot-store.ts'),
      import('../engine/cluster/replication/join-cluster.ts'),
      import('../engine/cluster/replication/cluster-member.ts'),
    ])
    const brokers = await Brokers.open({ servers, credentialsFile, caFile }, log, onFailure)
    try {
      const bytesMax = brokerMegabytes * MEGABYTE
      const changesBytesMax = Math.max(CHANGES_BYTES_MIN, Math.floor(bytesMax * CHANGES_SHARE))
      const events = await JetStreamLog.open(brokers, bytesMax, log)
      const snapshots = await SnapshotStore.open(brokers)
      const { nodeName: name, roles } = settings
      const own = { events, snapshots, name, mayLead: roles.includes('scan'), log }
      for (let attempt = 1; ; attempt++) {
        const stream = await ChangeStream.open(brokers, changesBytesMax, log)
        const join: JoinOptions = { dataDirectory: dataDir, stream, snapshots, log, signal }
        await joinCluster(join)
        const store = new Store(dataDir)
        const member = (onPromoted: MemberOptions['onPromoted']): ClusterMember =>
          new ClusterMember(store, { ...own, stream, onPromoted, onFailure })
        const cluster = new Cluster(store, brokers, events, member, options)
        const failure = await cluster.#begin()
        if (failure === undefined) return cluster
        const { error, state, firstUnpublished } = failure
        if (!needsSnapshot(error) || attempt > 1 || signal.aborted) throw error
        // Another node was the first one meanwhile: joinCluster decides again.
        if (state?.generation === 0) continue
        log.warn({ reason: (error as Error).message }, 'the store is replaced by the last snapshot')
        await beginWithSnapshot(join, mayHaveOwnChanges(error, firstUnpublished))
      }
    } catch (error) {
      await brokers.close()
      throw error
    }
  }

  /** Follows the changes. Returns what failed, and the state of the store, which is closed. */
  async #begin(): Promise<({ error: unknown } & Pick<Replication, 'state' | 'firstUnpublished'>) | undefined> {
    const { environment } = this.store
    try {
      await this.#member.start()
      return undefined
    } catch (error) {
      const { replication } = environment
      const failure = environment.read(() => {
        return { error, state: replication.state, firstUnpublished: replication.firstUnpublished }
      })
      await this.#member.stop()
      await this.store.close()
      return failure
    }
  }

  /** Exchanges the uses of API keys with other nodes. `table` has the counts of this node. */
  startRate(table: SharedArrayBuffer): void {
    const messages = this.#brokers.messagesOf(this.#member.state.node)
    this.#rate = new ClusterRate({ messages, limit: new RateLimit(table), uses: this.shared.uses })
    this.#rate.start()
  }

  /**
   * @param acceptor stores the events of the log while this node is the primary
   * @param onPromoted starts what only the primary does
   */
  start(acceptor: EventAcceptor, onPromoted: () => void | Promise<void>): void {
    const { log, onFailure } = this.#options
    this.#onPromoted = async () => {
      const promoted = onPromoted()
      this.#reader = new EventLogReader(this.#events, acceptor, this.store, log)
      const [state] = await Promise.all([this.#events.state(), promoted])
      const unread = state && state.lastSequence - this.#reader.sequence
      log.info({ unread }, 'reads the events in the log of the brokers')
      this.#reader.start(onFailure)
      void this.#reportNode()
    }
    this.#member.watch()
    this.#setStaleness()
    this.#staleWatch = setInterval(() => this.#setStaleness(), STALE_WATCH_MS)
    this.#report = setInterval(() => void this.#reportNode(), REPORT_EVERY_MS)
    void this.#reportNode()
  }

  get name(): string {
    return this.#options.settings.nodeName
  }

  get isPrimary(): boolean {
    return this.#member.isPrimary
  }

  get isStale(): boolean {
    return this.#stale.isStale
  }

  #setStaleness(): void {
    this.#stale.set(this.#member.silenceMs, this.#options.settings.replicaMaxLag)
  }

  /** What does not work, one line each. */
  get problems(): string[] {
    const problem = this.#events.problem
    return [
      ...(problem === undefined ? [] : [`${problem}, senders are asked to wait`]),
      ...(this.#member.problem === undefined ? [] : [this.#member.problem]),
      ...(this.#stale.isStale ? ['no changes of the cluster are received, the API answers 503'] : []),
    ]
  }

  readonly counterSink: CounterSink = (rows) => {
    const sources = rows.sources.map((source) => ({ ...source, node: this.name }))
    return this.#append({ ...rows, sources })
  }
  readonly keyUseSink: KeyUseSink = (keyUses) => (keyUses.length === 0 ? undefined : this.#append({ keyUses }))

  async #append(counters: Partial<NodeCounters>): Promise<void> {
    const failure = await this.#events.appendCounters(packCounters(counters))
    if (failure !== undefined) throw new Fault('BROKERS_UNREACHABLE', failure)
  }

  /** From now on, this node does not become the primary. Waits if it is just becoming it. */
  stopWatching(): Promise<void> {
    return this.#member.stopWatching()
  }

  /** Waits until the node stores what was read, and, as the primary, has published it. */
  async stop(): Promise<void> {
    clearInterval(this.#report)
    clearInterval(this.#staleWatch)
    this.#rate?.stop()
    await this.#reader?.stop()
    await this.#member.stop()
    await this.#brokers.close()
  }

  #ownRow(lastSequence: number): ClusterNode {
    const { nodeName: name, roles } = this.#options.settings
    const { isPrimary, sequence, state } = this.#member
    const own = { id: state.node, name, isPrimary, roles: roles as NodeRole[], version: programVersion() }
    return { ...own, sequence, lastSequence, reportedAtMs: systemClock.nowMs() }
  }

  async #reportNode(): Promise<void> {
    if (this.#isReporting) return
    this.#isReporting = true
    try {
      const lastSequence = await this.#member.lastSequence()
      const { isPrimary } = this.#member
      const row = this.#ownRow(lastSequence)
      if (isPrimary) {
        // Not through the log: events before it there may wait.
        const reported = { ...row, ...(await this.#sharedReport()) }
        this.store.environment.write(() => this.store.nodes.put(reported))
      } else await this.#append({ node: row })
    } catch (error) {
      const { message } = error as Error
      if (this.#events.problem === undefined) this.#options.log.warn({ reason: message }, 'this node was not reported')
    } finally {
      this.#isReporting = false
    }
  }

  /** What the nodes share. */
  async #sharedReport(): Promise<Pick<ClusterNode, 'streams' | 'snapshots'>> {
    const snapshots = this.#member.kept.map(({ madeAtMs, bytes, sequence }) => ({ madeAtMs, bytes, sequence }))
    return { streams: await this.#brokers.reports(STREAMS), snapshots }
  }

  async rows(): Promise<MetricRow[]> {
    const { changes, isPrimary, silenceMs } = this.#member
    return [
      ...logRows(this.writer.counters, this.#reader, await this.#events.state()),
      ...clusterRows({ ...changes, isPrimary, silenceMs, node: this.#options.settings.nodeName }),
      ...(this.#rate?.rows() ?? []),
    ]
  }
}
