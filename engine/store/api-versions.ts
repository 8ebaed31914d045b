import type { Environment, Table } from '../kernel/lmdb/environment.ts'
import { uuidBytes } from './keys.ts'
import { NO_ORGANIZATION } from './sources.ts'

/*
 * A version number for each organization. It changes with everything that the API reads of the
 * organization: plan, API keys, published lists. An API thread caches what it has read and checks
 * the version before each use: one lookup instead of four, and no record to verify.
 *
 *   key    organization (16); 16 zero bytes for all organizations together
 *   value  f64, little-endian, incremented at each change
 *
 * Not a sealed record: only equality matters, so a damaged value does no harm.
 */
const VERSION_BYTES = 8
const ALL = uuidBytes(NO_ORGANIZATION)

export class ApiVersions {
  readonly #table: Table

  constructor(environment: Environment) {
    this.#table = environment.table('api-versions')
  }

  /** The version of an organization, by its id as 16 bytes. 0: never changed. */
  get(organizationKey: Buffer): number {
    // get() would copy the value, at twice the cost. lmdb-js reuses these bytes at the next read.
    const bytes = this.#table.getBinaryFast(organizationKey)
    return bytes === undefined ? 0 : bytes.readDoubleLE(0)
  }

  /**
   * The version of all organizations together. While it is unchanged, no organization has changed.
   */
  ofAll(): number {
    return this.get(ALL)
  }

  /** Requires the transaction of the change. */
  change(organizationId: string): void {
    this.#raise(uuidBytes(organizationId))
    this.#raise(ALL)
  }

  #raise(key: Buffer): void {
    const next = Buffer.allocUnsafe(VERSION_BYTES)
    next.writeDoubleLE(this.get(key) + 1)
    this.#table.putSync(key, next)
  }
}
