import type { Environment } from '../kernel/lmdb/environment.ts'
import { RETENTION_RECORDS_PER_STEP } from '../limits.ts'
import { Family } from './family.ts'
import { endOfPrefix, uuidBytes } from './keys.ts'

/**
 * An organization that was removed. The record stays when all others of the organization are
 * deleted, so that a restore recognizes a removed organization.
 */
export interface Removal {
  readonly organizationId: string
  readonly name: string
  readonly removedAtMs: number
  /** All other records of the organization are deleted. */
  readonly isFinished?: boolean
}

/**
 * The tables whose keys do not begin with an organization. The transaction that removes the
 * organization removes its records in them (admin/organizations.ts).
 */
const INDEXES: ReadonlySet<string> = new Set([
  ...['organization-names', 'api-key-hashes', 'token-hashes', 'memberships', 'users', 'user-names'],
  ...['sessions', 'session-hashes', 'account-links', 'block-list-link-hashes'],
])
/** The oldest finished removals beyond this number are forgotten. */
const FINISHED_MAX = 10_000
export const REMOVALS_TABLE = 'organization-removals'

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
    this.#removals = new Family(environment.table(REMOVALS_TABLE), 'removal of an organization')
  }

  /** Requires the transaction that removes the organization. */
  put(removal: Removal): void {
    this.#removals.put(uuidBytes(removal.organizationId), removal)
  }

  /** Whether the organization was removed, and records of it are left to delete. */
  has(organizationId: string): boolean {
    const removal = this.#removals.get(uuidBytes(organizationId))
    return removal !== undefined && removal.isFinished !== true
  }

  /** Removals with records that are left to delete. */
  all(): Removal[] {
    return this.#every().filter(({ isFinished }) => isFinished !== true)
  }

  #every(): Removal[] {
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
  *finish(removal: Removal): Generator<number> {
    for (;;) {
      const deleted = this.#environment.shrink(() => this.#deleteStep(removal))
      if (deleted === 0) return
      yield deleted
    }
  }

  #deleteStep(removal: Removal): number {
    const { organizationId } = removal
    const range = rangeOf(organizationId)
    let deleted = 0
    for (const table of this.#tables()) {
      const limit = RETENTION_RECORDS_PER_STEP - deleted
      if (limit === 0) return deleted
      const keys = Array.from(table.getKeys({ ...range, limit }), (key) => Buffer.from(key))
      for (const key of keys) table.removeSync(key)
      deleted += keys.length
    }
    if (deleted < RETENTION_RECORDS_PER_STEP) this.#putFinished(removal)
    return deleted
  }

  #putFinished(removal: Removal): void {
    const finished = this.#every().filter(({ isFinished }) => isFinished === true)
    finished.sort((a, b) => b.removedAtMs - a.removedAtMs)
    for (const { organizationId } of finished.slice(FINISHED_MAX - 1)) this.#removals.remove(uuidBytes(organizationId))
    this.put({ ...removal, isFinished: true })
  }

  #tables() {
    const owned = [...this.#environment.tables].filter(([name]) => name !== REMOVALS_TABLE && !INDEXES.has(name))
    return owned.map(([, table]) => table)
  }
}

function rangeOf(organizationId: string): { readonly start: Buffer; readonly end: Buffer } {
  const start = uuidBytes(organizationId)
  return { start, end: endOfPrefix(start) }
}
