import type { ConnectionLimits } from '../engine/http/connections.ts'
import type { HttpImplementation } from '../engine/http/listen.ts'
import type { FromListenerThread, ToListenerThread } from '../engine/http/listener-thread.ts'
import type { LogLevel } from '../engine/process/log.ts'
import type { Network } from '../engine/process/network.ts'
import type { ChangeOutcome, ChangeRequest } from './changes.ts'
import type { IngestListeners } from './ingest-listeners.ts'
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
  /** The file with the key of the encrypted client secrets. */
  readonly secretsKeyFile: string
  /** Identity providers and alert channels may be in these networks (--outbound-networks). */
  readonly outboundNetworks: readonly Network[]
  readonly ingest: IngestListeners
  /** See engine/replication/staleness.ts. undefined: the service is alone. */
  readonly staleness: SharedArrayBuffer | undefined
  readonly logLevel: LogLevel
}

/** New networks of --outbound-networks. */
export interface OutboundNetworks {
  readonly kind: 'outbound-networks'
  readonly networks: readonly Network[]
}

export type ToConsole = ToListenerThread | ChangeOutcome | OutboundNetworks
export type FromConsole = FromListenerThread | ChangeRequest
