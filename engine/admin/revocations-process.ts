import { inspect } from 'node:util'
import { Environment } from '../kernel/lmdb/environment.ts'
import { isExpected } from '../kernel/process/failure.ts'
import { openPacked } from '../store/family.ts'
import { SCHEMA_VERSION } from '../store/migrate.ts'
import { REMOVALS_TABLE, type Removal } from '../store/removals.ts'
import type { Secret } from '../store/secrets.ts'

/** When an API key or a monitoring token was revoked or expires, as a store says. */
export interface Revocation {
  readonly kind: 'api-key' | 'token'
  readonly organizationId: string
  readonly id: string
  /** 0: it was not revoked, but expires. */
  readonly revokedAtMs: number
  readonly expiresAtMs?: number
}

/** What the process that reads a store reports. */
export interface ReadRevocations {
  readonly revocations: readonly Revocation[]
  readonly removals: readonly Removal[]
  /** Keys, tokens and removals whose records cannot be read. */
  readonly damaged: number
}

/** Why a store's revocations are not known. */
export interface Unreadable {
  readonly unreadable: string
}

const TABLES = [
  ['api-key', 'api-keys'],
  ['token', 'monitoring-tokens'],
] as const

/** Reads only: the store is kept as it is. */
async function read(path: string): Promise<ReadRevocations> {
  const options = { setting: '--data-dir', schemaVersion: SCHEMA_VERSION, freeBytesMin: 0, readOnly: true }
  const environment = new Environment(path, options)
  const revocations: Revocation[] = []
  let damaged = 0
  for (const [kind, table] of TABLES) {
    for (const { value } of environment.table(table).getRange({})) {
      try {
        const { organizationId, id, revokedAtMs, expiresAtMs } = openPacked<Secret>(value, table)
        if (revokedAtMs === 0 && expiresAtMs === undefined) continue
        const expiry = expiresAtMs === undefined ? {} : { expiresAtMs }
        revocations.push({ kind, organizationId, id, revokedAtMs, ...expiry })
      } catch {
        damaged++
      }
    }
  }
  const removals: Removal[] = []
  for (const { value } of environment.table(REMOVALS_TABLE).getRange({})) {
    try {
      removals.push(openPacked<Removal>(value, REMOVALS_TABLE))
    } catch {
      damaged++
    }
  }
  await environment.close()
  return { revocations, removals, damaged }
}

process.once('disconnect', () => process.exit())
process.once('message', async (path: string) => {
  // The restore continues after an internal error, too, and shows its stack.
  const answer = await read(path).catch(
    (error: unknown): Unreadable => ({
      unreadable: isExpected(error) ? error.message : `internal error: ${inspect(error)}`,
    }),
  )
  process.send?.(answer, undefined, undefined, () => process.disconnect())
})
