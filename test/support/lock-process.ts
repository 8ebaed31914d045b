import { closeSync, openSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { DirectoryLock } from '../../engine/process/directory-lock.ts'

/** Take the lock of a directory once and hold it, or take and release it many times. */
export interface LockOrder {
  readonly directory: string
  readonly times?: number
}

/** How often the process had the lock. */
export type LockReport = number

/** Runs as a separate process: takes locks as ordered. */
let held: DirectoryLock | undefined
process.on('message', async ({ directory, times }: LockOrder) => {
  if (times === undefined) {
    await held?.release()
    held = await DirectoryLock.take(directory)
    process.send?.(held === undefined ? 0 : 1)
    return
  }
  let taken = 0
  for (let time = 0; time < times; time++) {
    const lock = await DirectoryLock.take(directory)
    if (lock === undefined) continue
    taken++
    // Fails if another process has the lock.
    const file = join(directory, 'held')
    closeSync(openSync(file, 'wx'))
    await new Promise((resolve) => setImmediate(resolve))
    unlinkSync(file)
    await lock.release()
  }
  process.send?.(taken)
})
process.send?.('ready')
