/*
 * Waits and times of tests (docs/design/testing.md). A wait ends by an event or a condition. Its limit is for what never comes, so it is far
 * beyond what a loaded machine needs.
 */

/** A time between what must not be waited for, which is at least twice as long in the test, and any delay of a loaded machine. */
export const AT_ONCE_MS = 30_000
const WAIT_MS = 300_000
const POLL_MS = 10

/** Polls until it holds. Throws with what was waited for where it does not. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const endMs = performance.now() + WAIT_MS; !(await holds()); ) {
    if (performance.now() > endMs) throw new Error(`not within ${WAIT_MS / 1000} s: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

/** The CPU time of synchronous work, in milliseconds: it does not count the time that the machine gives to others. */
export function cpuMsOf(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
