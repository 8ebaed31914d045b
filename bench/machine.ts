import { cpus, loadavg } from 'node:os'

/** What a figure was measured on, in one line. */
export function machineLine(): string {
  const cores = cpus()
  const load = loadavg()[0]?.toFixed(1)
  return `${cores.length} x ${cores[0]?.model ?? 'unknown CPU'}, Node ${process.versions.node}, load ${load}; shared machines are noisy: read the ratios`
}
