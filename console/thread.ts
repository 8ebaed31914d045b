import { constants, getPriority, setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { answerCountersOf } from '../engine/http/answer-counters.ts'
import { connectionCountersOf } from '../engine/http/connections.ts'
import { runListenerThread } from '../engine/http/listener-thread.ts'
import { systemClock } from '../engine/process/clock.ts'
import type { Logger } from '../engine/process/log.ts'
import { Staleness } from '../engine/replication/staleness.ts'
import { RegistryInForce } from '../engine/store/registry-in-force.ts'
import { Store } from '../engine/store/store.ts'
import { loadAssets } from './assets.ts'
import { type ChangeOutcome, type ChangeRequest, Changes } from './changes.ts'
import { ConsoleCounters } from './metrics.ts'
import type { ConsoleThreadData, OutboundNetworks } from './protocol.ts'
import { ROUTES } from './routes.ts'
import { consoleHandler } from './server.ts'
import { makeSite } from './site.ts'

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
  const changes = new Changes((request: ChangeRequest) => parentPort?.postMessage(request))
  const site = makeSite(
    { store, clock: systemClock, registry: new RegistryInForce(store), changes, ingest: data.ingest, log },
    {
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
  const { address, port, tls } = data
  return {
    http: data.http,
    options: {
      ...{ address, port, handler },
      ...(tls ? { tls } : {}),
      limits: data.limits,
      connectionCounters: connectionCountersOf(data.connections),
      ...answerCountersOf(data.counters.answers),
    },
    onMessage(message) {
      if (message.kind === 'outbound-networks') site.allowOutbound(message.networks)
      else changes.settle(message)
    },
    close: () => store.close(),
  }
})
