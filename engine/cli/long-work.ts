import { type FileProgress, progressOf } from '../kernel/process/file-progress.ts'
import { exitStatusOf, stopSignal } from '../kernel/process/signals.ts'

/**
 * Runs work that Ctrl-C aborts.
 *
 * @returns the result of the work, and the exit status of the signal if there was one
 */
export async function interruptible<T>(
  work: (signal: AbortSignal) => Promise<T>,
): Promise<{ readonly result: T; readonly exitStatus: number | undefined }> {
  const stop = stopSignal()
  const controller = new AbortController()
  void stop.received.then(() => controller.abort())
  try {
    const result = await work(controller.signal)
    return { result, exitStatus: controller.signal.aborted ? exitStatusOf(await stop.received) : undefined }
  } finally {
    stop.forget()
  }
}

/** Receives the progress of a step. */
export type OnStep = (what: string, done: number, total: number) => void

/**
 * Runs long work with a progress bar for each step on a terminal. Ctrl-C cancels the work; then one
 * line reports it, and the exit status is that of the signal.
 *
 * @param canceled the line that reports a cancellation
 * @returns undefined if the work was canceled
 */
export async function longWork<T>(
  canceled: string,
  work: (onStep: OnStep, signal: AbortSignal) => Promise<T | undefined>,
): Promise<T | undefined> {
  let step: { readonly what: string; readonly bar: FileProgress } | undefined
  const onStep: OnStep = (what, done, total) => {
    if (step?.what !== what) {
      step?.bar.end()
      step = { what, bar: progressOf(what) }
    }
    step.bar.update(done, total)
  }
  const { result, exitStatus } = await interruptible((signal) => work(onStep, signal)).finally(() => step?.bar.end())
  if (result === undefined) {
    process.stderr.write(`posture-admin: ${canceled}\n`)
    process.exitCode = exitStatus
  }
  return result
}
