import { readFileSync, readlinkSync } from 'node:fs'

/** A process, so told that another with the same number is not taken for it. */
export interface ProcessIdentity {
  readonly pid: number
  /** starttime of proc_pid_stat(5): clock ticks since the machine was started. */
  readonly startTicks: number
  /** Changes whenever the machine is started. */
  readonly bootId: string
  /** Numbers are of this namespace. */
  readonly namespace: string
}

export function thisProcess(): ProcessIdentity {
  return { pid: process.pid, ...surroundings(), startTicks: startTicksOf(process.pid) ?? 0 }
}

/** Whether another process that was told so runs. One of another container cannot be seen, and counts as ended: containers are replaced. */
export function runsElsewhere({ pid, startTicks, bootId, namespace }: ProcessIdentity): boolean {
  const here = surroundings()
  if (pid === process.pid || bootId !== here.bootId || namespace !== here.namespace) return false
  return startTicksOf(pid) === startTicks
}

function surroundings(): Pick<ProcessIdentity, 'bootId' | 'namespace'> {
  return {
    bootId: attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    namespace: attempt(() => readlinkSync('/proc/self/ns/pid')),
  }
}

/** undefined where it does not run, or has ended and nobody has asked how. */
function startTicksOf(pid: number): number | undefined {
  const text = attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
  // The second field is a name in parentheses, in which anything may stand.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state] = fields
  return text === '' || state === 'Z' || state === 'X' ? undefined : Number(fields[STARTTIME_FIELD - STATE_FIELD])
}

const STATE_FIELD = 3
const STARTTIME_FIELD = 22

function attempt(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}
