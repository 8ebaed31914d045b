import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { isoSeconds } from '../kernel/process/clock.ts'
import type { ApiKey } from '../store/api-keys.ts'
import type { MonitoringToken } from '../store/monitoring-tokens.ts'
import type { Removal } from '../store/removals.ts'
import type { Secret } from '../store/secrets.ts'
import type { Store } from '../store/store.ts'
import { type Actor, nameOf } from './changes.ts'
import type { ReadRevocations, Revocation, Unreadable } from './revocations-process.ts'

/** A store of a million keys takes a few seconds. */
const READ_MS_MAX = 60_000

/**
 * The revocations in the store of this directory. Read in a process of its own: LMDB ends the
 * process that reads a damaged file, and a damaged store is a common reason for a restore.
 */
export function revocationsIn(path: string): Promise<ReadRevocations | Unreadable> {
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
export function revokeAgain(store: Store, revocations: readonly Revocation[], actor: Actor, nowMs: number): number {
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
export function revocationsOfRemoved(store: Store, removals: readonly Removal[]): Revocation[] {
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
