import { createHash } from 'node:crypto'
import { DirectoryLock } from './directory-lock.ts'
import { Fault } from './error-codes.ts'
import { otherOwner } from './ownership.ts'

/** Ends the hold. */
export type Release = () => Promise<void>

/**
 * Says that this process alone does something in a directory (directory-lock.ts).
 *
 * @param what is done, in any words
 * @returns undefined where another process does it.
 */
export async function tryHold(directory: string, what: string): Promise<Release | undefined> {
  const lock = await DirectoryLock.take(directory, nameOf(what), otherOwner(directory))
  return lock && (() => lock.release())
}

/** Whether a process does it now. */
export function isHeld(directory: string, what: string): Promise<boolean> {
  return DirectoryLock.isTaken(directory, nameOf(what))
}

function nameOf(what: string): string {
  return createHash('sha256').update(what).digest('hex').slice(0, 16)
}

/**
 * Runs work that only one process at a time may do in a directory.
 *
 * @param what is done, for the error line
 * @throws Fault STORE_IN_USE where another process does it.
 */
export async function exclusively<T>(directory: string, what: string, work: () => Promise<T>): Promise<T> {
  const release = await tryHold(directory, what)
  if (release === undefined) {
    throw new Fault('STORE_IN_USE', `another process is at it already: ${what}; wait until it is done`)
  }
  try {
    return await work()
  } finally {
    await release()
  }
}
