import type { MessagePort } from 'node:worker_threads'
import type { CoverageReport } from '../event/coverage-report.ts'
import type { TlsFiles } from '../http/certificate.ts'
import type { FaultCode } from '../process/error-codes.ts'
import type { LogLevel } from '../process/log.ts'
import type { Reject, SourceDelta } from '../store/sources.ts'
import type { UnstoredPlaces } from './accept.ts'
import type { ClosedFor, StreamKind } from './connection.ts'
import type { Listener, SourceOwner } from './sources.ts'

/*
 * What the threads of syslog ingest say to each other. One has the sockets; it reads their messages itself, or hands their bytes to lanes in
 * threads of their own, by a ring of shared memory each. What matches goes from there to the thread of the writer.
 */

/** Where to listen. */
export interface SyslogEndpoint {
  readonly kind: 'tls' | 'tcp' | 'udp'
  /** The setting that names it, for error lines. */
  readonly setting: string
  readonly address: string
  /** 0: the system chooses. */
  readonly port: number
}

/** What every lane must know. */
export interface LaneData {
  readonly dataDirectory: string
  readonly idleMs: number
  /** Each lane's part of SYSLOG_WAITING_BYTES_MAX. */
  readonly waitingBytesMax: number
  /** Messages of one token in a second, over all lanes; 0: any number. */
  readonly tokenRateMax: number
  readonly tokenRateTable: SharedArrayBuffer
  /** Compiled registry (registry/compile-trie.ts). */
  readonly trie: SharedArrayBuffer
}

export interface LaneThreadData extends LaneData {
  readonly ring: SharedArrayBuffer
  readonly sockets: MessagePort
}

export interface SocketThreadData extends LaneData {
  readonly endpoints: readonly SyslogEndpoint[]
  readonly tls: TlsFiles | undefined
  readonly proxyProtocol: boolean
  readonly logLevel: LogLevel
  /** The lanes in other threads; without any, the thread of the sockets reads by itself. */
  readonly lanes: readonly { readonly ring: SharedArrayBuffer; readonly port: MessagePort }[]
}

/** From a lane, in whichever thread, to the writer's. */
export type FromLane =
  | {
      readonly kind: 'batch'
      readonly id: number
      readonly organizationId: string
      readonly deduplicate: boolean
      readonly bytes: Uint8Array<ArrayBuffer>
      readonly reports: readonly CoverageReport[]
    }
  | { readonly kind: 'counters'; readonly sources: readonly SourceDelta[]; readonly rejects: readonly Reject[] }
  | {
      readonly kind: 'unauthorized'
      readonly listener: Listener
      readonly address: string
      readonly port: number
      /** It had one that is unknown or revoked. */
      readonly hasToken: boolean
    }
  | { readonly kind: 'status'; readonly id: number; readonly status: LaneStatus }
  /** What was taken and is not stored, and what was read and not taken: in numbers of messages and bytes. */
  | { readonly kind: 'drained'; readonly messages: number; readonly bytes: number }

export type ToLane =
  /** The batch is on disk, without the events at these places. */
  | { readonly kind: 'settled'; readonly id: number; readonly unstored: UnstoredPlaces }
  | { readonly kind: 'status'; readonly id: number }
  | { readonly kind: 'drain'; readonly deadlineMs: number }

/** From the thread of the sockets to the writer's; what its own lane says besides. */
export type FromSockets =
  | FromLane
  | { readonly kind: 'listening'; readonly endpoints: readonly SyslogEndpoint[] }
  | { readonly kind: 'failed'; readonly code: FaultCode; readonly message: string }
  | { readonly kind: 'socketStatus'; readonly id: number; readonly status: SocketStatus }

export type ToSockets = ToLane | { readonly kind: 'reload'; readonly tls: TlsFiles }

/** There are bytes in the ring, or room is wanted. */
export type FromSocketsToLane = { readonly kind: 'bytes' }

export type FromLaneToSockets =
  | { readonly kind: 'room' }
  | { readonly kind: 'pause' | 'resume'; readonly connection: number }
  | { readonly kind: 'close'; readonly connection: number; readonly why: ClosedFor }
  | { readonly kind: 'token'; readonly connection: number; readonly tokenId: string }

/** What a lane has counted since the start. */
export interface LaneStatus {
  /** Messages that came, by listener. */
  readonly received: Readonly<Record<Listener, number>>
  /** Messages by listener and outcome (outcome.ts). */
  readonly messages: Readonly<Record<Listener, readonly number[]>>
  /** Messages by format and verdict; '' is none recognised. */
  readonly formats: readonly { readonly format: string; readonly verdicts: readonly number[] }[]
  readonly tokens: readonly (SourceOwner & { readonly counts: readonly number[] })[]
  readonly oversized: number
  /** Datagrams that found no room. */
  readonly datagramsDropped: number
  readonly sourcesOverflowed: number
  /** Coverage reports that were not read because they came too often. */
  readonly coverageLeftOut: number
}

/** What the thread of the sockets has counted since the start. */
export interface SocketStatus {
  readonly connections: {
    readonly open: number
    readonly accepted: Readonly<Record<StreamKind, number>>
    readonly closed: Readonly<Record<StreamKind, Readonly<Record<ClosedFor, number>>>>
  }
  /** Datagrams that were let go: by us on their way to a lane, and by the kernel. */
  readonly datagramsDropped: number
  readonly kernelDropped: number
}

/** What all threads of syslog ingest have counted, together. */
export interface SyslogStatus extends Omit<LaneStatus, 'oversized'> {
  readonly connections: SocketStatus['connections'] & { readonly oversized: number }
  readonly kernelDropped: number
}
