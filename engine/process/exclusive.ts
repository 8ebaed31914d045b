import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { createServer } from 'node:net'
import { Fault } from './error-codes.ts'

/**
 * Runs work that only one process at a time may do in a directory. An abstract socket is the lock (unix(7)): the system takes it away with its
 * process, however that ends.
 *
 * @param what is done, for the error line
 * @throws Fault STORE_IN_USE where another process does it.
 */
export async function exclusively<T>(directory: string, what: string, work: () => Promise<T>): Promise<T> {
  const place = createHash('sha256')
    .update(`${what}\n${realpathSync(directory)}`)
    .digest('hex')
    .slice(0, 32)
  const lock = createServer()
  await new Promise<void>((resolve, reject) => {
    lock.once('error', (error: NodeJS.ErrnoException) => {
      const fault = new Fault('STORE_IN_USE', `another process is at it already: ${what}; wait until it is done`)
      reject(error.code === 'EADDRINUSE' ? fault : error)
    })
    lock.listen(`\0posture-${place}`, resolve)
  })
  // Nobody connects, and it alone keeps no process running.
  lock.unref()
  try {
    return await work()
  } finally {
    await new Promise((resolve) => lock.close(resolve))
  }
}
