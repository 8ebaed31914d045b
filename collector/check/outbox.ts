import { existsSync, mkdtempSync, rmdirSync, statfsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { environmentExists, makeWritableDirectory } from '../../engine/kernel/lmdb/file-access.ts'
import { becomeUser, refuseRootElsewhere } from '../../engine/kernel/process/become-user.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { systemErrorText } from '../../engine/kernel/process/failure.ts'
import { ownerOf } from '../../engine/kernel/process/path-owner.ts'
import type { CollectorSettings } from '../config.ts'
import { OUTBOX_FREE_BYTES_MIN } from '../limits.ts'
import { OutboxReader } from '../outbox/outbox-reader.ts'
import { OUTBOX_IN_MEMORY } from '../outbox/outbox-store.ts'
import { assertUsable, mayBecome, userToBecome } from '../privileges.ts'
import type { StepOutcome } from './step.ts'

/**
 * Opens the existing outbox read-only, possibly while a collector runs on it, or checks whether one
 * can be created. Leaves no files, because the check often runs as another user than the
 * collector. Becomes the user of the collector where root must not use the directory.
 *
 * @throws Fault STORE_UNWRITABLE, STORE_VERSION, STORE_DAMAGED.
 */
export async function checkOutbox(settings: CollectorSettings): Promise<StepOutcome> {
  const directory = settings.outbox
  if (directory === OUTBOX_IN_MEMORY)
    return { result: 'ok', found: 'in memory: waiting events are lost when the collector ends' }
  const user = userToBecome(settings)
  const becomes = user !== undefined && mayBecome(user) ? user : undefined
  const exists = existsSync(directory)
  const isOfRoot = becomes === undefined || ownerOf('--outbox', directory, { create: true, isUsed: true }) === undefined
  if (!isOfRoot) {
    if (exists) assertUsable(directory, becomes)
    becomeUser(becomes)
  }
  const there = environmentExists(directory)
  const state = there ? await waitingIn(directory) : testWrite(resolve(directory))
  if (isOfRoot && exists && becomes !== undefined) assertUsable(directory, becomes)
  const { bavail, bsize } = statfsSync(nearestAbove(resolve(directory)))
  const freeBytes = bavail * bsize
  const found = `${directory}: ${state}, ${megabytes(freeBytes)} MB free`
  if (freeBytes >= OUTBOX_FREE_BYTES_MIN) return { result: 'ok', found }
  const fix = `free some space: at least ${megabytes(OUTBOX_FREE_BYTES_MIN)} MB are needed`
  return { result: 'failed', code: 'STORE_FULL', found, fix }
}

async function waitingIn(directory: string): Promise<string> {
  const outbox = new OutboxReader(directory)
  const { waiting } = outbox.figures
  await outbox.close()
  return `${waiting} events wait`
}

/** Creates the missing directories, writes to the innermost, and removes everything created. */
function testWrite(directory: string): string {
  const missing: string[] = []
  for (let above = directory; !existsSync(above); above = dirname(above)) missing.push(above)
  // Root must not remove directories of another user either.
  refuseRootElsewhere('--outbox', directory, { create: true })
  try {
    makeWritableDirectory(directory, '--outbox')
    rmdirSync(mkdtempSync(join(directory, 'check-')))
  } catch (error) {
    if (error instanceof Fault) throw error
    throw new Fault('STORE_UNWRITABLE', `--outbox ${directory}: ${systemErrorText(error)}; name another directory`, {
      cause: error,
    })
  } finally {
    // From the innermost outward, as far as they were created and no collector has started to use
    // them.
    for (const made of missing) removeIfEmpty(made)
  }
  return missing.length > 0 ? 'can be created' : 'can be written, and is empty'
}

function removeIfEmpty(directory: string): void {
  try {
    rmdirSync(directory)
  } catch {
    // Not created, or in use.
  }
}

function nearestAbove(directory: string): string {
  return existsSync(directory) ? directory : nearestAbove(dirname(directory))
}

function megabytes(bytes: number): number {
  return Math.floor(bytes / 1e6)
}
