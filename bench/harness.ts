import { type ChildProcess, execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'

/** `toy` shows that a benchmark works, `short` is for the summary. */
export type Size = 'toy' | 'short' | 'full'

/** A measured value, and the value of each peer that did the same work in the same run. */
export interface Figure {
  readonly what: string
  /** The unit: for a time or memory, less is better. */
  readonly unit: string
  readonly ours: number
  readonly peers?: readonly { readonly name: string; readonly value: number }[]
  /** Our value, or with `ratio` our value over that of the first peer. */
  readonly aim?: { readonly ratio?: boolean } & ({ readonly atLeast: number } | { readonly atMost: number })
}

export interface Benchmark {
  run(size: Size): Promise<Figure[]>
}

export interface Contender<Value = number> {
  readonly name: string
  /** Does the whole work once and returns the measured value. */
  run(round: number): Promise<Value> | Value
}

type Medians = Pick<Figure, 'ours' | 'peers'>

/**
 * Lets contenders do their work in turn, so that a slow minute of the machine affects all. Returns
 * the medians; the first contender is ours.
 */
export async function inTurn(rounds: number, contenders: readonly Contender[]): Promise<Medians> {
  const lists = contenders.map((each) => ({ name: each.name, run: async (round: number) => [await each.run(round)] }))
  const [medians = { ours: Number.NaN }] = await valuesInTurn(rounds, lists)
  return medians
}

/** The same for contenders that measure several values. */
export async function valuesInTurn(
  rounds: number,
  contenders: readonly Contender<readonly number[]>[],
): Promise<Medians[]> {
  const results = contenders.map(() => [] as (readonly number[])[])
  for (let round = 0; round < rounds; round++) {
    for (const [index, contender] of contenders.entries()) results[index]?.push(await contender.run(round))
  }
  return (results[0]?.[0] ?? []).map((_, at) => {
    const [ours = Number.NaN, ...others] = results.map((values) =>
      median(values.map((value) => value[at] ?? Number.NaN)),
    )
    return { ours, peers: others.map((value, index) => ({ name: contenders[index + 1]?.name ?? '', value })) }
  })
}

/** @throws Error if a contender did other work than ours */
export function same(name: string, found: unknown, expected: unknown): void {
  const [one, other] = [found, expected].map((value) => JSON.stringify(value))
  if (one !== other) throw new Error(`${name}: found ${one}, expected ${other}`)
}

/** A line for each figure: ours, each peer with the ratio, and the aim. */
export function figureLines({ what, unit, ours, peers = [], aim }: Figure): string {
  const ratios = peers.map(
    ({ name, value }) => `${value === 0 ? '' : `${shown(ours / value)}x `}${name} (${shown(value)})`,
  )
  return [
    `${what}: ${shown(ours)} ${unit}`,
    ...ratios,
    ...(aim === undefined ? [] : [aimText(ours, peers[0]?.value, aim)]),
  ].join('; ')
}

function aimText(ours: number, peer: number | undefined, aim: NonNullable<Figure['aim']>): string {
  const value = aim.ratio === true ? ours / (peer ?? Number.NaN) : ours
  const [limit, reached] = 'atLeast' in aim ? [aim.atLeast, value >= aim.atLeast] : [aim.atMost, value <= aim.atMost]
  return `aim ${shown(limit)}${aim.ratio === true ? 'x' : ''} ${reached ? 'reached' : 'not reached'}`
}

const shown = (value: number): string =>
  value.toLocaleString('en', Math.abs(value) < 1000 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 })

export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** The middle value; the upper one of two if the number is even. */
export const median = (values: readonly number[]): number => percentile(values, 0.5)

/** The value below which this part of the values is. */
export function percentile(values: readonly number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))] ?? 0
}

export function perSecond(units: number, startMs: number): number {
  return units / ((performance.now() - startMs) / 1000)
}

/** Runs work with a temporary directory. */
export async function inDirectory<T>(work: (directory: string) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'posture-bench-'))
  try {
    return await work(directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** The next message of a process. @throws Error if the process ends first */
export async function messageOf<T>(child: ChildProcess): Promise<T> {
  const done = new AbortController()
  const ended = once(child, 'exit', { signal: done.signal }).then(([status]) => {
    throw new Error(`a process of the benchmark ended with ${status}`)
  })
  ended.catch(() => {})
  try {
    return ((await Promise.race([once(child, 'message', { signal: done.signal }), ended])) as [T])[0]
  } finally {
    done.abort()
  }
}

export async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}

/** Describes the machine in one line. */
export function machineLine(): string {
  const cores = cpus()
  const load = loadavg()[0]?.toFixed(1)
  return `${cores.length} x ${cores[0]?.model ?? 'unknown CPU'}, Node ${process.versions.node}, load ${load}; shared machines are noisy: read the ratios`
}

/**
 * Megabytes. `VmRSS` is all resident memory. `RssAnon` is the part that is not from a file: pages
 * of LMDB's file stay in memory only while the system has space. `VmHWM` is the peak.
 */
export function memoryMb(pid: number | 'self', field: 'VmHWM' | 'VmRSS' | 'RssAnon'): number {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8')
  return (Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024) / 1e6
}

/** Linux counts CPU time in jiffies (proc(5)). getconf CLK_TCK is always 100. */
const JIFFY_SECONDS = 0.01

/** CPU time of all threads of a process. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The program's name is in parentheses and may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * JIFFY_SECONDS
}

/**
 * Puts server and client on separate cores. On one core they alternate, and the result measures the
 * scheduler.
 */
export function pinned(who: 'server' | 'client'): readonly string[] {
  return availableParallelism() < 2 || !isInstalled('taskset') ? [] : ['taskset', '-c', who === 'server' ? '0' : '1']
}

/** Moves all threads of a running process. */
export function pin(pid: number, who: 'server' | 'client'): void {
  const [command, ...words] = pinned(who)
  if (command === undefined) return
  execFileSync(command, ['-a', '-p', '-c', ...words.slice(1), String(pid)], { stdio: 'ignore' })
}

export function isInstalled(program: string): boolean {
  const folders = `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`.split(':')
  return folders.some((folder) => existsSync(join(folder, program)))
}

/** Runs a program and returns its output, and its time in seconds. @throws Error if it fails */
export function timed(
  program: string,
  parameters: readonly string[],
): { readonly seconds: number; readonly text: string } {
  const startMs = performance.now()
  const { status, stdout, stderr } = spawnSync(program, parameters, { encoding: 'utf8', maxBuffer: 2 ** 31 })
  if (status !== 0) throw new Error(`${program} ${parameters.join(' ')}: status ${status}`)
  return { seconds: (performance.now() - startMs) / 1000, text: stdout + stderr }
}
