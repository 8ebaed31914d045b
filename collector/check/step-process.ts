import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { dropRoot, userToBecome } from '../privileges.ts'
import { type CheckName, failedBy, type Step, type StepOrder, type StepOutcome } from './step.ts'

/**
 * The process of one step: receives an order, replies with the outcome, and is killed by its
 * parent.
 */

/**
 * Imported on demand: loading the store, the HTTP client and libpcap's addon takes longer than
 * their steps.
 */
const LOAD: Readonly<Record<CheckName, () => Promise<Step>>> = {
  settings: async () => (await import('./settings.ts')).checkRegistry,
  interface: async () => (await import('./interface.ts')).checkInterface,
  health: async () => (await import('./health.ts')).checkHealth,
  outbox: async () => (await import('./outbox.ts')).checkOutbox,
  resolution: async () => (await import('./service.ts')).checkResolution,
  tls: async () => (await import('./service.ts')).checkTls,
  token: async () => (await import('./service.ts')).checkToken,
  syslog: async () => (await import('./service.ts')).checkSyslog,
}

/** Steps that read files which `run` reads after dropping root. */
const AS_USER: ReadonlySet<CheckName> = new Set<CheckName>(['settings', 'tls', 'token', 'syslog'])

async function outcomeOf({ step, settings }: StepOrder): Promise<StepOutcome> {
  try {
    const run = await LOAD[step]()
    // After loading, as in `run`: the user may lack access to the program's files.
    const user = AS_USER.has(step) ? userToBecome(settings) : undefined
    if (user !== undefined) dropRoot(user)
    return await run(settings)
  } catch (error) {
    if (error instanceof Fault) return failedBy(error)
    throw error
  }
}

// Ctrl-C reaches both processes. The parent handles it.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
// Not exit(), which waits for a name server that does not answer.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
process.once('message', async (order: StepOrder) => {
  const outcome = await outcomeOf(order)
  // The parent may be gone, and nobody is left to receive the error.
  process.send?.(outcome, undefined, undefined, () => {})
})
