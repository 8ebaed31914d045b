import type { FaultCode } from '../process/error-codes.ts'
import type { LogLevel } from '../process/log.ts'
import type { Reject, SourceDelta } from '../store/sources.ts'
import type { Listener, SourceOwner } from './sources.ts'
import type { ClosedFor, TlsFiles } from './stream-listener.ts'

/*
 * What the thread of the syslog listeners and the thread of the writer say to each other.
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

export interface SyslogThreadData {
  readonly dataDirectory: string
  readonly endpoints: readonly SyslogEndpoint[]
  readonly tls: TlsFiles | undefined
  readonly proxyProtocol: boolean
  readonly idleMs: number
  /** Messages of one token in a second; 0: any number. */
  readonly tokenRateMax: number
  /** Compiled registry (registry/compile-trie.ts). */
  readonly trie: SharedArrayBuffer
  readonly logLevel: LogLevel
}

export type FromSyslogThread =
  | { readonly kind: 'listening'; readonly endpoints: readonly SyslogEndpoint[] }
  | { readonly kind: 'failed'; readonly code: FaultCode; readonly message: string }
  | {
      readonly kind: 'batch'
      readonly id: number
      readonly organizationId: string
      readonly deduplicate: boolean
      readonly bytes: Uint8Array<ArrayBuffer>
    }
  | { readonly kind: 'books'; readonly sources: readonly SourceDelta[]; readonly rejects: readonly Reject[] }
  | { readonly kind: 'status'; readonly id: number; readonly status: SyslogStatus }
  | { readonly kind: 'drained' }

export type ToSyslogThread =
  | { readonly kind: 'settled'; readonly id: number; readonly duplicates: number; readonly rejected: number }
  | { readonly kind: 'status'; readonly id: number }
  | { readonly kind: 'reload'; readonly tls: TlsFiles }
  | { readonly kind: 'drain'; readonly deadlineMs: number }

/** What the thread has counted since the start. */
export interface SyslogStatus {
  /** Messages that came, by listener. */
  readonly received: Readonly<Record<Listener, number>>
  /** Messages by listener and outcome (outcome.ts). */
  readonly messages: Readonly<Record<Listener, readonly number[]>>
  /** Messages by format and verdict; '' is none recognised. */
  readonly formats: readonly { readonly format: string; readonly verdicts: readonly number[] }[]
  readonly tokens: readonly (SourceOwner & { readonly counts: readonly number[] })[]
  readonly connections: {
    readonly open: number
    readonly accepted: number
    readonly oversized: number
    readonly closed: Readonly<Record<ClosedFor, number>>
  }
  /** Datagrams that were let go: by us, and by the kernel. */
  readonly datagramsDropped: number
  readonly kernelDropped: number
  readonly sourcesOverflowed: number
}
