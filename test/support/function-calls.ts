import { Session } from 'node:inspector'

/**
 * Counts the calls of functions in files whose path contains `part`, while `work` runs. A measure
 * of work that does not depend on the machine's speed.
 */
export function functionCalls(part: string, work: () => void): number {
  const session = new Session()
  session.connect()
  try {
    // In one thread, the inspector answers before post() returns.
    session.post('Profiler.enable')
    session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    work()
    let calls = 0
    session.post('Profiler.takePreciseCoverage', (error, taken) => {
      if (error !== null) throw new Error(error.message)
      for (const { url, functions } of taken.result) {
        if (!url.includes(part)) continue
        for (const { ranges } of functions) for (const { count } of ranges) calls += count
      }
    })
    return calls
  } finally {
    session.disconnect()
  }
}
