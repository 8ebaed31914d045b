import { setTimeout as later } from 'node:timers/promises'

/*
 * Waits and times of tests (docs/design/testing.md). A wait ends with an event or a condition. Its
 * limit is only for events that never come, so it is far longer than a loaded machine needs.
 */

/**
 * Separates "at once" from "after a timeout". Longer than any delay of a loaded machine, and at
 * most half of the timeouts in the tests.
 */
export const PROMPT_MS = 30_000
const WAIT_MS = 300_000
const POLL_MS_MIN = 10
const POLL_MS_MAX = 100
/** Of the time that was waited: polling costs the processes that are waited for. */
const POLL_SHARE = 0.1

/**
 * Polls until the answer is neither undefined nor false, and returns the answer. `what` may also
 * describe the state at the time limit.
 *
 * @throws Error that names what did not happen, at the time limit.
 */
export async function until<Answer>(
  what: string | (() => string),
  ask: () => Answer | undefined | false | Promise<Answer | undefined | false>,
): Promise<Answer> {
  const startMs = performance.now()
  for (;;) {
    const answer = await ask()
    if (answer !== undefined && answer !== false) return answer
    const waitedMs = performance.now() - startMs
    if (waitedMs > WAIT_MS) {
      throw new Error(`not within ${WAIT_MS / 1000} s: ${typeof what === 'string' ? what : what()}`)
    }
    await later(Math.min(POLL_MS_MAX, Math.max(POLL_MS_MIN, waitedMs * POLL_SHARE)))
  }
}

/**
 * The CPU time of synchronous work, in milliseconds. Time that the machine spends on other
 * processes does not count.
 */
export function cpuMsOf(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
