import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { REPORT_BYTES_MAX } from '../../dry-run/limits.ts'
import { type FileReport, fileReport, ORDER_LENGTH_BYTES, type Order } from '../../dry-run/report.ts'
import { deferred } from '../../engine/kernel/process/deferred.ts'
import type { Logger } from '../../engine/kernel/process/log.ts'
import { TRIAL_CHECK_MS, TRIAL_ERROR_BYTES_MAX, TRIAL_MEMORY_BYTES_MAX, TRIAL_MS_MAX } from './limits.ts'

/** The report, or why there is none. */
export type Reading =
  | { readonly kind: 'report'; readonly report: FileReport }
  | { readonly kind: 'failed'; readonly why: 'memory' | 'time' | 'crash' | 'canceled' }

export interface FileProcessOptions {
  readonly log: Logger
  /** Polled. true kills the process: nobody waits for the report. */
  readonly isCanceled: () => boolean
  /** Replaces the program in tests. */
  readonly program?: string
  readonly timeMsMax?: number
}

const PROGRAM = fileURLToPath(new URL('../../dry-run/main.js', import.meta.url))
/** Everything that the program may open. Without the permission, Node refuses. */
const READABLE = ['../../', '../../../node_modules/', '../../../package.json'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
)
/** Before Node 22.13, the permission model has another name. */
const PERMISSION = process.allowedNodeEnvironmentFlags.has('--permission')
  ? '--permission'
  : '--experimental-permission'
const HEAP_MB = TRIAL_MEMORY_BYTES_MAX / 2 ** 21
const NODE_FLAGS = ['--no-warnings', `--max-old-space-size=${HEAP_MB}`, '--max-semi-space-size=4']
const KIB = 1024
/**
 * The kernel's limits: private memory, processor time, no core dumps, no files. Not every sandbox
 * allows to set them, so the parent checks the process as well.
 */
const SHELL = '/bin/sh'
const LIMITS = [
  `ulimit -d ${TRIAL_MEMORY_BYTES_MAX / KIB}`,
  `ulimit -t ${TRIAL_MS_MAX / 1000}`,
  'ulimit -c 0',
  'ulimit -f 0',
].map((command) => `${command} 2>/dev/null`)
const SHELL_SCRIPT = `${LIMITS.join('; ')}; exec "$0" "$@"`
const PRIORITY_LOW = 10
/** Columns of /proc/PID/stat after the name (proc(5)), in ticks of 10 ms. */
const UTIME = 11
const STIME = 12
const TICK_MS = 10

/**
 * A process that reads one untrusted file. It has neither the environment of the service nor a path
 * to the data directory. Node's permission model denies it other files, processes, threads and
 * native libraries.
 */
export class FileProcess {
  readonly result: Promise<Reading>
  readonly #child: ChildProcess
  readonly #options: FileProcessOptions
  readonly #settled = deferred<Reading>()
  #isOver = false
  #endWriting: () => void = () => {}
  #endedMs = Number.POSITIVE_INFINITY
  readonly #timer: NodeJS.Timeout
  #output: Buffer[] = []
  #outputBytes = 0
  #errors = ''
  /** The most that was seen. */
  #memoryBytes = 0

  constructor(order: Order, options: FileProcessOptions) {
    this.#options = options
    this.result = this.#settled.promise
    const { program = PROGRAM } = options
    const readable = [...READABLE, ...(program === PROGRAM ? [] : [program])]
    const args = [PERMISSION, ...readable.map((path) => `--allow-fs-read=${path}`), ...NODE_FLAGS, program]
    const command = [process.execPath, ...args]
    const [file = '', ...rest] = existsSync(SHELL) ? [SHELL, '-c', SHELL_SCRIPT, ...command] : command
    this.#child = spawn(file, rest, { env: {}, cwd: '/', stdio: ['pipe', 'pipe', 'pipe'] })
    this.#lowerPriority()
    this.#collect()
    this.#timer = setInterval(() => this.#check(), TRIAL_CHECK_MS)
    const text = Buffer.from(JSON.stringify(order))
    const length = Buffer.alloc(ORDER_LENGTH_BYTES)
    length.writeUInt32LE(text.length)
    this.#child.stdin?.write(Buffer.concat([length, text]))
  }

  /** Passes bytes of the file on. Resolves when more can follow, also if the process has ended. */
  write(chunk: Uint8Array): Promise<void> {
    const { stdin } = this.#child
    if (this.#isOver || stdin === null || !stdin.writable) return Promise.resolve()
    return new Promise((resolve) => {
      // Not `result.then()`: that would keep each chunk until the process ends.
      this.#endWriting = resolve
      stdin.write(chunk, () => resolve())
    })
  }

  /** The file is complete. */
  end(): void {
    this.#endedMs = performance.now()
    this.#child.stdin?.end()
  }

  cancel(): void {
    this.#finish({ kind: 'failed', why: 'canceled' })
  }

  #collect(): void {
    const { stdin, stdout, stderr } = this.#child
    // The process may end before it has read the whole file.
    stdin?.on('error', () => {})
    stdout?.on('data', (chunk: Buffer) => {
      this.#outputBytes += chunk.length
      if (this.#outputBytes <= REPORT_BYTES_MAX) this.#output.push(chunk)
      else this.#fail(`the report has more than ${REPORT_BYTES_MAX} bytes`)
    })
    stderr?.on('data', (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString('latin1')).slice(0, TRIAL_ERROR_BYTES_MAX)
    })
    this.#child.once('error', (error) => this.#fail(error.message))
    this.#child.once('close', (status, signal) => this.#closed(status, signal))
  }

  #closed(status: number | null, signal: NodeJS.Signals | null): void {
    if (this.#isOver) return
    if (status !== 0) {
      if (this.#isOutOfMemory(signal)) return this.#finish({ kind: 'failed', why: 'memory' })
      if (signal === 'SIGXCPU') return this.#finish({ kind: 'failed', why: 'time' })
      return this.#fail(`ended by ${signal ?? `status ${status}`}`)
    }
    const report = reportOf(Buffer.concat(this.#output))
    if (report === undefined) this.#fail('the report is not valid')
    else this.#finish({ kind: 'report', report })
  }

  /** At the kernel's limit, V8 reports the error, or fails in any way. */
  #isOutOfMemory(signal: NodeJS.Signals | null): boolean {
    if (/out of memory|allocation failed|ENOMEM/i.test(this.#errors)) return true
    return signal !== null && this.#memoryBytes > TRIAL_MEMORY_BYTES_MAX / 2
  }

  /** Kills the process if it exceeds a limit. */
  #check(): void {
    const { timeMsMax = TRIAL_MS_MAX, isCanceled } = this.#options
    if (isCanceled()) return this.cancel()
    const { memoryBytes, cpuMs } = usageOf(this.#child.pid)
    this.#memoryBytes = Math.max(this.#memoryBytes, memoryBytes)
    if (memoryBytes > TRIAL_MEMORY_BYTES_MAX) return this.#finish({ kind: 'failed', why: 'memory' })
    if (cpuMs > timeMsMax || performance.now() - this.#endedMs > timeMsMax) {
      this.#finish({ kind: 'failed', why: 'time' })
    }
  }

  /** The log gets the stack of an error, but not its message, which may quote the file. */
  #fail(reason: string): void {
    if (this.#isOver) return
    const stack = this.#errors.split('\n').filter((line) => /^ {4}at /.test(line))
    this.#options.log.error({ reason, stack }, 'the process that reads an uploaded file failed')
    this.#finish({ kind: 'failed', why: 'crash' })
  }

  #finish(reading: Reading): void {
    if (this.#isOver) return
    this.#isOver = true
    clearInterval(this.#timer)
    this.#output = []
    this.#child.kill('SIGKILL')
    this.#settled.resolve(reading)
    this.#endWriting()
  }

  #lowerPriority(): void {
    try {
      if (this.#child.pid !== undefined) setPriority(this.#child.pid, PRIORITY_LOW)
    } catch {
      // Not every sandbox allows this.
    }
  }
}

function reportOf(bytes: Buffer): FileReport | undefined {
  try {
    return fileReport.safeParse(JSON.parse(bytes.toString())).data
  } catch {
    return undefined
  }
}

const PAGE_BYTES = 4096

/** Resident memory and processor time of a process; 0 if it has ended. */
function usageOf(pid: number | undefined): { readonly memoryBytes: number; readonly cpuMs: number } {
  try {
    const [, pages = '0'] = readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const columns = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const ticks = Number(columns[UTIME]) + Number(columns[STIME])
    return { memoryBytes: Number(pages) * PAGE_BYTES, cpuMs: ticks * TICK_MS }
  } catch {
    return { memoryBytes: 0, cpuMs: 0 }
  }
}
