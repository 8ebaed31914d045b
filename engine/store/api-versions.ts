import type { Environment, Table } from '../lmdb/environment.ts'
import { uuidBytes } from './keys.ts'
import { NO_ORGANIZATION } from './sources.ts'

/*
 * One number for each organization that changes with everything that the API reads of it: its plan, its API keys, what is published. A thread of the
 * API keeps what it has read, and asks this number before each use: one look-up instead of four, and no record to open.
 *
 *   key    organization (16), and 16 bytes of 0 for all of them together
 *   value  f64, little-endian; grows by one with each change
 *
 * It is no sealed record: whatever stands there, all that matters is whether it is still the same.
 */
const VERSION_BYTES = 8
const ALL = uuidBytes(NO_ORGANIZATION)

export class ApiVersions {
  readonly #table: Table

  constructor(environment: Environment) {
    this.#table = environment.table('api-versions')
  }

  /** The organization's, by its id in 16 bytes. 0 where nothing was ever changed. */
  get(organizationKey: Buffer): number {
    // Not get(), which copies the value and costs twice as much. The bytes are lmdb-js's own, until the next read.
    const bytes = this.#table.getBinaryFast(organizationKey)
    return bytes === undefined ? 0 : bytes.readDoubleLE(0)
  }

  /** Of all organizations together: while it is the same, each of theirs is. */
  ofAll(): number {
    return this.get(ALL)
  }

  /** Inside the transaction of the change. */
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
