import { deferred } from './deferred.ts'

const SIGNAL_NUMBER = { SIGINT: 2, SIGTERM: 15 } as const
type StopSignal = keyof typeof SIGNAL_NUMBER

/** The exit status of a process that a signal ended: 128 + signal number. */
export function exitStatusOf(signal: StopSignal): number {
  return 128 + SIGNAL_NUMBER[signal]
}

/**
 * One Ctrl-C can reach a process more than once: from the terminal, and from a parent that forwards
 * it.
 */
const SAME_SIGNAL_MS = 1000

/**
 * Waits for the first SIGINT or SIGTERM. A second signal, at least one second later, means that the
 * user does not want to wait for the drain. It kills the process at once, like a crash, which all
 * stores survive.
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
  // Not process.exit: Node aborts in it while other threads have open handles.
  process.kill(process.pid, 'SIGKILL')
  // The first process of a container cannot kill itself (pid_namespaces(7)).
  if (process.pid === 1) process.exit(exitStatusOf(signal))
}

/** Waits for `work`, at most `deadlineMs`. Returns whether it completed. */
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

/**
 * Handles SIGHUP from now on: without a listener the signal would end the program. Runs `reload`
 * for each signal, one after the other, so that the last one takes effect. A signal that arrives
 * before `start` counts once, at the start.
 */
export class ReloadSignal {
  #isPending = false
  #reload: (() => Promise<void>) | undefined
  #reloading: Promise<void> = Promise.resolve()
  readonly #onSignal = (): void => this.#request()

  constructor() {
    process.on('SIGHUP', this.#onSignal)
  }

  /** @param reload must not throw */
  start(reload: () => Promise<void>): void {
    this.#reload = reload
    if (this.#isPending) this.#request()
  }

  /** From now on, the signal ends the program again. */
  forget(): void {
    process.off('SIGHUP', this.#onSignal)
  }

  #request(): void {
    const reload = this.#reload
    if (reload === undefined) this.#isPending = true
    else this.#reloading = this.#reloading.then(reload)
  }
}
