import type { Worker } from 'node:worker_threads'
import { Fault, type FaultCode } from '../process/error-codes.ts'

/** Messages from every thread with a listener to the service. */
export type FromListenerThread =
  | { readonly kind: 'listening'; readonly implementation: string }
  | { readonly kind: 'drained' }
  /** The thread has failed and can only drain. `code` is that of an expected fault. */
  | ThreadFailure

export interface ThreadFailure {
  readonly kind: 'failed'
  readonly code: FaultCode | undefined
  readonly message: string
}

type ListeningOf<M extends { readonly kind: string }> = Extract<M, { readonly kind: 'listening' }>

/**
 * Waits until a thread listens, and returns its message.
 *
 * @throws Fault that the thread reported.
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
