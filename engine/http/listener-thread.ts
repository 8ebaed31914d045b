import type { Worker } from 'node:worker_threads'
import { Fault, type FaultCode } from '../process/error-codes.ts'

/** What every thread with a listener reports to the service. */
export type FromListenerThread =
  | { readonly kind: 'listening'; readonly implementation: string }
  | { readonly kind: 'drained' }
  /** The thread cannot go on, except to drain. `code` of an expected fault. */
  | ThreadFailure

export interface ThreadFailure {
  readonly kind: 'failed'
  readonly code: FaultCode | undefined
  readonly message: string
}

type ListeningOf<M extends { readonly kind: string }> = Extract<M, { readonly kind: 'listening' }>

/**
 * Waits until a thread listens, and answers its message. @throws Fault that the thread reported.
 */
export function listening<M extends { readonly kind: string } = FromListenerThread>(
  thread: Worker,
  name: string,
): Promise<ListeningOf<M>> {
  return new Promise((resolve, reject) => {
    thread.once('error', reject)
    thread.once('message', (message: { readonly kind: string }) => {
      thread.off('error', reject)
      if (message.kind === 'listening') resolve(message as ListeningOf<M>)
      if (message.kind === 'failed') reject(faultOf(message as ThreadFailure, name))
    })
  })
}

/** What a thread reports that ends it, or the service. The thread's own log entry has the stack. */
export function faultOf({ code, message }: ThreadFailure, name: string): Error {
  if (code !== undefined) return new Fault(code, message)
  const error = new Error(`${name} failed: ${message}`)
  error.stack = error.message
  return error
}

/** Of a thread that has ended. */
const NO_THREAD_ID = -1

/**
 * Lets a thread's answers in progress end, for `deadlineMs`, and waits until the thread has ended.
 */
export function drainThread(thread: Worker, deadlineMs: number): Promise<void> {
  return new Promise((resolve) => {
    if (thread.threadId === NO_THREAD_ID) return resolve()
    thread.removeAllListeners('exit')
    thread.once('exit', () => resolve())
    thread.postMessage({ kind: 'drain', deadlineMs })
  })
}
