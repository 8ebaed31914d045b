import { type FileProgress, progressOf } from '../../process/file-progress.ts'
import { exitStatusOf, stopSignal } from '../../process/shutdown.ts'

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
  const stop = stopSignal()
  const controller = new AbortController()
  void stop.received.then(() => controller.abort())
  let step: { readonly what: string; readonly bar: FileProgress } | undefined
  const onStep: OnStep = (what, done, total) => {
    if (step?.what !== what) {
      step?.bar.end()
      step = { what, bar: progressOf(what) }
    }
    step.bar.update(done, total)
  }
  try {
    const result = await work(onStep, controller.signal)
    step?.bar.end()
    if (result === undefined) {
      process.stderr.write(`posture-admin: ${canceled}\n`)
      process.exitCode = exitStatusOf(await stop.received)
    }
    return result
  } finally {
    step?.bar.end()
    stop.forget()
  }
}
