import { strict as assert } from 'node:assert'
import type { Environment } from '../lmdb/environment.ts'

/** Rewrites what one version of the schema stores as the next version stores it, inside a transaction of the caller. */
export type Migration = (environment: Environment) => void

/**
 * The first entry leads from schema 1 to 2, the next one to 3, and so on. A migration reads records in their old form
 * itself: the families in this folder know only the newest one. Tables are created when they are opened. Each new
 * version needs a sample of what it writes (test/upgrade/write.ts).
 */
const MIGRATIONS: readonly Migration[] = []

export const SCHEMA_VERSION = 1 + MIGRATIONS.length

/**
 * Brings an environment to the schema that it was opened with, in one transaction.
 *
 * @throws Fault STORE_FULL.
 */
export function migrate(environment: Environment, migrations: readonly Migration[] = MIGRATIONS): void {
  environment.migrate((version) => {
    if (version === 1) return
    const migration = migrations[version - 2]
    assert(migration !== undefined, `no migration to version ${version} of the schema`)
    migration(environment)
  })
}
