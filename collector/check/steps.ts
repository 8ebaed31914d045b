import { existsSync, mkdtempSync, rmdirSync, statfsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { environmentExists, makeWritableDirectory } from '../../engine/kernel/lmdb/file-access.ts'
import { becomeUser, refuseRootElsewhere } from '../../engine/kernel/process/become-user.ts'
import { Fault, isFault } from '../../engine/kernel/process/error-codes.ts'
import { systemErrorText } from '../../engine/kernel/process/failure.ts'
import { askLocal, LocalServer } from '../../engine/kernel/process/local-server.ts'
import { ownerOf } from '../../engine/kernel/process/path-owner.ts'
import { listInterfaces, noSuchInterface } from '../capture/interfaces.ts'
import { openSession } from '../capture/live.ts'
import { type CollectorSettings, liveOptions } from '../config.ts'
import { LinkType } from '../decode/link.ts'
import { OUTBOX_FREE_BYTES_MIN } from '../limits.ts'
import { OutboxReader } from '../outbox/outbox-reader.ts'
import { OUTBOX_IN_MEMORY } from '../outbox/outbox-store.ts'
import { assertUsable, mayBecome, userToBecome } from '../privileges.ts'
import type { StepOutcome } from './step.ts'

/**
 * Opens the interface as `run` does, in the main thread: only one thread of a process can load the
 * addon, and this process is the step's own. The kernel closes the capture when the process ends.
 *
 * @throws Fault CAPTURE_DENIED, or USAGE for an invalid expression.
 */
export function checkInterface(settings: CollectorSettings): StepOutcome {
  const name = settings.interface
  const known = listInterfaces().find((each) => each.name === name)
  // Checked first: without permission, libpcap does not report a missing interface.
  if (known === undefined) throw new Fault('CAPTURE_DENIED', noSuchInterface(name))
  const { linkType } = openSession(liveOptions(settings), settings, 'wide', () => {})
  const linkName = Object.entries(LinkType).find(([, number]) => number === linkType)?.[0]
  if (linkName === undefined) {
    const found = `${name}: frames of link type ${linkType} are not decoded`
    return { result: 'failed', code: 'CAPTURE_DENIED', found, fix: 'capture on another interface, or on "any"' }
  }
  const quiet = known.state === 'no carrier' ? ', so nothing arrives yet' : ''
  const addresses = known.addresses.length === 0 ? '' : `, ${known.addresses.join(', ')}`
  return { result: 'ok', found: `${name}: ${known.state}${quiet}, link type ${linkName} (${linkType})${addresses}` }
}

/**
 * Listens on the local endpoint's port, then closes it. A collector that already runs there is not
 * a failure.
 */
export async function checkHealth({ healthPort }: CollectorSettings): Promise<StepOutcome> {
  try {
    const server = await LocalServer.listen('HEALTH_PORT', healthPort, {})
    await server.close()
    return { result: 'ok', found: healthPort === 0 ? 'the system chooses a port' : `127.0.0.1:${healthPort} is free` }
  } catch (error) {
    if (!isFault(error, 'PORT_TAKEN') || !(await isCollector(healthPort))) throw error
    return {
      result: 'ok',
      found: `a collector answers at 127.0.0.1:${healthPort}; a second one needs another HEALTH_PORT`,
    }
  }
}

async function isCollector(port: number): Promise<boolean> {
  try {
    const { text } = await askLocal(port, '/health')
    return 'events_captured' in (JSON.parse(text) as object)
  } catch {
    return false
  }
}

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
