import type { TlsFiles } from '../engine/http/certificate.ts'
import type { ConnectionLimits } from '../engine/http/connections.ts'
import type { HttpImplementation } from '../engine/http/listen.ts'
import type { FaultCode } from '../engine/process/error-codes.ts'
import type { LogLevel } from '../engine/process/log.ts'
import type { ChangeOutcome, ChangeRequest } from './changes.ts'
import type { ConsoleCounterMemory } from './metrics.ts'

/** The service's input to the console's thread. */
export interface ConsoleThreadData {
  readonly dataDirectory: string
  readonly address: string
  readonly port: number
  readonly tls: { readonly keyFile: string; readonly certificateFile: string } | undefined
  readonly http: HttpImplementation
  readonly limits: ConnectionLimits
  readonly connections: SharedArrayBuffer
  readonly counters: ConsoleCounterMemory
  /** The public origin; '' if the Host field has it. */
  readonly origin: string
  readonly logLevel: LogLevel
}

export type ToConsole =
  | { readonly kind: 'drain'; readonly deadlineMs: number }
  /** Applies the certificate files to new connections, and the log level immediately. */
  | { readonly kind: 'reload'; readonly tls: TlsFiles | undefined; readonly logLevel: LogLevel }
  | ChangeOutcome

export type FromConsole =
  | { readonly kind: 'listening'; readonly implementation: string }
  | { readonly kind: 'drained' }
  /** The thread has failed and can only drain. `code` is that of an expected fault. */
  | { readonly kind: 'failed'; readonly code: FaultCode | undefined; readonly message: string }
  | ChangeRequest
