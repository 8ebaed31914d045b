import { readFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'

/** Describes the machine in one line. */
export function machineLine(): string {
  const cores = cpus()
  const load = loadavg()[0]?.toFixed(1)
  return `${cores.length} x ${cores[0]?.model ?? 'unknown CPU'}, Node ${process.versions.node}, load ${load}; shared machines are noisy: read the ratios`
}

/**
 * `VmRSS` is all resident memory. `RssAnon` is the part that is not from a file: pages of LMDB's
 * file stay in memory only while the system has space. `VmHWM` is the peak.
 */
export function memoryBytes(pid: number | 'self', field: 'VmHWM' | 'VmRSS' | 'RssAnon'): number {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024
}

/** Linux counts CPU time in jiffies (proc(5)). getconf CLK_TCK is always 100. */
const JIFFY_SECONDS = 0.01

/** CPU time of all threads of a process. */
export function cpuSeconds(pid: number): number {
  return cpuSecondsIn(`/proc/${pid}/stat`)
}

/** CPU time of the thread that runs the event loop. */
export function mainThreadCpuSeconds(pid: number): number {
  return cpuSecondsIn(`/proc/${pid}/task/${pid}/stat`)
}

function cpuSecondsIn(path: string): number {
  const stat = readFileSync(path, 'utf8')
  // The program's name is in parentheses and may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * JIFFY_SECONDS
}

export const megabytes = (bytes: number): number => Math.round(bytes / 1e6)
