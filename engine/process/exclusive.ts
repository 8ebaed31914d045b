import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { createServer } from 'node:net'
import { Fault } from './error-codes.ts'

/** Ends the hold. */
export type Release = () => Promise<void>

/**
 * Says that this process alone does something in a directory. An abstract socket is the lock (unix(7)): the system takes it away with its process, however
 * that ends. It is seen by the processes of the same network namespace.
 *
 * @param what is done
 * @returns undefined where another process does it.
 */
export async function tryHold(directory: string, what: string): Promise<Release | undefined> {
  const place = createHash('sha256')
    .update(`${what}\n${realpathSync(directory)}`)
    .digest('hex')
    .slice(0, 32)
  const lock = createServer()
  const isOurs = await new Promise<boolean>((resolve, reject) => {
    lock.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false)
      else reject(error)
    })
    lock.listen(`\0posture-${place}`, () => resolve(true))
  })
  if (!isOurs) return undefined
  // Nobody connects, and it alone keeps no process running.
  lock.unref()
  return () => new Promise((resolve) => lock.close(() => resolve()))
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
