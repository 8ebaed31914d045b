import { accessSync, constants, existsSync } from 'node:fs'
import { join } from 'node:path'
import { ABORT, open, type RootDatabase } from 'lmdb'
import { GATE_FILE } from './file-access.ts'

/**
 * A lock of all threads and processes that open an environment or write to it: one at a time.
 *
 * A process that opens an environment reads the number of the last transaction from the meta pages
 * and writes it to the lock file, without the write lock (lmdb-js 3.5.6, mdb_env_open2; LMDB
 * corrected it in 2021, ITS#9496). If another process committed in between, the next transaction
 * would begin before that commit, and remove it.
 *
 * The lock is the write lock of a second environment, which stays empty. The kernel says when its
 * holder was killed (robust mutex, pthread_mutexattr_setrobust(3)).
 */
export class Gate {
  readonly #environment: RootDatabase | undefined
  #isHeld = false

  /** @param readOnly whether the caller only reads, and cannot pass if no user may write here */
  constructor(path: string, readOnly: boolean) {
    const file = join(path, GATE_FILE)
    // Nobody writes on a read-only file system.
    if (readOnly && !isWritable(existsSync(file) ? file : path)) return
    this.#environment = open({ path: file, noSubdir: true })
  }

  /** Runs `work`, which may pass again, while no other thread or process passes. */
  pass<T>(work: () => T): T {
    if (this.#environment === undefined || this.#isHeld) return work()
    let passed: { readonly value: T } | undefined
    this.#isHeld = true
    try {
      this.#environment.transactionSync(() => {
        passed = { value: work() }
        return ABORT
      })
    } finally {
      this.#isHeld = false
    }
    return (passed as unknown as { readonly value: T }).value
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
