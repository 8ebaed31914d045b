import { readFileSync } from 'node:fs'

/** A reading takes as long as the scan of a small buffer. */
const READ_EVERY_MS = 20
/** proc_pid_stat(5): clock ticks, of which Linux always has 100 per second. */
const MS_PER_TICK = 10
/** The index of utime after the name of the program, which may contain spaces; stime follows. */
const USER_TIME = 11

let readAtMs = Number.NEGATIVE_INFINITY
let cpuMs = 0

/**
 * Milliseconds of CPU time that the calling thread has taken, as of the last READ_EVERY_MS.
 * process.threadCpuUsage() needs Node 22.19, and process.cpuUsage() includes the other threads.
 */
export function threadCpuMs(): number {
  const nowMs = performance.now()
  if (nowMs - readAtMs >= READ_EVERY_MS) {
    readAtMs = nowMs
    const stat = readFileSync('/proc/thread-self/stat', 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    cpuMs = (Number(fields[USER_TIME]) + Number(fields[USER_TIME + 1])) * MS_PER_TICK
  }
  return cpuMs
}
