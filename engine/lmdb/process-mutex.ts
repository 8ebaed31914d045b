import { accessSync, constants, existsSync } from 'node:fs'
import { join } from 'node:path'
import { open, type RootDatabase } from 'lmdb'
import { MUTEX_FILE } from './file-access.ts'

/**
 * A mutex of all threads and processes that open an environment or write to it.
 *
 * A process that opens an environment reads the number of the last transaction from the meta pages
 * and writes it to the lock file, without the write lock (lmdb-js 3.5.6, mdb_env_open2; LMDB
 * corrected it in 2021, ITS#9496). If another process committed in between, the next transaction
 * would begin before that commit, and remove it.
 *
 * The mutex is the write lock of a second environment, which stays empty. The kernel says when its
 * holder was killed (robust mutex, pthread_mutexattr_setrobust(3)).
 */
export class ProcessMutex {
  readonly #environment: RootDatabase | undefined
  #isHeld = false

  /** @param readOnly whether the caller only reads: without the mutex where it cannot create it */
  constructor(path: string, readOnly: boolean) {
    const file = join(path, MUTEX_FILE)
    // No program writes on a read-only file system, or has written before the mutex was created.
    if (readOnly && !isWritable(existsSync(file) ? file : path)) return
    this.#environment = open({ path: file, noSubdir: true })
  }

  /** Runs `work`, which may call this again, while no other thread or process runs any. */
  run<T>(work: () => T): T {
    if (this.#environment === undefined || this.#isHeld) return work()
    this.#isHeld = true
    try {
      // A transaction without writes commits nothing.
      return this.#environment.transactionSync(work)
    } finally {
      this.#isHeld = false
    }
  }

  async close(): Promise<void> {
    await this.#environment?.close()
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
    return true
  } catch {
    return false
  }
}
