import { closeSync, openSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { DirectoryLock } from '../../engine/kernel/process/directory-lock.ts'

/** Take the lock of a directory once and hold it, or take and release it many times. */
export interface LockOrder {
  readonly directory: string
  readonly times?: number
  /** Stop with SIGSTOP before this step, counted from 1. */
  readonly stopBefore?: number
}

/** How often the process had the lock. */
export type LockReport = number

/** Runs as a separate process: takes locks as ordered. */
let held: DirectoryLock | undefined
process.on('message', async ({ directory, times, stopBefore }: LockOrder) => {
  if (times === undefined) {
    await held?.release()
    let steps = 0
    held = await DirectoryLock.take(directory, '', (step) => {
      if (++steps === stopBefore) process.kill(process.pid, 'SIGSTOP')
      return step()
    })
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
