import { chownSync, existsSync, linkSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { syncDirectory } from '../process/sync-directory.ts'
import { DATA_FILE, LOCK_FILE } from './file-access.ts'

/**
 * Replaces the data file of an environment that no process has open, in one rename. At each instant
 * either file is complete.
 *
 * @param data the new data file, on the same file system
 * @param keptAs a new directory for the replaced data file. undefined: it is removed.
 * @returns whether there was a data file
 */
export function replaceEnvironment(data: string, place: string, keptAs: string | undefined): boolean {
  const current = join(place, DATA_FILE)
  const isReplaced = existsSync(current)
  // This process may run as root, but the service does not.
  const { uid, gid } = statSync(isReplaced ? current : place)
  const isRoot = process.getuid?.() === 0
  if (isRoot) chownSync(data, uid, gid)
  if (isReplaced && keptAs !== undefined) {
    mkdirSync(keptAs, { mode: 0o700 })
    if (isRoot) chownSync(keptAs, uid, gid)
    // A hard link to the old file, so that the rename below can atomically replace it.
    linkSync(current, join(keptAs, DATA_FILE))
    syncDirectory(keptAs)
  }
  renameSync(data, current)
  // The lock file lists readers of the old file. LMDB creates a new one.
  rmSync(join(place, LOCK_FILE), { force: true })
  syncDirectory(place)
  return isReplaced
}
