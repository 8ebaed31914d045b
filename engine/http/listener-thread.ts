import { parentPort, type Worker, workerData } from 'node:worker_threads'
import { Fault, type FaultCode } from '../kernel/process/error-codes.ts'
import { logFailure } from '../kernel/process/failure.ts'
import { createLogger, type Logger, type LogLevel, setLogLevel } from '../kernel/process/log.ts'
import type { TlsFiles } from './certificate.ts'
import { type HttpImplementation, listenHttp, sharesPorts } from './listen.ts'
import type { HttpListenOptions } from './port.ts'

/** Messages from the service to every thread with a listener. */
export type ToListenerThread =
  | { readonly kind: 'drain'; readonly deadlineMs: number }
  /** Applies the certificate files to new connections, and the log level immediately. */
  | {
      readonly kind: 'reload'
      /** Undefined if the certificate has not changed. */
      readonly tls: TlsFiles | undefined
      readonly logLevel: LogLevel
    }

/** Messages from every thread with a listener to the service. */
export type FromListenerThread =
  /** `sharesPort`: several threads can listen on the port. */
  | { readonly kind: 'listening'; readonly implementation: string; readonly sharesPort: boolean }
  | { readonly kind: 'drained' }
  /** The thread has failed and can only drain. `code` is that of an expected fault. */
  | ThreadFailure

export interface ThreadFailure {
  readonly kind: 'failed'
  readonly code: FaultCode | undefined
  readonly message: string
}

export type ThreadListening = Extract<FromListenerThread, { readonly kind: 'listening' }>

/**
 * Waits until a thread listens, and returns its message.
 *
 * @throws Fault that the thread reported.
 */
export function listening(thread: Worker, name: string): Promise<ThreadListening> {
  return new Promise((resolve, reject) => {
    thread.once('error', reject)
    thread.once('message', (message: { readonly kind: string }) => {
      thread.off('error', reject)
      if (message.kind === 'listening') resolve(message as ThreadListening)
      if (message.kind === 'failed') reject(faultOf(message as ThreadFailure, name))
    })
  })
}

/** The error of a thread's failure. The log entry of the thread has the stack. */
export function faultOf({ code, message }: ThreadFailure, name: string): Error {
  if (code !== undefined) return new Fault(code, message)
  const error = new Error(`${name} failed: ${message}`)
  error.stack = error.message
  return error
}

/** The thread id of a thread that has ended. */
const NO_THREAD_ID = -1

/**
 * Lets the responses of a thread finish, for at most `deadlineMs`, and waits until the thread has
 * ended.
 */
export function drainThread(thread: Worker, deadlineMs: number): Promise<void> {
  return new Promise((resolve) => {
    if (thread.threadId === NO_THREAD_ID) return resolve()
    thread.removeAllListeners('exit')
    thread.once('exit', () => resolve())
    thread.postMessage({ kind: 'drain', deadlineMs })
  })
}

/** What a thread listens with. */
export interface ListenerThread<Message> {
  readonly http: HttpImplementation
  readonly options: Omit<HttpListenOptions, 'log'>
  /** Handles the messages that only this kind of thread receives. */
  readonly onMessage?: (message: Message) => void
  /**
   * Runs after the listener has drained, or when the thread cannot listen. Must close the store: a
   * thread with an open store does not exit.
   */
  readonly close: () => Promise<void>
}

type Open<Data, Message> = (data: Data, log: Logger) => ListenerThread<Message>

/**
 * Runs the listener of this worker thread until the service drains it.
 *
 * If a thread exits with open connections of uWebSockets.js, the process ends with SIGABRT.
 * Therefore an uncaught error is only reported, and the thread continues until the service, which
 * then shuts down, drains it.
 *
 * @param name the thread in log entries, such as `the console`
 */
export async function runListenerThread<Data extends { readonly logLevel: LogLevel }, Message = never>(
  name: string,
  open: Open<Data, Message>,
): Promise<void> {
  const data = workerData as Data
  const log = createLogger('posture-service', data.logLevel)
  process.on('uncaughtException', (error: unknown) => {
    log.error({ err: error }, `${name} failed`)
    notify({ kind: 'failed', code: undefined, message: error instanceof Error ? error.message : String(error) })
  })
  try {
    await listen(open(data, log), log)
  } catch (error) {
    const code = error instanceof Fault ? error.code : undefined
    if (code === undefined) log.error({ err: error }, `${name} could not start`)
    notify({ kind: 'failed', code, message: (error as Error).message })
    parentPort?.close()
  }
}

async function listen<Message>(thread: ListenerThread<Message>, log: Logger): Promise<void> {
  const listener = await listenHttp(thread.http, { ...thread.options, log }).catch(async (error: unknown) => {
    await thread.close()
    throw error
  })
  const reload = async (tls: TlsFiles | undefined, logLevel: LogLevel): Promise<void> => {
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
    await thread.close()
    notify({ kind: 'drained' })
    parentPort?.close()
  }
  parentPort?.on('message', (message: ToListenerThread | { readonly kind: 'other' }) => {
    if (message.kind === 'drain') return drain(message.deadlineMs)
    if (message.kind === 'reload') return reload(message.tls, message.logLevel)
    return thread.onMessage?.(message as Message)
  })
  notify({ kind: 'listening', implementation: listener.implementation, sharesPort: sharesPorts(listener) })
}

function notify(message: FromListenerThread): void {
  parentPort?.postMessage(message)
}
