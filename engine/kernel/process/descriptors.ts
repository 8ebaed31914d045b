import { readdirSync, readFileSync, statSync } from 'node:fs'

export interface Descriptors {
  readonly open: number
  /** The soft limit of the process (RLIMIT_NOFILE). */
  readonly max: number
}

/** Share of the limit at which a program warns. */
export const DESCRIPTORS_WARN_SHARE = 0.8

/** File descriptors of this process and their limit (proc_pid_limits(5)), if /proc has them. */
export function fileDescriptors(): Descriptors | undefined {
  try {
    const max = /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1]
    if (max === undefined) return undefined
    return { open: openDescriptors(), max: max === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(max) }
  } catch {
    return undefined
  }
}

/** The size of the directory is the number of its entries since Linux 6.2, and 0 before. */
function openDescriptors(): number {
  return statSync('/proc/self/fd').size || readdirSync('/proc/self/fd').length
}

/** Returns how many connections a share of the limit allows. */
export function connectionsWithin(share: number): number {
  return Math.max(1, Math.floor((fileDescriptors()?.max ?? Number.MAX_SAFE_INTEGER) * share))
}
