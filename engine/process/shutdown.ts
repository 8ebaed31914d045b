const SIGNAL_NUMBER = { SIGINT: 2, SIGTERM: 15 } as const
type StopSignal = keyof typeof SIGNAL_NUMBER

/** What an ended process reports when a signal ended it: 128 + the signal's number. */
export function exitStatusOf(signal: StopSignal): number {
  return 128 + SIGNAL_NUMBER[signal]
}

/**
 * Waits for the first SIGINT or SIGTERM. A second one ends the process at once, for the user who does not want to wait
 * for the drain.
 */
export function stopSignal(): { readonly received: Promise<StopSignal>; forget(): void } {
  let stopping = false
  let settle: (signal: StopSignal) => void
  const received = new Promise<StopSignal>((resolve) => {
    settle = resolve
  })
  const onSignal = (signal: StopSignal): void => {
    if (stopping) process.exit(exitStatusOf(signal))
    stopping = true
    settle(signal)
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  return {
    received,
    forget() {
      process.off('SIGINT', onSignal)
      process.off('SIGTERM', onSignal)
    },
  }
}

/** Ends `work` after `deadlineMs` at the latest; answers whether it ended by itself. */
export async function within(deadlineMs: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), deadlineMs)
  })
  try {
    return await Promise.race([work.then(() => true), deadline])
  } finally {
    clearTimeout(timer)
  }
}
