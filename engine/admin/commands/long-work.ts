import { type FileProgress, progressOf } from '../../process/file-progress.ts'
import { exitStatusOf, stopSignal } from '../../process/shutdown.ts'

/** Told how far work is with what it does now. */
export type OnStep = (what: string, done: number, total: number) => void

/**
 * Runs work that may take minutes: a bar a step on a terminal, nothing in a pipe. Ctrl-C asks it to give up; then one line says so, and the exit status
 * is that of the signal.
 *
 * @returns undefined where it gave up.
 */
export async function longWork<T>(
  gaveUp: string,
  work: (onStep: OnStep, givenUp: AbortSignal) => Promise<T | undefined>,
): Promise<T | undefined> {
  const stop = stopSignal()
  const givenUp = new AbortController()
  void stop.received.then(() => givenUp.abort())
  let step: { readonly what: string; readonly bar: FileProgress } | undefined
  const onStep: OnStep = (what, done, total) => {
    if (step?.what !== what) {
      step?.bar.end()
      step = { what, bar: progressOf(what) }
    }
    step.bar.update(done, total)
  }
  try {
    const result = await work(onStep, givenUp.signal)
    step?.bar.end()
    if (result === undefined) {
      process.stderr.write(`posture-admin: ${gaveUp}\n`)
      process.exitCode = exitStatusOf(await stop.received)
    }
    return result
  } finally {
    step?.bar.end()
    stop.forget()
  }
}
