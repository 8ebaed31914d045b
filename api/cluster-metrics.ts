import type { LogState } from '../engine/cluster/log/event-log.ts'
import type { EventLogReader } from '../engine/ingest/event-log-reader.ts'
import type { EventLogWriteCounters } from '../engine/ingest/event-log-writer.ts'
import type { MetricRow } from '../engine/kernel/process/metrics.ts'
import { programVersion } from '../engine/kernel/process/version.ts'

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

export interface ClusterState {
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
