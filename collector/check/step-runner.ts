import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { FaultCode } from '../../engine/kernel/process/error-codes.ts'
import type { CollectorSettings } from '../config.ts'
import { CHECK_STEP_MS } from '../limits.ts'
import type { CheckName, StepOrder, StepOutcome } from './step.ts'

export interface RunningStep {
  /** Resolves within CHECK_STEP_MS. Rejects if the step's process failed. */
  readonly outcome: Promise<StepOutcome>
  /** Kills the step at once if it has not ended. */
  stop(): void
}

/**
 * Starts a step in a process of its own. A call that cannot be interrupted (to a name server, a
 * network file system, a driver that does not answer) then costs the time of one step and never
 * prevents the program from exiting.
 */
export function startStep(step: CheckName, settings: CollectorSettings, timeoutMs = CHECK_STEP_MS): RunningStep {
  const child = fork(fileURLToPath(new URL('./step-process.js', import.meta.url)), [], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    // The program is compiled. Loaders and flags of this process would only slow its start.
    execArgv: [],
  })
  const stop = (): void => {
    child.kill('SIGKILL')
    // Does not wait for a process that is blocked in the kernel.
    child.unref()
    if (child.connected) child.disconnect()
  }
  let timer: NodeJS.Timeout | undefined
  const outcome = new Promise<StepOutcome>((resolve, reject) => {
    timer = setTimeout(() => resolve(timedOut(step, settings, timeoutMs)), timeoutMs)
    child.once('message', (message) => resolve(message as StepOutcome))
    child.on('error', reject)
    child.once('exit', (status, signal) =>
      reject(new Error(`check ${step}: its process ended by ${signal ?? `status ${status}`}`)),
    )
    child.send({ step, settings } satisfies StepOrder)
  }).finally(() => {
    clearTimeout(timer)
    stop()
  })
  // After stop(), the caller ignores the outcome.
  outcome.catch(() => {})
  return { outcome, stop }
}

const TIMED_OUT: Readonly<Record<CheckName, readonly [code: FaultCode, fix: string]>> = {
  settings: [
    'REGISTRY_FILE',
    'the file system does not respond, such as a network file system: name a file on a local disk',
  ],
  interface: ['CAPTURE_DENIED', "the interface's driver does not respond: see the kernel's log"],
  health: ['PORT_DENIED', 'set another HEALTH_PORT'],
  outbox: [
    'STORE_UNWRITABLE',
    'the file system does not respond, such as a network file system: name a directory on a local disk',
  ],
  resolution: ['SERVICE_UNREACHABLE', 'see which name servers /etc/resolv.conf names, or give --endpoint an address'],
  tls: ['SERVICE_UNREACHABLE', 'a firewall or proxy on the path drops the packets'],
  token: ['SERVICE_UNREACHABLE', "see the service's log: it accepts connections but does not answer"],
  syslog: ['SERVICE_UNREACHABLE', 'a firewall on the path drops the packets'],
}

function timedOut(step: CheckName, settings: CollectorSettings, timeoutMs: number): StepOutcome {
  const { interface: name, outbox, registry } = settings
  const what = { interface: name, outbox, settings: registry }[step as string] ?? settings.endpoint
  const [code, fix] = TIMED_OUT[step]
  return { result: 'failed', code, found: `${what}: no answer within ${timeoutMs / 1000} s`, fix }
}
