import { parentPort, workerData } from 'node:worker_threads'
import { type HttpImplementation, listenHttp, sharesPorts } from '../engine/http/listen.ts'
import type { HttpListener } from '../engine/http/port.ts'
import { createLogger, type LogLevel } from '../engine/process/log.ts'
import type { KeyUse } from '../engine/store/key-uses.ts'
import { Store } from '../engine/store/store.ts'
import { AccessLog } from './access-log.ts'
import { counterOf } from './counters.ts'
import type { OpenApiAnswer } from './document.ts'
import { RecentKeyUses } from './key-uses.ts'
import { RateLimit } from './rate-limit.ts'
import { apiHandler, ROUTES } from './routes.ts'

/** The main thread, which writes, hears of used keys so often. */
const TELL_USES_EVERY_MS = 10_000

/** What the service gives each API thread. */
export interface ApiThreadData {
  readonly dataDirectory: string
  readonly address: string
  readonly port: number
  readonly tls: { readonly keyFile: string; readonly certificateFile: string } | undefined
  readonly http: HttpImplementation
  /** Which of the threads it is, from 0; and where they count. */
  readonly number: number
  readonly counters: SharedArrayBuffer
  /** See rate-limit.ts: of keys, and of addresses that show unknown ones. */
  readonly rateTable: SharedArrayBuffer
  readonly guessTable: SharedArrayBuffer
  /** Lines a second at most; 0 for none. */
  readonly accessLog: number
  readonly salesEmail: string
  readonly document: OpenApiAnswer
  readonly logLevel: LogLevel
}

export type ToApiThread = { readonly kind: 'drain'; readonly deadlineMs: number } | { readonly kind: 'reload' }
export type FromApiThread =
  | { readonly kind: 'listening'; readonly implementation: string; readonly sharesPort: boolean }
  | { readonly kind: 'drained' }
  | { readonly kind: 'keysUsed'; readonly uses: readonly KeyUse[] }

/** One API thread: its own handle of the store, its own listener on the shared port. */
async function main(data: ApiThreadData): Promise<void> {
  const store = new Store(data.dataDirectory)
  const log = createLogger('posture-service', data.logLevel)
  const keyUses = new RecentKeyUses()
  const tell = (message: FromApiThread): void => parentPort?.postMessage(message)
  const tellUses = (): void => {
    const uses = keyUses.take()
    if (uses.length > 0) tell({ kind: 'keysUsed', uses })
  }
  const timer = setInterval(tellUses, TELL_USES_EVERY_MS)
  const listener: HttpListener = await listenHttp(data.http, {
    address: data.address,
    port: data.port,
    ...(data.tls ? { tls: data.tls } : {}),
    usualPaths: Object.keys(ROUTES),
    onAnswer: counterOf(data.counters, data.number),
    handler: apiHandler({
      store,
      rateLimit: new RateLimit(data.rateTable),
      guessLimit: new RateLimit(data.guessTable),
      salesEmail: data.salesEmail,
      document: data.document,
      keyUses,
      ...(data.accessLog === 0 ? {} : { accessLog: new AccessLog(log, data.accessLog) }),
    }),
    log,
  })
  parentPort?.on('message', async (message: ToApiThread) => {
    if (message.kind === 'reload') return listener.reload()
    await listener.drain(message.deadlineMs)
    clearInterval(timer)
    tellUses()
    await store.close()
    tell({ kind: 'drained' })
    parentPort?.close()
  })
  tell({ kind: 'listening', implementation: listener.implementation, sharesPort: sharesPorts(listener) })
}

await main(workerData as ApiThreadData)
