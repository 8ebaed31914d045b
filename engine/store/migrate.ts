import { strict as assert } from 'node:assert'
import type { Environment } from '../kernel/lmdb/environment.ts'

/** Converts stored data to the next version of the schema. Requires a write transaction. */
export type Migration = (environment: Environment) => void

/**
 * The first entry migrates from schema 1 to 2, the next one to 3, and so on. A migration parses old
 * records itself: the families in this folder know only the newest form. Tables are created when
 * opened. Each new version needs a sample of its data (test/upgrade/write.ts).
 *
 * In a cluster, nodes of two releases work together while it is upgraded. A node of the newer one
 * follows with the older schema until the primary migrates all stores, so the families have to read
 * the records of one schema before as well. A migration depends on nothing but the stored records,
 * because each node does it by itself.
 */
const MIGRATIONS: readonly Migration[] = [
  // 2: contacts. evidence.ts and client-days.ts also read the records of schema 1, as `used` and as
  // not known, because millions of them would take longer than a start may.
  () => {},
  // 3: names of addresses with times. client-names.ts reads the names of schema 2 as names without a
  // beginning or end, and the next import replaces their records.
  () => {},
]

export const SCHEMA_VERSION = 1 + MIGRATIONS.length

/**
 * Migrates an environment to the schema with which it was opened, in one transaction.
 *
 * @throws Fault STORE_FULL
 */
export function migrate(environment: Environment, migrations: readonly Migration[] = MIGRATIONS): void {
  environment.migrate((version) => {
    if (version === 1) return
    const migration = migrations[version - 2]
    assert(migration !== undefined, `no migration to version ${version} of the schema`)
    migration(environment)
  })
}
