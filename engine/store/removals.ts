import { RETENTION_RECORDS_PER_STEP } from '../limits.ts'
import type { Environment } from '../lmdb/environment.ts'
import { Family } from './family.ts'
import { endOfPrefix, uuidBytes } from './keys.ts'

/** An organization that was removed while the store still has some of its records. */
export interface Removal {
  readonly organizationId: string
  readonly name: string
  readonly removedAtMs: number
}

/** Tables whose keys do not begin with an organization. */
const INDEXES: ReadonlySet<string> = new Set([
  ...['organization-names', 'api-key-hashes', 'token-hashes', 'memberships', 'users', 'user-names'],
  ...['sessions', 'session-hashes'],
])
const TABLE = 'organization-removals'

/**
 * Removes the records of organizations. The first transaction removes the organization itself, its
 * name, its keys and its tokens. From then on, no request or message can refer to it, and writers
 * of its records find no organization. The other records, possibly millions, are deleted in bounded
 * transactions that continue after a crash.
 */
export class Removals {
  readonly #environment: Environment
  readonly #removals: Family<Removal>

  constructor(environment: Environment) {
    this.#environment = environment
    this.#removals = new Family(environment.table(TABLE), 'removal of an organization')
  }

  /** Requires the transaction that removes the organization. */
  put(removal: Removal): void {
    this.#removals.put(uuidBytes(removal.organizationId), removal)
  }

  has(organizationId: string): boolean {
    return this.#removals.has(uuidBytes(organizationId))
  }

  all(): Removal[] {
    return Array.from(this.#removals.range(Buffer.alloc(0)), ({ value }) => value)
  }

  /** Number of records that are still to be deleted. */
  left({ organizationId }: Removal): number {
    const range = rangeOf(organizationId)
    return this.#tables().reduce((sum, table) => sum + table.getKeysCount(range), 0)
  }

  /**
   * Deletes the records, in one bounded transaction per step. Yields the number of deleted records
   * after each step, so that other work can run in between.
   *
   * @throws Fault STORE_FULL.
   */
  *finish({ organizationId }: Removal): Generator<number> {
    for (;;) {
      const deleted = this.#environment.shrink(() => this.#deleteStep(organizationId))
      if (deleted === 0) return
      yield deleted
    }
  }

  #deleteStep(organizationId: string): number {
    const range = rangeOf(organizationId)
    let deleted = 0
    for (const table of this.#tables()) {
      const limit = RETENTION_RECORDS_PER_STEP - deleted
      if (limit === 0) return deleted
      const keys = Array.from(table.getKeys({ ...range, limit }), (key) => Buffer.from(key))
      for (const key of keys) table.removeSync(key)
      deleted += keys.length
    }
    // The last step deletes the removal's own record.
    if (deleted < RETENTION_RECORDS_PER_STEP) this.#removals.remove(uuidBytes(organizationId))
    return deleted
  }

  #tables() {
    const owned = [...this.#environment.tables].filter(([name]) => name !== TABLE && !INDEXES.has(name))
    return owned.map(([, table]) => table)
  }
}

function rangeOf(organizationId: string): { readonly start: Buffer; readonly end: Buffer } {
  const start = uuidBytes(organizationId)
  return { start, end: endOfPrefix(start) }
}
