import type { EventAcceptor } from '../engine/ingest/accept.ts'
import { EventLogReader } from '../engine/ingest/event-log-reader.ts'
import { type EventLogWriteCounters, EventLogWriter } from '../engine/ingest/event-log-writer.ts'
import type { LogState } from '../engine/log/event-log.ts'
import type { JetStreamLog } from '../engine/log/jetstream.ts'
import { systemClock } from '../engine/process/clock.ts'
import type { Logger } from '../engine/process/log.ts'
import type { MetricRow } from '../engine/process/metrics.ts'
import type { Store } from '../engine/store/store.ts'
import type { ServiceSettings } from './config.ts'

const MEGABYTE = 1024 * 1024
const PREFIX = 'posture_log_'

/** The log between listeners and store: batches are appended to it, and read from it. */
export class ReplicatedLog {
  readonly writer: EventLogWriter
  readonly #log: JetStreamLog
  readonly #reader: EventLogReader

  private constructor(log: JetStreamLog, writer: EventLogWriter, reader: EventLogReader) {
    this.#log = log
    this.writer = writer
    this.#reader = reader
  }

  /**
   * Connects to the brokers of the settings and begins to read.
   *
   * @returns undefined if the settings name none
   * @throws Faults of JetStreamLog.open
   */
  static async open(
    { log: servers, logCredentials: credentialsFile, logCa: caFile, logMegabytes }: ServiceSettings,
    acceptor: EventAcceptor,
    store: Store,
    logger: Logger,
    onFailure: (error: Error) => void,
  ): Promise<ReplicatedLog | undefined> {
    if (servers.length === 0) return undefined
    // Imported here, because most services have no brokers.
    const { JetStreamLog } = await import('../engine/log/jetstream.ts')
    const position = store.logPositions.events
    const options = { servers, credentialsFile, caFile, bytesMax: logMegabytes * MEGABYTE }
    const log = await JetStreamLog.open(options, position, logger, onFailure)
    const { lastSequence = 0 } = (await log.state()) ?? {}
    const unread = lastSequence - (position?.sequence ?? 0)
    logger.info({ brokers: servers, unread }, 'events are kept in the log of the brokers')
    const reader = new EventLogReader(log, acceptor, store, logger)
    reader.start(onFailure)
    return new ReplicatedLog(log, new EventLogWriter(log, store, systemClock), reader)
  }

  /** Why senders have to wait, if they do. */
  get problem(): string | undefined {
    return this.#log.problem
  }

  /** Call after the listeners were drained. */
  stop(): Promise<void> {
    return this.#reader.stop()
  }

  async rows(): Promise<MetricRow[]> {
    return logRows(this.writer.counters, this.#reader, await this.#log.state())
  }
}

/** The Prometheus metrics of the log. Without `state`, the brokers do not answer. */
export function logRows(
  { appended, deferred, removed }: EventLogWriteCounters,
  reader: Pick<EventLogReader, 'counters' | 'sequence'>,
  state: LogState | undefined,
): MetricRow[] {
  const rows: MetricRow[] = [
    [
      'batches_total',
      'counter',
      'Batches for the log of the brokers by outcome',
      { appended, deferred, organization_removed: removed },
      'outcome',
    ],
    ['read_batches_total', 'counter', 'Batches that were read from the log', reader.counters.read],
    [
      'malformed_batches_total',
      'counter',
      'Batches in the log that no service can have written',
      reader.counters.malformed,
    ],
    ['up', 'gauge', '1 while the brokers answer', state === undefined ? 0 : 1],
  ]
  if (state !== undefined) {
    const unread = Math.max(0, state.lastSequence - reader.sequence)
    rows.push(
      ['unread_batches', 'gauge', 'Batches in the log that the store does not have', unread],
      ['bytes', 'gauge', 'Bytes in the log', state.bytes],
      ['bytes_max', 'gauge', 'Bytes at which the log is full and senders have to wait', state.bytesMax],
    )
  }
  return rows.map(([name, ...rest]) => [PREFIX + name, ...rest] as const)
}
