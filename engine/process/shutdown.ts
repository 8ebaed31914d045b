import { deferred } from './deferred.ts'

const SIGNAL_NUMBER = { SIGINT: 2, SIGTERM: 15 } as const
type StopSignal = keyof typeof SIGNAL_NUMBER

/** What an ended process reports when a signal ended it: 128 + the signal's number. */
export function exitStatusOf(signal: StopSignal): number {
  return 128 + SIGNAL_NUMBER[signal]
}

/** One Ctrl-C reaches a program more than once: from the terminal, and from the parent that passes it on. */
const SAME_SIGNAL_MS = 1000

/**
 * Waits for the first SIGINT or SIGTERM. Another one, a second or more later, is from a user who does not want to wait for
 * the drain: it ends the process at once, as a crash would, which every store here survives.
 */
export function stopSignal(): { readonly received: Promise<StopSignal>; forget(): void } {
  let firstAtMs = 0
  const received = deferred<StopSignal>()
  const onSignal = (signal: StopSignal): void => {
    if (firstAtMs === 0) firstAtMs = performance.now()
    else if (performance.now() - firstAtMs >= SAME_SIGNAL_MS) endAtOnce(signal)
    received.resolve(signal)
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  return {
    received: received.promise,
    forget() {
      process.off('SIGINT', onSignal)
      process.off('SIGTERM', onSignal)
    },
  }
}

function endAtOnce(signal: StopSignal): void {
  // Not by process.exit: Node aborts in it while other threads have handles open.
  process.kill(process.pid, 'SIGKILL')
  // The first process of a container cannot kill itself (pid_namespaces(7)).
  if (process.pid === 1) process.exit(exitStatusOf(signal))
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
