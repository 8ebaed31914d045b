import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, mkdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { REPOSITORY } from './programs.ts'
import { TapReport } from './tap-report.ts'

/** The result of one process: of a test file, or of several that share it. */
export interface FileResult {
  readonly passed: number
  readonly failed: number
  readonly skipped: readonly string[]
  /** One text per failed assertion and per problem of the process. */
  readonly failures: readonly string[]
  readonly wallSeconds: number
  /** CPU time of the process and of all descendants that were waited for. */
  readonly cpuSeconds: number
}

/** Imports the files that share a process. */
const TOGETHER = fileURLToPath(new URL('./run-together.js', import.meta.url))

export interface RunOptions {
  readonly timeoutSeconds: number
  /** Receives standard output and standard error. */
  readonly logFile: string
  readonly environment: NodeJS.ProcessEnv
}

/** Time for tap to report the running test after the limit. */
const REPORT_MS = 10_000
/**
 * Time for a file's output to close after its exit. Output stays open only if a descendant outside
 * the process group holds it.
 */
const CLOSE_MS = 5000
const STANDARD_ERROR_BYTES = 8192

const running = new Set<ChildProcess>()
/** CPU seconds of all children that have exited. */
let endedCpuSeconds = 0

/**
 * Runs a compiled test file in its own process, or several in one. A crash, a hang and incomplete
 * TAP count as failures.
 */
export async function runFiles(compiled: readonly string[], options: RunOptions): Promise<FileResult> {
  mkdirSync(dirname(options.logFile), { recursive: true })
  const log = createWriteStream(options.logFile)
  const startMs = performance.now()
  const child = spawn(
    process.execPath,
    ['--enable-source-maps', ...(compiled.length > 1 ? [TOGETHER] : []), ...compiled],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      // A separate process group, so that the programs that the file started end with the file.
      detached: true,
      env: { ...process.env, ...options.environment, TAP: '1', TAP_TIMEOUT: `${options.timeoutSeconds}` },
    },
  )
  running.add(child)
  const report = new TapReport()
  let standardError = ''
  child.stdout.on('data', (chunk: Buffer) => {
    log.write(chunk)
    report.write(chunk)
  })
  child.stderr.on('data', (chunk: Buffer) => {
    log.write(chunk)
    standardError = (standardError + chunk.toString()).slice(-STANDARD_ERROR_BYTES)
  })
  let hung = false
  const limit = setTimeout(
    () => {
      hung = true
      killGroup(child)
    },
    options.timeoutSeconds * 1000 + REPORT_MS,
  )
  const closed = once(child, 'close')
  const [status, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
  clearTimeout(limit)
  const cpuSeconds = cpuSinceLastEnd()
  running.delete(child)
  killGroup(child)
  const forced = setTimeout(() => {
    child.stdout.destroy()
    child.stderr.destroy()
  }, CLOSE_MS)
  await closed
  clearTimeout(forced)
  report.end()
  log.end()
  const problems: string[] = []
  if (hung) problems.push(`did not end within ${options.timeoutSeconds} s`)
  else if (status !== 0 && report.failed === 0) problems.push(`ended with ${signal ?? `status ${status}`}`)
  else if (report.passed + report.failed + report.skipped.length === 0) problems.push('reported no test')
  const failed = report.failed + problems.length
  if (failed > 0 && standardError !== '') problems.push(`standard error:\n${standardError}`)
  return {
    passed: report.passed,
    failed,
    skipped: report.skipped,
    failures: [...report.failures, ...problems],
    wallSeconds: (performance.now() - startMs) / 1000,
    cpuSeconds,
  }
}

/**
 * Runs `node` in the repository. Its CPU time belongs to no test file.
 *
 * @returns its standard error if it failed, else undefined
 */
export async function runScript(script: readonly string[]): Promise<string | undefined> {
  const child = spawn(process.execPath, [...script], {
    cwd: REPOSITORY,
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  })
  running.add(child)
  let standardError = ''
  child.stderr.on('data', (chunk: Buffer) => {
    standardError = (standardError + chunk.toString()).slice(-STANDARD_ERROR_BYTES)
  })
  const closed = once(child, 'close')
  const [status, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
  cpuSinceLastEnd()
  running.delete(child)
  await closed
  return status === 0 ? undefined : `${standardError}ended with ${signal ?? `status ${status}`}`
}

/** Kills all running files, including the programs that they started. */
export function killRunning(): void {
  for (const child of running) killGroup(child)
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/**
 * Linux adds a child's times to `cutime` and `cstime` (proc(5), fields 16 and 17, in ticks of 10
 * ms) when its parent waits for it. Node waits just before it emits `exit`.
 */
function cpuSinceLastEnd(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  // The fields follow the program's name, which is in parentheses and may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const total = (Number(fields[13]) + Number(fields[14])) / 100
  const since = total - endedCpuSeconds
  endedCpuSeconds = total
  return since
}
