/*
 * The interface of a replicated log of events. A batch is a message in msgpack as a sender uploads
 * it (engine/kernel/event/event.ts), of one organization. The messages of a log are numbered from 1, and
 * stay until they are trimmed.
 */

/** Subjects are `ev.<partition>.<organization>`. Fixed: it is part of every stored message. */
const PARTITIONS = 256

/**
 * The partition of an organization, from 0. The first byte of a random UUID (RFC 9562, section 5.4)
 * is evenly distributed.
 */
export function partitionOf(organizationId: string): number {
  return Number.parseInt(organizationId.slice(0, 2), 16) % PARTITIONS
}

/** What a store has read of a log. */
export interface LogPosition {
  /** The last message that was read. 0: none. */
  readonly sequence: number
  /**
   * When the log was created, as the brokers say: a log that was deleted and created again has
   * other messages under the same numbers.
   */
  readonly created: string
}

/** A batch of events, or what a node has counted, from the log. */
export type LogMessage = {
  readonly sequence: number
  readonly bytes: Uint8Array
  /** When a node received it from its sender, in milliseconds since 1970. */
  readonly receivedMs: number
} & ({ readonly kind: 'events'; readonly organizationId: string } | { readonly kind: 'counters' })

/** Why a batch was not appended. The sender has to retry. */
export type AppendFailure = 'the log is full' | 'the log is not reachable' | 'the service is busy'

/** A log of events that survives the loss of this machine. */
export interface EventLog {
  /**
   * Appends a batch. Returns when it is durable on a quorum of the brokers: undefined. It can be in
   * the log twice, and also after a failure, so readers need the ids of its events.
   */
  append(organizationId: string, bytes: Uint8Array, receivedMs: number): Promise<AppendFailure | undefined>
  /** The same for what a node has counted (engine/ingest/node-counters.ts). */
  appendCounters(bytes: Uint8Array): Promise<AppendFailure | undefined>
  /**
   * The messages after `after`, ascending, without end until stopReading(). Waits while the brokers
   * are not reachable.
   *
   * @throws Fault BROKERS_LOST if messages after `after` are missing
   */
  read(after: LogPosition | undefined): AsyncIterable<LogMessage>
  /** When the log was created. */
  readonly created: string
  /** Why senders have to wait, if they do. */
  readonly problem: AppendFailure | undefined
  /** Deletes the messages up to `sequence`. */
  trim(sequence: number): Promise<void>
  /** undefined: the brokers do not answer. */
  state(): Promise<LogState | undefined>
  stopReading(): void
}

export interface LogState {
  readonly lastSequence: number
  readonly bytes: number
  readonly bytesMax: number
}

/** The state of a stream, for administrators. */
export interface StreamReport {
  readonly name: string
  /** '' during an election. */
  readonly leader: string
  /** Brokers that have all of its messages, with the leader. */
  readonly current: number
  readonly replicas: number
  readonly messages: number
  readonly bytes: number
  /** -1: the disk is the limit. */
  readonly bytesMax: number
}
