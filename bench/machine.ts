import { readFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'

/** What a figure was measured on, in one line. */
export function machineLine(): string {
  const cores = cpus()
  const load = loadavg()[0]?.toFixed(1)
  return `${cores.length} x ${cores[0]?.model ?? 'unknown CPU'}, Node ${process.versions.node}, load ${load}; shared machines are noisy: read the ratios`
}

/** `VmRSS` is all that is resident, `RssAnon` what of it is no file's: pages of LMDB's file count as the system has room for them. `VmHWM` is the most so far. */
export function memoryBytes(pid: number | 'self', field: 'VmHWM' | 'VmRSS' | 'RssAnon'): number {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024
}

/** Linux counts CPU time in jiffies (proc(5)), of which getconf CLK_TCK is 100 everywhere. */
const JIFFY_SECONDS = 0.01

/** CPU time of a process, of all its threads. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name of the program stands in parentheses and may hold blanks.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * JIFFY_SECONDS
}

export const megabytes = (bytes: number): number => Math.round(bytes / 1e6)
