import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as later } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type AdminRow, programFor } from '../../engine/cli/program.ts'
import { failureOf } from '../../engine/kernel/process/program.ts'
import { SCOPES } from '../../engine/store/secrets.ts'

/** The compiled programs, in the layout of a package. */
const DIST = new URL('../../', import.meta.url)
export const PROGRAMS = {
  service: fileURLToPath(new URL('api/main.js', DIST)),
  collector: fileURLToPath(new URL('collector/main.js', DIST)),
  admin: fileURLToPath(new URL('engine/admin/main.js', DIST)),
  demo: fileURLToPath(new URL('deploy/demo.js', DIST)),
} as const
export const REPOSITORY = fileURLToPath(new URL('../', DIST))
export const CONTAINER_FILES = fileURLToPath(new URL('../deploy/container', DIST))

/** Every scope of an API key, for `key create`. */
export const ALL_SCOPES = ['--scope', ...SCOPES]

export interface Ended {
  readonly status: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  /** The output so far. */
  readonly output: { stdout: string; stderr: string }
}

/**
 * Starts one of the programs with a minimal environment, so that the developer's settings do not
 * reach it. `through` is a command that executes another, such as `ip netns exec NAME`.
 */
export function start(
  program: keyof typeof PROGRAMS,
  parameters: readonly string[],
  environment: NodeJS.ProcessEnv = {},
  through: readonly string[] = [],
): Running {
  return startCommand([...through, process.execPath, PROGRAMS[program], ...parameters], environment)
}

/** Like `start`, for a command that is not in dist/, such as a released executable. */
export function startCommand(args: readonly string[], environment: NodeJS.ProcessEnv = {}): Running {
  const [command = '', ...parameters] = args
  const child = spawn(command, parameters, {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: { PATH: process.env['PATH'], ...environment },
  })
  const output = { stdout: '', stderr: '' }
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    output.stdout += chunk
  })
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    output.stderr += chunk
  })
  const ended = once(child, 'close').then(([status, signal]) => ({ status, signal, ...output }) as Ended)
  return { child, ended, output }
}

/** Runs one of the programs until it exits. */
export function run(
  program: keyof typeof PROGRAMS,
  parameters: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<Ended> {
  return start(program, parameters, environment).ended
}

/**
 * Runs a posture-admin command in this process and returns the rows that it prints.
 *
 * @throws Error when the command fails.
 */
export async function admin(...args: string[]): Promise<AdminRow[]> {
  const { status, stdout, stderr } = await runAdmin(args)
  if (status !== 0) throw new Error(`posture-admin ${args.join(' ')}: ${status} ${stderr}`)
  return jsonLines<AdminRow>(stdout)
}

/** The rows that a program printed as lines of JSON. */
export function jsonLines<Row = Record<string, unknown>>(text: string): Row[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Row)
}

/**
 * Like `admin`, but returns the exit status and the error line. A separate process takes almost a
 * second of CPU to start, so `run('admin')` is for tests of the process itself: signals, input,
 * output other than rows.
 */
export async function runAdmin(args: readonly string[]): Promise<Omit<Ended, 'signal'>> {
  let stdout = ''
  const program = await programFor(args, (text) => {
    stdout += text
  })
  try {
    await program.parseAsync([...args, '--json'], { from: 'user' })
    const status = Number(process.exitCode ?? 0)
    process.exitCode = undefined
    return { status, stdout, stderr: '' }
  } catch (error) {
    const { status, text } = failureOf(program.name(), error)
    return { status, stdout, stderr: text }
  }
}

export interface RunningService extends Running {
  readonly apiPort: number
  readonly consolePort: number
  readonly ingestPort: number
  readonly metricsPort: number
  readonly syslog: readonly { readonly kind: 'tls' | 'tcp' | 'udp'; readonly address: string; readonly port: number }[]
  readonly fingerprint: string
}

/** Arguments for a collector on this machine to forward to this service only. */
export function forwardArgs({ ingestPort, fingerprint }: RunningService): string[] {
  return ['--endpoint', 'localhost', '--https-port', `${ingestPort}`, '--service-fingerprint', fingerprint]
}

/** Tests run in parallel, so the service must not listen on the default syslog ports. */
export const SYSLOG_OFF = ['--syslog-tls', 'off', '--syslog-tcp', 'off', '--syslog-udp', 'off']

/** So that a service that hangs is reported with what it logged. */
const LISTENS_MS = 300_000

/** Starts posture-service and waits until it serves. By default the system chooses the ports. */
export async function startService(
  dataDirectory: string,
  parameters: readonly string[] = [],
  environment: NodeJS.ProcessEnv = {},
  through: readonly string[] = [],
): Promise<RunningService> {
  const command = [...through, process.execPath, PROGRAMS.service]
  return startServiceCommand(command, dataDirectory, parameters, environment)
}

/** Like `startService`, for a posture-service that is not in dist/, such as a released one. */
export async function startServiceCommand(
  command: readonly string[],
  dataDirectory: string,
  parameters: readonly string[] = [],
  environment: NodeJS.ProcessEnv = {},
): Promise<RunningService> {
  const loopback = ['--api-address', '127.0.0.1', '--ingest-address', '127.0.0.1']
  const ports = ['--api-port', '0', '--console-port', '0', '--ingest-port', '0', '--metrics-port', '0', ...SYSLOG_OFF]
  const running = startCommand(
    [...command, '--data-dir', dataDirectory, ...loopback, ...ports, ...parameters],
    environment,
  )
  const failed = running.ended.then(({ status, stderr }) => {
    throw new Error(`posture-service ended with ${status}: ${stderr}`)
  })
  const late = later(LISTENS_MS, undefined, { ref: false }).then(() => {
    throw new Error(`posture-service does not listen after ${LISTENS_MS / 1000} s: ${running.output.stderr}`)
  })
  const [listening] = (await Promise.race([once(running.child, 'message'), failed, late])) as [
    Omit<RunningService, keyof Running>,
  ]
  for (const other of [failed, late]) other.catch(() => {})
  return { ...running, ...listening }
}

/**
 * Interrupts a waiting program and returns how it ended. The test cannot observe when the program's
 * signal handler is installed. If the signal killed the program, the program was not ready: it is
 * started again and given twice the time.
 */
export async function interruptAndWait<End extends Pick<Ended, 'signal'>>(
  startProgram: () => { readonly child: ChildProcess; readonly ended: Promise<End> },
): Promise<End> {
  for (let waitMs = 500; ; waitMs *= 2) {
    const { child, ended } = startProgram()
    await new Promise((resolve) => setTimeout(resolve, waitMs))
    child.kill('SIGINT')
    const how = await ended
    if (how.signal !== 'SIGINT' || waitMs > 60_000) return how
  }
}
