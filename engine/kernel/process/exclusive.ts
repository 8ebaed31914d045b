import { createHash } from 'node:crypto'
import { DirectoryLock } from './directory-lock.ts'
import { Fault } from './error-codes.ts'

/** Releases the lock. */
export type Release = () => Promise<void>

/**
 * Takes the lock for some work in a directory (directory-lock.ts).
 *
 * @param what describes the work, in any words
 * @returns undefined if another process has the lock
 */
export async function tryHold(directory: string, what: string): Promise<Release | undefined> {
  const lock = await DirectoryLock.take(directory, nameOf(what))
  return lock && (() => lock.release())
}

/** Whether a process has the lock now. */
export function isHeld(directory: string, what: string): Promise<boolean> {
  return DirectoryLock.isTaken(directory, nameOf(what))
}

function nameOf(what: string): string {
  return createHash('sha256').update(what).digest('hex').slice(0, 16)
}

/**
 * Runs work that only one process at a time may do in a directory.
 *
 * @param what describes the work, for the error message
 * @throws Fault STORE_IN_USE if another process is doing it
 */
export async function exclusively<T>(directory: string, what: string, work: () => Promise<T>): Promise<T> {
  const release = await tryHold(directory, what)
  if (release === undefined) {
    throw new Fault('STORE_IN_USE', `another process is already running: ${what}. Wait until it has finished`)
  }
  try {
    return await work()
  } finally {
    await release()
  }
}
