import { existsSync, mkdtempSync, rmdirSync, statfsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { environmentExists, makeWritableDirectory } from '../../engine/lmdb/file-access.ts'
import { Fault } from '../../engine/process/error-codes.ts'
import type { CollectorSettings } from '../config.ts'
import { OUTBOX_FREE_BYTES_MIN } from '../limits.ts'
import { OUTBOX_IN_MEMORY } from '../outbox/outbox-limits.ts'
import { OutboxReader } from '../outbox/outbox-reader.ts'
import { canBeGiven, unreachable, userToBecome } from '../privileges.ts'
import type { StepOutcome } from './step.ts'

/**
 * Opens the outbox that is there, beside a collector that may be running on it, and only reads; or finds out whether one
 * can be made. Leaves nothing behind: who checks is often another user than the one that will run the collector.
 *
 * @throws Fault STORE_UNWRITABLE, STORE_VERSION, STORE_DAMAGED.
 */
export async function checkOutbox(settings: CollectorSettings): Promise<StepOutcome> {
  const directory = settings.outbox
  if (directory === OUTBOX_IN_MEMORY) return { result: 'ok', found: 'in memory: what waits ends with the collector' }
  const there = environmentExists(directory)
  const state = there ? await waitingIn(directory) : triedOut(resolve(directory))
  const user = userToBecome(settings.user)
  if (user !== undefined && existsSync(directory) && !canBeGiven(directory, user)) {
    throw unreachable(directory, user.name)
  }
  const { bavail, bsize } = statfsSync(nearestAbove(resolve(directory)))
  const freeBytes = bavail * bsize
  const found = `${directory}: ${state}, ${megabytes(freeBytes)} MB free`
  if (freeBytes >= OUTBOX_FREE_BYTES_MIN) return { result: 'ok', found }
  const remedy = `free some space: at least ${megabytes(OUTBOX_FREE_BYTES_MIN)} MB are needed`
  return { result: 'failed', code: 'STORE_FULL', found, remedy }
}

async function waitingIn(directory: string): Promise<string> {
  const outbox = new OutboxReader(directory)
  const { waiting } = outbox.figures
  await outbox.close()
  return `${waiting} events wait`
}

/** Makes what is missing, writes into it, and removes what was made. */
function triedOut(directory: string): string {
  const missing: string[] = []
  for (let above = directory; !existsSync(above); above = dirname(above)) missing.push(above)
  try {
    makeWritableDirectory(directory, '--outbox', { chown: 'by the caller' })
    rmdirSync(mkdtempSync(join(directory, 'check-')))
  } catch (error) {
    if (error instanceof Fault) throw error
    throw new Fault('STORE_UNWRITABLE', `--outbox ${directory}: ${(error as Error).message}; name another directory`, {
      cause: error,
    })
  } finally {
    // From the innermost outwards, as far as they were made and a collector has not begun in them.
    for (const made of missing) removeIfEmpty(made)
  }
  return missing.length > 0 ? 'can be made' : 'can be written, and is empty'
}

function removeIfEmpty(directory: string): void {
  try {
    rmdirSync(directory)
  } catch {
    // Not made, or in use.
  }
}

function nearestAbove(directory: string): string {
  return existsSync(directory) ? directory : nearestAbove(dirname(directory))
}

function megabytes(bytes: number): number {
  return Math.floor(bytes / 1e6)
}
