import { fork } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { checkInThread } from '../check/check-thread.ts'
import { DATA_FILE, environmentExists, makeWritableDirectory, replaceEnvironment } from '../kernel/lmdb/file-access.ts'
import { type Clock, isoSeconds } from '../kernel/process/clock.ts'
import { Fault, isFault } from '../kernel/process/error-codes.ts'
import { type Release, tryHold } from '../kernel/process/exclusive.ts'
import { SCANS } from '../scan/scan-now.ts'
import type { Removal } from '../store/removals.ts'
import type { ApiKey, MonitoringToken, Secret } from '../store/secrets.ts'
import { Store } from '../store/store.ts'
import { type Actor, auditForAll, nameOf } from './audited-changes.ts'
import { assertIntact, recordsOf } from './backup.ts'
import { fileFault, type OpenBackup, unseal } from './backup-file.ts'
import type { CopyOrder, CopyReport } from './backup-records-process.ts'
import { leaveCluster } from './cluster.ts'
import type { ReadRevocations, Revocation, Unreadable } from './revocations-process.ts'

/** A store of a million keys takes a few seconds. */
const READ_MS_MAX = 60_000

/**
 * The revocations in the store of this directory. Read in a process of its own: LMDB ends the
 * process that reads a damaged file, and a damaged store is a common reason for a restore.
 */
function revocationsIn(path: string): Promise<ReadRevocations | Unreadable> {
  const child = fork(fileURLToPath(new URL('./revocations-process.js', import.meta.url)), [], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    execArgv: [],
  })
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      resolve({ unreadable: `not read within ${READ_MS_MAX / 1000} s` })
      child.kill('SIGKILL')
    }, READ_MS_MAX)
    child.once('message', (read) => resolve(read as ReadRevocations | Unreadable))
    child.once('error', (error) => resolve({ unreadable: error.message }))
    child.once('exit', (status, signal) => {
      clearTimeout(timer)
      resolve({ unreadable: `its reader ended by ${signal ?? `status ${status}`}` })
    })
    child.send(path, (error) => {
      if (error !== null) resolve({ unreadable: error.message })
    })
  })
}

/**
 * Revokes what is active in the store and was revoked elsewhere, and lets expire what expires
 * earlier elsewhere, as a rotated key does. Inside a transaction of the caller. Returns how many
 * were revoked.
 */
function revokeAgain(store: Store, revocations: readonly Revocation[], actor: Actor, nowMs: number): number {
  let revoked = 0
  for (const { kind, organizationId, id, revokedAtMs, expiresAtMs } of revocations) {
    const secrets = kind === 'api-key' ? store.apiKeys : store.monitoringTokens
    const secret: ApiKey | MonitoringToken | undefined = secrets.get(organizationId, id)
    if (secret === undefined || secret.revokedAtMs !== 0) continue
    const entry = { organizationId, timeMs: nowMs, actor: nameOf(actor), subject: secret.label }
    const details = { id, prefix: secret.visible }
    if (revokedAtMs !== 0) {
      revokeIn(store, kind, secret, revokedAtMs)
      const when = { revoked_before_restore: isoSeconds(revokedAtMs) }
      store.auditLog.append({ ...entry, action: `${kind}.revoke`, details: { ...details, ...when } })
      revoked++
    } else if (expiresAtMs !== undefined && expiresAtMs < (secret.expiresAtMs ?? Number.POSITIVE_INFINITY)) {
      expireIn(store, kind, secret, expiresAtMs)
      const when = { expires: isoSeconds(expiresAtMs) }
      store.auditLog.append({ ...entry, action: 'store.restore', details: { ...details, ...when } })
    }
  }
  return revoked
}

/**
 * The keys and tokens of organizations that were removed elsewhere, to revoke them. The operator
 * may want the data of such an organization back, but its secrets were given up.
 */
function revocationsOfRemoved(store: Store, removals: readonly Removal[]): Revocation[] {
  return removals.flatMap(({ organizationId, removedAtMs: revokedAtMs }) => {
    const keys = store.apiKeys.ofOrganization(organizationId).map(({ id }) => ({ kind: 'api-key' as const, id }))
    const tokens = store.monitoringTokens
      .ofOrganization(organizationId)
      .map(({ id }) => ({ kind: 'token' as const, id }))
    return [...keys, ...tokens].map((secret) => ({ ...secret, organizationId, revokedAtMs }))
  })
}

function revokeIn(store: Store, kind: Revocation['kind'], secret: Secret, revokedAtMs: number): void {
  if (kind === 'api-key') store.apiKeys.revoke(secret as ApiKey, revokedAtMs)
  else store.monitoringTokens.revoke(secret as MonitoringToken, revokedAtMs)
}

function expireIn(store: Store, kind: Revocation['kind'], secret: Secret, expiresAtMs: number): void {
  if (kind === 'api-key') store.apiKeys.replace({ ...(secret as ApiKey), expiresAtMs })
  else store.monitoringTokens.replace({ ...(secret as MonitoringToken), expiresAtMs })
}

/** The locks that a restore must hold. */
const REQUIRED_LOCKS = [SCANS, 'ingest file']
const NOTHING_REPLACED: ReadRevocations = { revocations: [], removals: [], damaged: 0 }

export interface RestoreOptions {
  readonly force: boolean
  readonly onProgress: (what: 'unseal' | 'copy' | 'check', done: number, total: number) => void
  readonly signal: AbortSignal
  readonly actor: Actor
  readonly clock: Clock
}

export interface Restored {
  readonly organizations: number
  readonly records: number
  readonly schema: number
  /** Keys and tokens that are revoked in the replaced store, and were active in the backup. */
  readonly revoked: number
  /** Organizations of the backup that were removed from the replaced store. */
  readonly removedOrganizations: number
  /** Why some of them may be active again. '': the replaced store was read, or there was none. */
  readonly unreadable: string
  /** Path of the replaced store. '': there was none. */
  readonly kept: string
}

/**
 * Replaces the store of a data directory by a backup. The records of the backup are copied,
 * checked, migrated and recorded in the audit log in a directory next to the store. Then one rename
 * puts them in place, so that at each instant either store is complete. Keys and tokens that were
 * revoked since the backup are revoked in it, where the store that it replaces can be read.
 *
 * @returns undefined if `signal` is aborted first; nothing has changed
 * @throws Fault STORE_IN_USE; CONFLICT if there is a store; BACKUP_FILE, STORE_VERSION,
 *   STORE_CHECK_FAILED, STORE_FULL, STORE_UNWRITABLE
 */
export async function restore(
  backup: OpenBackup,
  dataDir: string,
  options: RestoreOptions,
): Promise<Restored | undefined> {
  const directory = resolve(dataDir)
  const place = join(directory, 'store')
  makeWritableDirectory(directory, '--data-dir')
  makeWritableDirectory(place, '--data-dir')
  const releases: Release[] = []
  const beside = join(directory, 'store.restoring')
  try {
    for (const what of REQUIRED_LOCKS) releases.push(await hold(place, dataDir, what))
    if (environmentExists(place) && !options.force) {
      throw new Fault(
        'CONFLICT',
        `--data-dir ${dataDir}: already contains a store. --force replaces it and keeps the old one`,
      )
    }
    // Left by a process that was killed.
    rmSync(beside, { recursive: true, force: true })
    mkdirSync(beside, { mode: 0o700 })
    mkdirSync(join(beside, 'store'), { mode: 0o700 })
    mkdirSync(join(beside, 'backup'), { mode: 0o700 })
    const replaced = environmentExists(place) ? await revocationsIn(place) : NOTHING_REPLACED
    const restored = await prepare(backup, beside, replaced, options)
    if (restored === undefined) return undefined
    return { ...restored, kept: swap(join(beside, 'store', DATA_FILE), place, options.clock) }
  } catch (error) {
    throw fileFault(error, backup.path)
  } finally {
    rmSync(beside, { recursive: true, force: true })
    for (const release of releases) await release()
  }
}

/** @throws Fault STORE_IN_USE */
export async function hold(place: string, dataDir: string, what: string): Promise<Release> {
  const release = await tryHold(place, what)
  if (release !== undefined) return release
  throw new Fault(
    'STORE_IN_USE',
    `--data-dir ${dataDir}: a service, a scan or an ingest is running on it. Stop it first`,
  )
}

/** Prepares the store of the backup for replacing the current one. */
async function prepare(
  backup: OpenBackup,
  beside: string,
  replaced: ReadRevocations | Unreadable,
  { onProgress, signal, actor, clock }: RestoreOptions,
): Promise<Omit<Restored, 'kept'> | undefined> {
  const { path: file } = backup
  const [from, to] = [join(beside, 'backup'), join(beside, 'store')]
  const bytes = await unseal(backup, join(from, DATA_FILE), (done, total) => onProgress('unseal', done, total), signal)
  if (bytes === undefined) return undefined
  const onBytes = (done: number): void => onProgress('copy', done, bytes)
  if (!(await copyBackupRecords(file, { from, to, bytesMax: bytes }, onBytes, signal))) return undefined
  rmSync(from, { recursive: true })
  const store = openCopy(file, beside)
  try {
    const check = await checkInThread(beside, (done, total) => onProgress('check', done, total), signal)
    if (check === undefined) return undefined
    assertIntact(check, `${file}: the backup contains a damaged store`, 'name another backup')
    const timeMs = clock.nowMs()
    leaveCluster(store)
    const carried = store.environment.write(() => {
      auditForAll(store, { action: 'store.restore', actor, timeMs, subject: basename(file) })
      if ('unreadable' in replaced) return { revoked: 0, removedOrganizations: 0 }
      const back = replaced.removals.filter(({ organizationId }) => store.organizations.exists(organizationId))
      const revocations = [...replaced.revocations, ...revocationsOfRemoved(store, back)]
      return { revoked: revokeAgain(store, revocations, actor, timeMs), removedOrganizations: back.length }
    })
    return {
      organizations: store.organizations.ids().length,
      records: recordsOf(check),
      schema: store.environment.schemaVersion,
      ...carried,
      unreadable: whyUnread(replaced),
    }
  } finally {
    await store.close()
  }
}

function whyUnread(replaced: ReadRevocations | Unreadable): string {
  if ('unreadable' in replaced) return replaced.unreadable
  return replaced.damaged === 0 ? '' : `${replaced.damaged} keys, tokens and removals are damaged`
}

/** Opening migrates the copy. Errors name the backup, not its copy. */
function openCopy(file: string, beside: string): Store {
  try {
    return new Store(beside, { mustExist: true })
  } catch (error) {
    const why = (error as Error).message.replace(join(beside, 'store'), file)
    if (isFault(error, 'STORE_VERSION')) throw new Fault('STORE_VERSION', why, { cause: error })
    if (error instanceof Fault) throw error
    // For example, a record has the name of a table.
    throw new Fault('BACKUP_FILE', `${file}: damaged: ${why}. Name another backup`, { cause: error })
  }
}

/** Returns the path where the replaced store is kept. '': there was none. */
function swap(restored: string, place: string, clock: Clock): string {
  const kept = `${place}.before-restore-${new Date(clock.nowMs()).toISOString().replace(/[:.]/g, '-')}`
  return replaceEnvironment(restored, place, kept) ? kept : ''
}

/** A process that reports nothing in this time hangs. Its steps take less than a second. */
const SILENT_MS_MAX = 60_000
/** V8's heap, in megabytes. */
const HEAP_MB = 256

/**
 * Copies the records of an unsealed backup to a new environment, in a process of its own: the
 * author of the file can seal wrong pages, which end the process that reads them.
 *
 * @returns false if `signal` is aborted first
 * @throws Fault BACKUP_FILE
 */
async function copyBackupRecords(
  file: string,
  order: CopyOrder,
  onBytes: (bytes: number) => void,
  signal: AbortSignal,
): Promise<boolean> {
  const child = fork(fileURLToPath(new URL('./backup-records-process.js', import.meta.url)), [], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    execArgv: [`--max-old-space-size=${HEAP_MB}`],
    env: { PATH: process.env['PATH'] },
    cwd: '/',
  })
  const kill = (): void => void child.kill('SIGKILL')
  const timer = setTimeout(kill, SILENT_MS_MAX)
  signal.addEventListener('abort', kill)
  try {
    const why = await new Promise<string>((resolve) => {
      child.on('message', (report: CopyReport) => {
        timer.refresh()
        if ('bytes' in report) onBytes(report.bytes)
        else resolve('done' in report ? '' : report.damaged)
      })
      child.once('error', (error) => resolve(error.message))
      child.once('exit', (status, by) => resolve(`its reader ended by ${by ?? `status ${status}`}`))
      child.send(order, (error) => {
        if (error !== null) resolve(error.message)
      })
    })
    if (signal.aborted) return false
    if (why === '') return true
    throw new Fault('BACKUP_FILE', `${file}: damaged: ${why}. Name another backup`)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', kill)
    kill()
  }
}
