import { openSync, readSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { RootDatabase } from 'lmdb'
import { Fault } from '../process/error-codes.ts'
import { LOCK_FILE } from './file-access.ts'

/** mdb.c of lmdb-js, MDB_txbody: mtb_txnid follows mtb_magic and mtb_format. In bytes. */
const NUMBER_OFFSET = 8
const NUMBER_BYTES = 8

/**
 * Open until the process ends: to close a descriptor of a file releases all locks of the process on
 * it (fcntl(2)), and other processes would take this one for dead. By device and inode.
 */
const lockFiles = new Map<string, number>()

/** Of lmdb-js, which its types omit. The number is the one in the meta pages. */
interface NativeEnvironment {
  info(): { readonly lastTxnId: number }
}

/**
 * Corrects the number of the last transaction in the lock file, from which the next one begins.
 *
 * A process that opens an environment reads this number from the meta pages and writes it to the
 * lock file, without the write lock (lmdb-js 3.5.6; LMDB corrected it in 2021, ITS#9496). If
 * another process has committed in between, the next transaction would begin before that commit,
 * and remove it. The meta pages are right: only the holder of the write lock changes them.
 *
 * Requires a write transaction.
 *
 * @returns whether the number was wrong: this transaction must be aborted, and the next one is right
 * @throws Fault STORE_UNWRITABLE if the lock file is another one than LMDB's
 */
export function correctLastTransaction(root: RootDatabase<Buffer, Buffer>, path: string): boolean {
  const { lastTxnId } = (root as unknown as { readonly env: NativeEnvironment }).env.info()
  const begunAfter = root.getWriteTxnId() - 1
  if (begunAfter === lastTxnId) return false
  const file = join(path, LOCK_FILE)
  const { dev, ino } = statSync(file)
  const lock = lockFiles.get(`${dev} ${ino}`) ?? openSync(file, 'r+')
  lockFiles.set(`${dev} ${ino}`, lock)
  const number = Buffer.alloc(NUMBER_BYTES)
  readSync(lock, number, 0, NUMBER_BYTES, NUMBER_OFFSET)
  const found = Number(number.readBigUInt64LE())
  if (found > lastTxnId) throw new Fault('STORE_UNWRITABLE', `${file}: ${found} is no transaction of this store`)
  number.writeBigUInt64LE(BigInt(lastTxnId))
  writeSync(lock, number, 0, NUMBER_BYTES, NUMBER_OFFSET)
  return true
}
