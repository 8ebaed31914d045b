import { constants, getPriority, setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { Staleness } from '../engine/cluster/replication/staleness.ts'
import { answerCountersOf } from '../engine/http/answer-counters.ts'
import { type ConnectionLimits, connectionCountersOf } from '../engine/http/connections.ts'
import type { HttpImplementation } from '../engine/http/listen.ts'
import { type FromListenerThread, runListenerThread, type ToListenerThread } from '../engine/http/listener-thread.ts'
import { systemClock } from '../engine/kernel/process/clock.ts'
import type { Logger, LogLevel } from '../engine/kernel/process/log.ts'
import type { Network } from '../engine/kernel/process/network.ts'
import { RegistryInForce } from '../engine/store/registry-in-force.ts'
import { Store } from '../engine/store/store.ts'
import { loadAssets } from './assets.ts'
import { type ChangeOutcome, type ChangeRequest, ChangeSender } from './change-sender.ts'
import type { IngestListeners } from './ingest-listeners.ts'
import { type ConsoleCounterMemory, ConsoleCounters } from './metrics.ts'
import { ROUTES } from './routes.ts'
import { consoleHandler } from './server.ts'
import { makeSite } from './site.ts'

/** The service's input to the console's thread. */
export interface ConsoleThreadData {
  readonly dataDirectory: string
  readonly address: string
  readonly port: number
  readonly tls: { readonly keyFile: string; readonly certificateFile: string } | undefined
  readonly http: HttpImplementation
  readonly hsts: boolean
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
  /** See engine/cluster/replication/staleness.ts. undefined: the service is alone. */
  readonly staleness: SharedArrayBuffer | undefined
  readonly logLevel: LogLevel
}

/** New networks of --outbound-networks. */
interface OutboundNetworks {
  readonly kind: 'outbound-networks'
  readonly networks: readonly Network[]
}

export type ToConsole = ToListenerThread | ChangeOutcome | OutboundNetworks
export type FromConsole = FromListenerThread | ChangeRequest

/** Added to the niceness of the service. */
const NICENESS = 5

/**
 * Lets the scheduler prefer the other threads, so that a page does not delay answers of the API. On
 * Linux, process 0 is the calling thread. A sandbox may refuse it.
 */
function lowerPriority(log: Logger): void {
  try {
    setPriority(0, Math.min(getPriority(0) + NICENESS, constants.priority.PRIORITY_LOW))
  } catch (error) {
    log.debug({ err: error }, 'the console has the priority of the API')
  }
}

/** The console's thread. It has its own port and its own handle of the store, for reading. */
await runListenerThread<ConsoleThreadData, ChangeOutcome | OutboundNetworks>('the console', (data, log) => {
  lowerPriority(log)
  const store = new Store(data.dataDirectory)
  const changes = new ChangeSender((request: ChangeRequest) => parentPort?.postMessage(request))
  const site = makeSite(
    { store, clock: systemClock, registry: new RegistryInForce(store), changes, ingest: data.ingest, log },
    {
      dataDirectory: data.dataDirectory,
      origin: data.origin,
      keyFile: data.secretsKeyFile,
      outboundNetworks: data.outboundNetworks,
      trials: { log },
      limitsNetworks: data.limits.perClientMax > 0,
      counters: new ConsoleCounters(data.counters),
    },
  )
  const handler = consoleHandler({
    site,
    routes: ROUTES,
    assets: loadAssets(),
    staleness: data.staleness && new Staleness(data.staleness),
    origin: data.origin,
    scheme: data.tls === undefined ? 'http' : 'https',
    log,
  })
  const { address, port, tls, hsts } = data
  return {
    http: data.http,
    options: {
      ...{ address, port, hsts, handler },
      ...(tls ? { tls } : {}),
      limits: data.limits,
      connectionCounters: connectionCountersOf(data.connections),
      ...answerCountersOf(data.counters.answers),
    },
    onMessage(message) {
      if (message.kind === 'outbound-networks') site.allowOutbound(message.networks)
      else changes.settle(message)
    },
    close() {
      site.keptFiles.clear()
      return store.close()
    },
  }
})
