import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { StoreCheck } from '../check/check.ts'
import { checkInThread } from '../check/check-thread.ts'
import { findingLine } from '../check/walk.ts'
import { DATA_FILE } from '../kernel/lmdb/file-access.ts'
import type { Clock } from '../kernel/process/clock.ts'
import { Fault, isFault } from '../kernel/process/error-codes.ts'
import { exclusively } from '../kernel/process/exclusive.ts'
import { faultPoint } from '../kernel/process/fault-point.ts'
import { type NewFile, withNewFile } from '../kernel/process/new-file.ts'
import type { Store } from '../store/store.ts'
import { type Actor, auditForAll } from './audited-changes.ts'
import { fileFault, seal } from './backup-file.ts'

const POLL_EVERY_MS = 100

export interface BackupOptions {
  /** Receives the progress of each step. */
  readonly onProgress: (what: 'copy' | 'check' | 'seal', done: number, total: number) => void
  readonly signal: AbortSignal
  readonly actor: Actor
  readonly clock: Clock
}

export interface Backup {
  readonly file: string
  readonly bytes: number
  readonly schema: number
  readonly records: number
}

/**
 * Opens the file of a backup for `work`. Before the store is opened, because root may then have
 * become its owner.
 *
 * @throws Fault CONFLICT if the file exists; BACKUP_FILE
 */
export async function withBackupFile<T>(
  given: string,
  force: boolean,
  work: (file: NewFile) => Promise<T>,
): Promise<T> {
  const path = resolve(given)
  const found = statSync(path, { throwIfNoEntry: false })
  if (found?.isDirectory()) throw new Fault('BACKUP_FILE', `${path}: is a directory. Name a file`)
  if (found !== undefined && !force) throw new Fault('CONFLICT', `${path} exists; --force replaces it`)
  if (!existsSync(dirname(path))) {
    throw new Fault('BACKUP_FILE', `${path}: no such directory: ${dirname(path)}. Create it first`)
  }
  try {
    return await withNewFile('backup', path, { mode: 0o600, code: 'BACKUP_FILE' }, (file) => work(file as NewFile))
  } catch (error) {
    throw isFault(error, 'BACKUP_FILE') ? fileFault(error, path) : error
  }
}

/**
 * Copies one snapshot of the store into a file while others write. The copy is made in the data
 * directory, and checked before it is written to the file. The audit log of every organization
 * names the file, except on a replica.
 *
 * @returns undefined if `signal` is aborted first
 * @throws Fault BACKUP_FILE; STORE_FULL; STORE_CHECK_FAILED if the store is damaged; STORE_IN_USE if
 *   another process makes a backup
 */
export function backUp(store: Store, file: NewFile, options: BackupOptions): Promise<Backup | undefined> {
  return exclusively(store.environment.path, 'backup', async () => {
    const directory = join(store.dataDirectory, 'store.backing-up')
    try {
      // Left by a process that was killed.
      rmSync(directory, { recursive: true, force: true })
      mkdirSync(directory, { mode: 0o700 })
      mkdirSync(join(directory, 'store'), { mode: 0o700 })
      const made = await makeIn(directory, store, file, options)
      if (made !== undefined) note(store, file.path, options)
      return made
    } catch (error) {
      throw fileFault(error, file.path)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })
}

/**
 * Also on a full disk, as what only writes down what was done. Only the primary of a cluster can
 * write it. The backup of another node is not less complete.
 */
function note(store: Store, file: string, { actor, clock }: BackupOptions): void {
  const entry = { action: 'store.backup', actor, timeMs: clock.nowMs(), subject: basename(file) } as const
  try {
    store.environment.shrink(() => auditForAll(store, entry))
  } catch (error) {
    if (!isFault(error, 'NOT_PRIMARY')) throw error
  }
}

async function makeIn(
  directory: string,
  store: Store,
  file: NewFile,
  { onProgress, signal }: BackupOptions,
): Promise<Backup | undefined> {
  const copy = join(directory, 'store', DATA_FILE)
  const { fileBytes, unusedBytes, diskFreeBytes, freeBytesMin } = store.environment.space()
  const needed = fileBytes - unusedBytes + freeBytesMin
  if (diskFreeBytes < needed) {
    throw new Fault('STORE_FULL', `${directory}: needs ${needed} bytes for a copy, ${diskFreeBytes} are free`)
  }
  const poll = setInterval(() => {
    const bytes = statSync(copy, { throwIfNoEntry: false })?.size ?? 0
    onProgress('copy', Math.min(bytes, fileBytes), Math.max(1, fileBytes - unusedBytes))
  }, POLL_EVERY_MS)
  try {
    // The copy cannot be interrupted, so a cancellation takes effect after it.
    await store.environment.copyInto(join(directory, 'store'))
  } finally {
    clearInterval(poll)
  }
  faultPoint('backup:copied')
  if (signal.aborted) return undefined
  const check = await checkInThread(directory, (done, total) => onProgress('check', done, total), signal)
  if (check === undefined) return undefined
  assertIntact(check, 'the store is damaged', 'run posture-admin doctor for details')
  const bytes = await seal(copy, file, (done, total) => onProgress('seal', done, total), signal)
  if (bytes === undefined) return undefined
  faultPoint('backup:sealed')
  await file.complete()
  return { file: file.path, bytes, schema: store.environment.schemaVersion, records: recordsOf(check) }
}

export function recordsOf({ records }: StoreCheck): number {
  return Object.values(records).reduce((sum, count) => sum + count, 0)
}

/** @throws Fault STORE_CHECK_FAILED */
export function assertIntact({ findings, findingsCount }: StoreCheck, what: string, todo: string): void {
  const [first] = findings
  if (first === undefined) return
  throw new Fault('STORE_CHECK_FAILED', `${what}: ${findingsCount} findings, the first: ${findingLine(first)}; ${todo}`)
}
