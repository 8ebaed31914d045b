import { parentPort, workerData } from 'node:worker_threads'
import { answerCountersOf } from '../engine/http/answer-counters.ts'
import { connectionCountersOf } from '../engine/http/connections.ts'
import { listenHttp } from '../engine/http/listen.ts'
import { systemClock } from '../engine/process/clock.ts'
import { Fault } from '../engine/process/error-codes.ts'
import { logFailure } from '../engine/process/failure.ts'
import { createLogger, type Logger, setLogLevel } from '../engine/process/log.ts'
import { RegistryInForce } from '../engine/store/registry-in-force.ts'
import { Store } from '../engine/store/store.ts'
import { loadAssets } from './assets.ts'
import { Changes } from './changes.ts'
import { ConsoleCounters } from './metrics.ts'
import type { ConsoleThreadData, FromConsole, ToConsole } from './protocol.ts'
import { ROUTES } from './routes.ts'
import { consoleHandler } from './server.ts'
import { makeSite } from './site.ts'

const notify = (message: FromConsole): void => parentPort?.postMessage(message)

/** The console's thread. It has its own port and its own handle of the store, for reading. */
async function main(data: ConsoleThreadData, log: Logger): Promise<void> {
  const store = new Store(data.dataDirectory)
  const changes = new Changes(notify)
  const handler = consoleHandler({
    site: makeSite(
      { store, clock: systemClock, registry: new RegistryInForce(store), changes },
      new ConsoleCounters(data.counters),
    ),
    routes: ROUTES,
    assets: loadAssets(),
    origin: data.origin,
    scheme: data.tls === undefined ? 'http' : 'https',
    log,
  })
  const { address, port, tls } = data
  const listening = listenHttp(data.http, {
    ...{ address, port, handler, log },
    ...(tls ? { tls } : {}),
    limits: data.limits,
    connectionCounters: connectionCountersOf(data.connections),
    ...answerCountersOf(data.counters.answers),
  })
  // A thread with an open store would not exit.
  const listener = await listening.catch(async (error: unknown) => {
    await store.close()
    throw error
  })
  const drain = async (deadlineMs: number): Promise<void> => {
    await listener.drain(deadlineMs)
    await store.close()
    notify({ kind: 'drained' })
    parentPort?.close()
  }
  parentPort?.on('message', (message: ToConsole) => {
    if (message.kind === 'drain') return drain(message.deadlineMs)
    if (message.kind !== 'reload') return changes.settle(message)
    setLogLevel(log, message.logLevel)
    if (message.tls === undefined) return
    return listener
      .reload(message.tls)
      .catch((error: unknown) => logFailure(log, error, 'the certificate was not reloaded; the old one stays'))
  })
  notify({ kind: 'listening', implementation: listener.implementation })
}

/*
 * As in api/thread.ts: if a thread exits with open connections of uWebSockets.js, the process ends
 * with SIGABRT. So an uncaught error is reported, and the thread continues until the service drains
 * it.
 */
const data = workerData as ConsoleThreadData
const log = createLogger('posture-service', data.logLevel)
process.on('uncaughtException', (error: unknown) => {
  log.error({ err: error }, 'the console failed')
  notify({ kind: 'failed', code: undefined, message: error instanceof Error ? error.message : String(error) })
})
await start()

async function start(): Promise<void> {
  try {
    await main(data, log)
  } catch (error) {
    const code = error instanceof Fault ? error.code : undefined
    if (code === undefined) log.error({ err: error }, 'the console could not start')
    notify({ kind: 'failed', code, message: (error as Error).message })
    parentPort?.close()
  }
}
