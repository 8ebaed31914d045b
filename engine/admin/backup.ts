import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, statfsSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { StoreCheck } from '../check/check.ts'
import { checkInThread } from '../check/check-thread.ts'
import { findingLine } from '../check/findings.ts'
import { DATA_FILE } from '../lmdb/file-access.ts'
import type { Clock } from '../process/clock.ts'
import { Fault, isFault } from '../process/error-codes.ts'
import { tryHold } from '../process/exclusive.ts'
import { faultPoint } from '../process/fault-point.ts'
import { syncDirectory } from '../process/sync-directory.ts'
import type { Store } from '../store/store.ts'
import { seal } from './backup-file.ts'
import type { Actor } from './changes.ts'
import { fileFault } from './file-faults.ts'
import { auditForAll } from './store-audit.ts'

const POLL_EVERY_MS = 100

export interface BackupOptions {
  readonly force: boolean
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
 * Copies one snapshot of the store into a file while others write. The copy is made in a temporary
 * directory next to the file, and gets its name only after it was checked and flushed to disk. The
 * audit log of every organization names it, except on a replica.
 *
 * @returns undefined if `signal` is aborted first; nothing is left behind
 * @throws Fault CONFLICT if the file exists; BACKUP_FILE; STORE_FULL; STORE_UNSOUND if the store is
 *   damaged; STORE_IN_USE if another process writes the same file
 */
export async function backUp(store: Store, given: string, options: BackupOptions): Promise<Backup | undefined> {
  const file = resolve(given)
  const directory = dirname(file)
  if (existsSync(file) && statSync(file).isDirectory())
    throw new Fault('BACKUP_FILE', `${file}: is a directory. Name a file`)
  if (existsSync(file) && !options.force) throw new Fault('CONFLICT', `${file} exists; --force replaces it`)
  if (!existsSync(directory))
    throw new Fault('BACKUP_FILE', `${file}: no such directory: ${directory}. Create it first`)
  const release = await tryHold(directory, `backup ${basename(file)}`).catch((error: unknown) => {
    throw fileFault(error, file)
  })
  if (release === undefined) throw new Fault('STORE_IN_USE', `${file}: another process is writing this file`)
  const partial = `${file}.partial`
  try {
    // Left by a process that was killed.
    rmSync(partial, { recursive: true, force: true })
    // Node's recursive option loops endlessly below /proc.
    mkdirSync(partial, { mode: 0o700 })
    mkdirSync(join(partial, 'store'), { mode: 0o700 })
    const made = await makeIn(store, file, partial, options)
    if (made !== undefined) note(store, file, options)
    return made
  } catch (error) {
    throw fileFault(error, file)
  } finally {
    rmSync(partial, { recursive: true, force: true })
    await release()
  }
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
  store: Store,
  file: string,
  partial: string,
  { onProgress, signal }: BackupOptions,
): Promise<Backup | undefined> {
  const copy = join(partial, 'store', DATA_FILE)
  const { fileBytes, unusedBytes } = store.environment.space()
  const { bavail, bsize } = statfsSync(partial)
  if (bavail * bsize < fileBytes - unusedBytes) {
    throw new Fault('STORE_FULL', `${file}: needs ${fileBytes - unusedBytes} bytes, ${bavail * bsize} are free`)
  }
  const poll = setInterval(() => {
    const bytes = statSync(copy, { throwIfNoEntry: false })?.size ?? 0
    onProgress('copy', Math.min(bytes, fileBytes), Math.max(1, fileBytes - unusedBytes))
  }, POLL_EVERY_MS)
  try {
    // The copy cannot be interrupted, so a cancellation takes effect after it.
    await store.environment.copyInto(join(partial, 'store'))
  } finally {
    clearInterval(poll)
  }
  faultPoint('backup:copied')
  if (signal.aborted) return undefined
  const check = await checkInThread(partial, (done, total) => onProgress('check', done, total), signal)
  if (check === undefined) return undefined
  assertIntact(check, 'the store is damaged', 'run posture-admin doctor for details')
  const bytes = await seal(copy, (done, total) => onProgress('seal', done, total), signal)
  if (bytes === undefined) return undefined
  faultPoint('backup:sealed')
  // LMDB applies the umask. The enclosing directory protected the file in the meantime.
  chmodSync(copy, 0o600)
  renameSync(copy, file)
  syncDirectory(dirname(file))
  return { file, bytes, schema: store.environment.schemaVersion, records: recordsOf(check) }
}

export function recordsOf({ records }: StoreCheck): number {
  return Object.values(records).reduce((sum, count) => sum + count, 0)
}

/** @throws Fault STORE_UNSOUND */
export function assertIntact({ findings, findingsCount }: StoreCheck, what: string, todo: string): void {
  const [first] = findings
  if (first === undefined) return
  throw new Fault('STORE_UNSOUND', `${what}: ${findingsCount} findings, the first: ${findingLine(first)}; ${todo}`)
}
