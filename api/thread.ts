import { parentPort, workerData } from 'node:worker_threads'
import { answerCountersOf } from '../engine/http/answer-counters.ts'
import type { TlsFiles } from '../engine/http/certificate.ts'
import { type ConnectionLimits, connectionCountersOf } from '../engine/http/connections.ts'
import { type HttpImplementation, listenHttp, sharesPorts } from '../engine/http/listen.ts'
import { Fault, type FaultCode } from '../engine/process/error-codes.ts'
import { logFailure } from '../engine/process/failure.ts'
import { createLogger, type Logger, type LogLevel, setLogLevel } from '../engine/process/log.ts'
import type { KeyUse } from '../engine/store/key-uses.ts'
import { Store } from '../engine/store/store.ts'
import { AccessLog } from './access-log.ts'
import type { OpenApiAnswer } from './document.ts'
import { RecentKeyUses } from './key-uses.ts'
import { RateLimit } from './rate-limit.ts'
import { apiServer, isKnownPath } from './routes.ts'

/** Interval at which used keys are reported to the main thread, which writes them. */
const REPORT_USES_EVERY_MS = 10_000

/** Start data of an API thread. */
export interface ApiThreadData {
  readonly dataDirectory: string
  readonly address: string
  readonly port: number
  readonly tls: { readonly keyFile: string; readonly certificateFile: string } | undefined
  readonly http: HttpImplementation
  /** Number of the thread, from 0, and its counters. */
  readonly number: number
  readonly counters: SharedArrayBuffer
  readonly connections: SharedArrayBuffer
  readonly limits: ConnectionLimits
  /** See rate-limit.ts: by key, and by address for requests without a valid key. */
  readonly rateTable: SharedArrayBuffer
  readonly addressTable: SharedArrayBuffer
  /** Maximum number of lines per second; 0 disables the log. */
  readonly accessLog: number
  readonly salesEmail: string
  readonly document: OpenApiAnswer
  readonly logLevel: LogLevel
}

export type ToApiThread =
  | { readonly kind: 'drain'; readonly deadlineMs: number }
  | {
      readonly kind: 'reload'
      /** Undefined if the certificate has not changed. */
      readonly tls: TlsFiles | undefined
      readonly logLevel: LogLevel
    }
export type FromApiThread =
  | { readonly kind: 'listening'; readonly implementation: string; readonly sharesPort: boolean }
  | { readonly kind: 'drained' }
  /** The thread can only be drained. `code` is set for an expected fault. */
  | { readonly kind: 'failed'; readonly code: FaultCode | undefined; readonly message: string }
  | { readonly kind: 'keysUsed'; readonly uses: readonly KeyUse[] }

const notify = (message: FromApiThread): void => parentPort?.postMessage(message)

/** An API thread: its own handle of the store and its own listener on the shared port. */
async function main(data: ApiThreadData, log: Logger): Promise<void> {
  const store = new Store(data.dataDirectory)
  const keyUses = new RecentKeyUses()
  const reportUses = (): void => {
    const uses = keyUses.take()
    if (uses.length > 0) notify({ kind: 'keysUsed', uses })
  }
  const { onAnswer: countAnswer, onAnswerAborted } = answerCountersOf(data.counters, data.number)
  const accessLog = data.accessLog === 0 ? undefined : new AccessLog(log, data.accessLog, isKnownPath)
  const listening = listenHttp(data.http, {
    address: data.address,
    port: data.port,
    ...(data.tls ? { tls: data.tls } : {}),
    limits: data.limits,
    connectionCounters: connectionCountersOf(data.connections, data.number),
    onAnswerAborted,
    onAnswer:
      accessLog === undefined
        ? countAnswer
        : (request, status, bytes) => {
            countAnswer(request, status, bytes)
            accessLog.onAnswer(request, status, bytes)
          },
    ...apiServer({
      store,
      rateLimit: new RateLimit(data.rateTable),
      addressLimit: new RateLimit(data.addressTable),
      salesEmail: data.salesEmail,
      document: data.document,
      keyUses,
      ...(accessLog === undefined ? {} : { accessLog }),
    }),
    log,
  })
  // A thread with an open store would not end.
  const listener = await listening.catch(async (error: unknown) => {
    await store.close()
    throw error
  })
  const timer = setInterval(reportUses, REPORT_USES_EVERY_MS)
  const reload = async ({ tls, logLevel }: Extract<ToApiThread, { kind: 'reload' }>): Promise<void> => {
    setLogLevel(log, logLevel)
    if (tls === undefined) return
    try {
      await listener.reload(tls)
    } catch (error) {
      logFailure(log, error, 'the certificate was not reloaded; the old one stays')
    }
  }
  const drain = async (deadlineMs: number): Promise<void> => {
    await listener.drain(deadlineMs)
    clearInterval(timer)
    reportUses()
    await store.close()
    notify({ kind: 'drained' })
    parentPort?.close()
  }
  parentPort?.on('message', (message: ToApiThread) =>
    message.kind === 'reload' ? reload(message) : drain(message.deadlineMs),
  )
  notify({ kind: 'listening', implementation: listener.implementation, sharesPort: sharesPorts(listener) })
}

/*
 * A thread that ends with open uWebSockets.js connections aborts the process by SIGABRT. The thread
 * therefore reports uncaught errors and continues until the service, which then shuts down, drains
 * it.
 */
const data = workerData as ApiThreadData
const log = createLogger('posture-service', data.logLevel)
process.on('uncaughtException', (error: unknown) => {
  log.error({ err: error }, 'an API thread failed')
  notify({ kind: 'failed', code: undefined, message: error instanceof Error ? error.message : String(error) })
})
await start()

async function start(): Promise<void> {
  try {
    await main(data, log)
  } catch (error) {
    const code = error instanceof Fault ? error.code : undefined
    if (code === undefined) log.error({ err: error }, 'an API thread could not start')
    notify({ kind: 'failed', code, message: (error as Error).message })
    parentPort?.close()
  }
}
