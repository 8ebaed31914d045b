import { parentPort } from 'node:worker_threads'
import { Staleness } from '../engine/cluster/replication/staleness.ts'
import { answerCountersOf } from '../engine/http/answer-counters.ts'
import { type ConnectionLimits, connectionCountersOf } from '../engine/http/connections.ts'
import type { HttpImplementation } from '../engine/http/listen.ts'
import { type FromListenerThread, runListenerThread } from '../engine/http/listener-thread.ts'
import type { LogLevel } from '../engine/kernel/process/log.ts'
import type { KeyUse } from '../engine/store/secrets.ts'
import { Store } from '../engine/store/store.ts'
import { AccessLog } from './access-log.ts'
import type { OpenApiAnswer } from './document.ts'
import { RecentKeyUses } from './key-uses.ts'
import { monotonicMs, RateLimit } from './rate-limit/rate-limit.ts'
import { UseQueue } from './rate-limit/uses.ts'
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
  readonly hsts: boolean
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
  /** See staleness.ts and rate-limit/uses.ts. undefined: the service is alone. */
  readonly cluster: { readonly staleness: SharedArrayBuffer; readonly uses: SharedArrayBuffer } | undefined
  readonly logLevel: LogLevel
}

export type FromApiThread = FromListenerThread | { readonly kind: 'keysUsed'; readonly uses: readonly KeyUse[] }

/** An API thread: its own handle of the store and its own listener on the shared port. */
await runListenerThread<ApiThreadData>('an API thread', (data, log) => {
  const store = new Store(data.dataDirectory)
  const keyUses = new RecentKeyUses()
  const reportUses = (): void => {
    const uses = keyUses.take()
    const message: FromApiThread = { kind: 'keysUsed', uses }
    if (uses.length > 0) parentPort?.postMessage(message)
  }
  const timer = setInterval(reportUses, REPORT_USES_EVERY_MS)
  const { onAnswer: countAnswer, onAnswerAborted } = answerCountersOf(data.counters, data.number)
  const unreported = data.cluster && new UseQueue(data.cluster.uses, data.number)
  const accessLog = data.accessLog === 0 ? undefined : new AccessLog(log, data.accessLog, isKnownPath)
  return {
    http: data.http,
    options: {
      address: data.address,
      port: data.port,
      ...(data.tls ? { tls: data.tls } : {}),
      hsts: data.hsts,
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
        rateLimit: new RateLimit(data.rateTable, monotonicMs, (hash, nowMs) => unreported?.add(hash, nowMs)),
        addressLimit: new RateLimit(data.addressTable),
        salesEmail: data.salesEmail,
        document: data.document,
        keyUses,
        ...(accessLog === undefined ? {} : { accessLog }),
        ...(data.cluster === undefined ? {} : { staleness: new Staleness(data.cluster.staleness) }),
      }),
    },
    close: async () => {
      clearInterval(timer)
      reportUses()
      await store.close()
    },
  }
})
