import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type AdminRow, adminProgram } from '../../engine/admin/program.ts'
import { failureOf } from '../../engine/process/program.ts'
import { SCOPES } from '../../engine/store/api-keys.ts'

/** The compiled programs, as a package would install them. */
const DIST = new URL('../../', import.meta.url)
export const PROGRAMS = {
  service: fileURLToPath(new URL('api/main.js', DIST)),
  collector: fileURLToPath(new URL('collector/main.js', DIST)),
  admin: fileURLToPath(new URL('engine/admin/main.js', DIST)),
  demo: fileURLToPath(new URL('deploy/demo.js', DIST)),
} as const
export const REPOSITORY = fileURLToPath(new URL('../', DIST))

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
  /** What was written so far. */
  readonly output: { stdout: string; stderr: string }
}

/**
 * Starts one of the programs with an environment of its own: nothing of the developer's settings reaches it. `through` is a command that
 * executes another, as `ip netns exec NAME`.
 */
export function start(
  program: keyof typeof PROGRAMS,
  parameters: readonly string[],
  environment: NodeJS.ProcessEnv = {},
  through: readonly string[] = [],
): Running {
  return startCommand([...through, process.execPath, PROGRAMS[program], ...parameters], environment)
}

/** The same for a command that is no program of dist/, as an executable of a release. */
export function startCommand(words: readonly string[], environment: NodeJS.ProcessEnv = {}): Running {
  const [command = '', ...parameters] = words
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

/** Runs one of the programs to its end. */
export function run(
  program: keyof typeof PROGRAMS,
  parameters: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<Ended> {
  return start(program, parameters, environment).ended
}

/** Runs a command of posture-admin in this process, and answers the rows that it prints. Throws where it fails. */
export async function admin(...words: string[]): Promise<AdminRow[]> {
  const { status, stdout, stderr } = await runAdmin(words)
  if (status !== 0) throw new Error(`posture-admin ${words.join(' ')}: ${status} ${stderr}`)
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as AdminRow)
}

/**
 * The same with the status and the line that the program would end with. A process of its own takes most of a second of CPU to
 * start, so `run('admin')` is for tests of the process: its signals, its input, what it writes beside its rows.
 */
export async function runAdmin(words: readonly string[]): Promise<Omit<Ended, 'signal'>> {
  let stdout = ''
  const program = adminProgram((text) => {
    stdout += text
  })
  try {
    await program.parseAsync([...words, '--json'], { from: 'user' })
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
  readonly ingestPort: number
  readonly metricsPort: number
  readonly syslog: readonly { readonly kind: 'tls' | 'tcp' | 'udp'; readonly address: string; readonly port: number }[]
  readonly fingerprint: string
}

/** Words by which a collector on this machine forwards to the service and to no other. */
export function reachWords({ ingestPort, fingerprint }: RunningService): string[] {
  return ['--endpoint', 'localhost', '--https-port', `${ingestPort}`, '--fingerprint', fingerprint]
}

/** Tests run side by side, so no service listens on the ports that are so by default. */
export const SYSLOG_OFF = ['--syslog-tls', 'off', '--syslog-tcp', 'off', '--syslog-udp', 'off']

/** Starts posture-service on ports that the system chooses, unless given, and waits until it serves. */
export async function startService(
  dataDirectory: string,
  parameters: readonly string[] = [],
  environment: NodeJS.ProcessEnv = {},
  through: readonly string[] = [],
): Promise<RunningService> {
  const command = [...through, process.execPath, PROGRAMS.service]
  return startServiceCommand(command, dataDirectory, parameters, environment)
}

/** The same for a posture-service that lies elsewhere, as one of a release. */
export async function startServiceCommand(
  command: readonly string[],
  dataDirectory: string,
  parameters: readonly string[] = [],
  environment: NodeJS.ProcessEnv = {},
): Promise<RunningService> {
  const loopback = ['--api-address', '127.0.0.1', '--ingest-address', '127.0.0.1']
  const ports = ['--api-port', '0', '--ingest-port', '0', '--metrics-port', '0', ...SYSLOG_OFF]
  const running = startCommand(
    [...command, '--data-dir', dataDirectory, ...loopback, ...ports, ...parameters],
    environment,
  )
  const failed = running.ended.then(({ status, stderr }) => {
    throw new Error(`posture-service ended with ${status}: ${stderr}`)
  })
  const [listening] = (await Promise.race([once(running.child, 'message'), failed])) as [
    Omit<RunningService, keyof Running>,
  ]
  failed.catch(() => {})
  return { ...running, ...listening }
}

/**
 * Interrupts a program that waits, and answers how it ended. From outside one does not see when its signal handler is there: a program
 * that the signal killed was not ready, and is started again and given twice the time.
 */
export async function interrupted<End extends Pick<Ended, 'signal'>>(
  startOne: () => { readonly child: ChildProcess; readonly ended: Promise<End> },
): Promise<End> {
  for (let waitMs = 500; ; waitMs *= 2) {
    const { child, ended } = startOne()
    await new Promise((resolve) => setTimeout(resolve, waitMs))
    child.kill('SIGINT')
    const how = await ended
    if (how.signal !== 'SIGINT' || waitMs > 60_000) return how
  }
}
