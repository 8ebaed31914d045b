import type { MessagePort } from 'node:worker_threads'
import type { TlsFiles } from '../http/certificate.ts'
import type { CoverageReport } from '../kernel/event/coverage-report.ts'
import type { FaultCode } from '../kernel/process/error-codes.ts'
import type { LogLevel } from '../kernel/process/log.ts'
import type { CandidateDelta } from '../store/candidates.ts'
import type { CompiledRegistry } from '../store/registry-in-force.ts'
import type { Reject, SourceDelta } from '../store/sources.ts'
import type { UnstoredPlaces } from './accept.ts'
import type { CloseReason, StreamKind } from './connection.ts'
import type { DnstapCounts } from './dnstap/dnstap-reader.ts'
import type { LineStatus } from './line-status.ts'
import type { Listener, SourceOwner } from './sources.ts'
import type { FramingFault } from './syslog/counted.ts'

/*
 * The messages between the threads of syslog ingest. One thread has the sockets. It reads the
 * messages itself, or sends the bytes to lane threads over shared ring buffers. Lanes send matches
 * to the writer thread.
 */

/** An address to listen on. */
export interface SyslogEndpoint {
  readonly kind: 'tls' | 'tcp' | 'udp'
  /** Connections carry dnstap in place of syslog. */
  readonly dnstap?: true
  /** The setting that contains it, for error messages. */
  readonly setting: string
  readonly address: string
  /** 0: chosen by the system. */
  readonly port: number
}

/** Options of every lane. */
export interface LaneData {
  readonly dataDirectory: string
  readonly idleMs: number
  /** Each lane's share of SYSLOG_WAITING_BYTES_MAX. */
  readonly waitingBytesMax: number
  /** Maximum messages per token and second over all lanes. 0: no limit. */
  readonly tokenRateMax: number
  readonly tokenRateTable: SharedArrayBuffer
  readonly registry: CompiledRegistry
}

export interface LaneWorkerData extends LaneData {
  readonly ring: SharedArrayBuffer
  readonly sockets: MessagePort
}

export interface SocketThreadData extends LaneData {
  readonly endpoints: readonly SyslogEndpoint[]
  readonly tls: TlsFiles | undefined
  readonly proxyProtocol: boolean
  /** See StreamListenerOptions. */
  readonly connectionsMax: number
  readonly connectionsPerAddressMax: number
  readonly logLevel: LogLevel
  /** The lane threads. If empty, the socket thread reads the messages itself. */
  readonly lanes: readonly { readonly ring: SharedArrayBuffer; readonly port: MessagePort }[]
}

/** What the log says of a sender. `unknownToken`: unknown, revoked or expired. */
export interface SenderNotice {
  readonly problem: 'noToken' | 'unknownToken' | FramingFault
  readonly listener: Listener
  readonly address: string
  readonly port: number
}

/** From a lane to the writer thread. */
export type FromLane =
  | {
      readonly kind: 'batch'
      readonly id: number
      readonly organizationId: string
      readonly deduplicate: boolean
      readonly bytes: Uint8Array<ArrayBuffer>
      readonly reports: readonly CoverageReport[]
    }
  | {
      readonly kind: 'counters'
      readonly sources: readonly SourceDelta[]
      readonly rejects: readonly Reject[]
      readonly candidates: readonly CandidateDelta[]
    }
  | ({ readonly kind: 'notice' } & SenderNotice)
  | { readonly kind: 'status'; readonly id: number; readonly status: LaneStatus }
  /** What was not stored: accepted messages, and bytes that were received but not processed. */
  | { readonly kind: 'drained'; readonly messages: number; readonly bytes: number }

export type ToLane =
  /**
   * The batch is on disk, except for the events at these indexes. 'all': the organization was
   * removed.
   */
  | { readonly kind: 'settled'; readonly id: number; readonly unstored: UnstoredPlaces | 'all' }
  | { readonly kind: 'status'; readonly id: number }
  | { readonly kind: 'drain'; readonly deadlineMs: number }

/** From the socket thread to the writer thread, in addition to the messages of its own lane. */
export type FromSockets =
  | FromLane
  | { readonly kind: 'listening'; readonly endpoints: readonly SyslogEndpoint[] }
  | { readonly kind: 'failed'; readonly code: FaultCode; readonly message: string }
  | { readonly kind: 'socketStatus'; readonly id: number; readonly status: SocketStatus }

export type ToSockets =
  | ToLane
  | { readonly kind: 'reload'; readonly tls: TlsFiles | undefined; readonly logLevel: LogLevel }

/** The ring has new bytes, or the writer requested space. */
export type FromSocketsToLane = { readonly kind: 'bytes' }

export type FromLaneToSockets =
  | { readonly kind: 'space' }
  | { readonly kind: 'pause' | 'resume'; readonly connection: number }
  | { readonly kind: 'close'; readonly connection: number; readonly why: CloseReason }
  | { readonly kind: 'token'; readonly connection: number; readonly tokenId: string }

/** Counters of a lane since the start. */
export interface LaneStatus extends LineStatus {
  /** Received messages by listener. */
  readonly received: Readonly<Record<Listener, number>>
  /** Messages by listener and outcome (engine/store/outcomes.ts). */
  readonly messages: Readonly<Record<Listener, readonly number[]>>
  readonly tokens: readonly (SourceOwner & { readonly counts: readonly number[] })[]
  readonly oversized: number
  /** Datagrams dropped because a queue was full, or after they had waited. */
  readonly datagramsDropped: number
  /** Datagrams that cannot be stored now. */
  readonly datagramsWaiting: number
  readonly sourcesOverflowed: number
}

/** Counters of the socket thread since the start. */
export interface SocketStatus {
  readonly connections: {
    readonly open: number
    readonly accepted: Readonly<Record<StreamKind, number>>
    readonly closed: Readonly<Record<StreamKind, Readonly<Record<CloseReason, number>>>>
  }
  /** Frames of dnstap connections by kind. */
  readonly dnstap: DnstapCounts['frames']
  /** Datagrams dropped by the service (`datagramsDropped`) and by the kernel (`kernelDropped`). */
  readonly datagramsDropped: number
  readonly kernelDropped: number
}

/** The sums over all threads of syslog ingest. */
export interface SyslogStatus extends Omit<LaneStatus, 'oversized'> {
  readonly connections: SocketStatus['connections'] & { readonly oversized: number }
  readonly dnstap: SocketStatus['dnstap']
  readonly kernelDropped: number
}
