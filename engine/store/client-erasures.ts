import type { Environment } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'

/**
 * The clients of an organization that are left to erase, after its administrators decided to keep
 * fewer data. Erasing takes several transactions; the record is the progress.
 */
export interface ClientErasure {
  /**
   * Random, in hex. Replaces the hashes of clients in the counts of distinct clients, and is
   * deleted with this record.
   */
  readonly sketchKey: string
  /** Events of the buffer and waiting events from these sequences on are of the new setting. */
  readonly bufferEnd: number
  readonly unmatchedEnd: number
  /** Sequences before these are erased. */
  readonly bufferNext: number
  readonly unmatchedNext: number
  /** The key of the first evidence that is left, in hex. */
  readonly evidenceNext: string
  /**
   * The user names and addresses of one person, if only that person is erased. Then `sketchKey` is
   * '', and no count of distinct clients changes.
   */
  readonly person?: readonly string[]
  /** The first alert that is left. Absent: none is. */
  readonly alertsNext?: number
  /** The key of the first client record that is left, in hex, of an erasure of a person. */
  readonly clientsNext?: string
  /** Audit entries from `auditNext` to before `auditEnd` are left. */
  readonly auditNext: number
  readonly auditEnd: number
}

export class ClientErasures {
  readonly #records: Family<ClientErasure>

  constructor(environment: Environment) {
    this.#records = new Family(environment.table('client-erasures'), 'erasure of clients')
  }

  get(organizationId: string): ClientErasure | undefined {
    return this.#records.get(uuidBytes(organizationId))
  }

  /** Whether stored clients are left to erase, so that no one may read or store any. */
  isErasing(organizationId: string): boolean {
    return this.get(organizationId) !== undefined
  }

  put(organizationId: string, erasure: ClientErasure): void {
    this.#records.put(uuidBytes(organizationId), erasure)
  }

  remove(organizationId: string): void {
    this.#records.remove(uuidBytes(organizationId))
  }
}
