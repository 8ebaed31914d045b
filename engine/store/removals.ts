import { RETENTION_RECORDS_PER_STEP } from '../limits.ts'
import type { Environment } from '../lmdb/environment.ts'
import { Family } from './family.ts'
import { endOfPrefix, uuidBytes } from './keys.ts'

/** An organization that was removed, while some of its records are still in the store. */
export interface Removal {
  readonly organizationId: string
  readonly name: string
  readonly removedAtMs: number
}

/**
 * The tables whose keys do not begin with an organization. The transaction that removes the
 * organization removes its records in them (admin/organizations.ts).
 */
const INDEXES: ReadonlySet<string> = new Set([
  ...['organization-names', 'api-key-hashes', 'token-hashes', 'memberships', 'users', 'user-names'],
  ...['sessions', 'session-hashes', 'account-links'],
])
const TABLE = 'organization-removals'

/**
 * Removes the records of organizations. The first transaction removes the organization itself and
 * everything that leads to it: its name, keys, tokens, links, and the users of no other
 * organization. From then on no request or message reaches it, and every writer of its records
 * finds it gone. Its other records may be millions; they are deleted in bounded transactions, also
 * after a kill.
 */
export class Removals {
  readonly #environment: Environment
  readonly #removals: Family<Removal>

  constructor(environment: Environment) {
    this.#environment = environment
    this.#removals = new Family(environment.table(TABLE), 'removal of an organization')
  }

  /** Inside the transaction that removes the organization. */
  put(removal: Removal): void {
    this.#removals.put(uuidBytes(removal.organizationId), removal)
  }

  has(organizationId: string): boolean {
    return this.#removals.has(uuidBytes(organizationId))
  }

  all(): Removal[] {
    return Array.from(this.#removals.range(Buffer.alloc(0)), ({ value }) => value)
  }

  /** How many records are left to delete. */
  left({ organizationId }: Removal): number {
    const range = rangeOf(organizationId)
    return this.#tables().reduce((sum, table) => sum + table.getKeysCount(range), 0)
  }

  /**
   * Deletes the records, one bounded transaction per step. Yields the number of deleted records, so
   * that others have their turn between two steps.
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
    // The last step also forgets the removal: nothing is left.
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
