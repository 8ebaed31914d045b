import { Fault } from '../../engine/process/error-codes.ts'
import { giveUpRoot, userToBecome } from '../privileges.ts'
import { failedBy, type Step, type StepOrder, type StepOutcome, type Tried } from './step.ts'

/** The process of one step: hears an order, answers its outcome, and is ended by the one who started it. */

/** Loaded one by one: the store, the HTTP client and libpcap's addon take longer to load than their steps take. */
const LOAD: Readonly<Record<Tried, () => Promise<Step>>> = {
  settings: async () => (await import('./settings.ts')).checkRegistry,
  interface: async () => (await import('./interface.ts')).checkInterface,
  health: async () => (await import('./health.ts')).checkHealth,
  outbox: async () => (await import('./outbox.ts')).checkOutbox,
  resolution: async () => (await import('./resolution.ts')).checkResolution,
  tls: async () => (await import('./tls.ts')).checkTls,
  token: async () => (await import('./token.ts')).checkToken,
  syslog: async () => (await import('./syslog.ts')).checkSyslog,
}

/** What reads files that `run` reads, or reads again, when it is not root any more. */
const AS_USER: ReadonlySet<Tried> = new Set<Tried>(['settings', 'tls', 'token', 'syslog'])

async function outcomeOf({ step, settings }: StepOrder): Promise<StepOutcome> {
  try {
    const run = await LOAD[step]()
    // Behind loading, as `run` does: what the program is made of may be closed to that user.
    const user = AS_USER.has(step) ? userToBecome(settings.user) : undefined
    if (user !== undefined) giveUpRoot(user)
    return await run(settings)
  } catch (error) {
    if (error instanceof Fault) return failedBy(error)
    throw error
  }
}

// A Ctrl-C reaches both processes; the other one decides.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
// Not by exit(), which waits for a name server that does not answer.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
process.once('message', async (order: StepOrder) => {
  const outcome = await outcomeOf(order)
  // The other one may be gone: then nobody is left to be told.
  process.send?.(outcome, undefined, undefined, () => {})
})
