import type { Environment } from '../kernel/lmdb/environment.ts'
import { AUDIT_ENTRIES_MAX } from '../limits.ts'
import { Family } from './family.ts'
import { u64Bytes, uuidBytes } from './keys.ts'

/** The changed values. Never contains a secret. */
export type AuditDetails = Readonly<Record<string, string | number | boolean | readonly string[]>>

/** One change of an organization's data. */
export interface AuditEntry {
  readonly organizationId: string
  /** From 1, without gaps. Only the oldest entries are ever removed. */
  readonly sequence: number
  readonly timeMs: number
  /** `operator root`, or `member alice@acme.example`. */
  readonly actor: string
  /** For example `api-key.create`; see admin/actions.ts. */
  readonly action: string
  /** The changed object, by its display name. */
  readonly subject: string
  readonly details: AuditDetails
}

/** Records who changed what, and when. A change and its entry are written in one transaction. */
export class AuditLog {
  readonly #entries: Family<AuditEntry>
  readonly #entriesMax: number

  constructor(environment: Environment, entriesMax = AUDIT_ENTRIES_MAX) {
    this.#entries = new Family(environment.table('audit-log'), 'audit entry')
    this.#entriesMax = entriesMax
  }

  /** Requires the transaction of the change. Beyond the limit, removes the oldest entry. */
  append(entry: Omit<AuditEntry, 'sequence'>): void {
    const prefix = uuidBytes(entry.organizationId)
    const sequence = (this.#entries.last(prefix)?.sequence ?? 0) + 1
    this.#entries.put(keyOf(entry.organizationId, sequence), { ...entry, sequence })
    this.#removeBefore(entry.organizationId, sequence - this.#entriesMax + 1)
  }

  /** Oldest first. */
  ofOrganization(organizationId: string): AuditEntry[] {
    return Array.from(this.#entries.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  /** At most `countMax` entries before the sequence, newest first. */
  before(organizationId: string, sequence: number, countMax: number): AuditEntry[] {
    const prefix = uuidBytes(organizationId)
    const end = Math.min(sequence, this.lastSequence(organizationId) + 1)
    const entries: AuditEntry[] = []
    for (const { value } of this.#entries.range(prefix, keyOf(organizationId, Math.max(0, end - countMax)))) {
      if (value.sequence >= end) break
      entries.push(value)
    }
    return entries.reverse()
  }

  /** At most `countMax` entries from the sequence on, oldest first. */
  from(organizationId: string, sequence: number, countMax: number): AuditEntry[] {
    const entries: AuditEntry[] = []
    for (const { value } of this.#entries.range(uuidBytes(organizationId), keyOf(organizationId, sequence))) {
      if (entries.length === countMax) break
      entries.push(value)
    }
    return entries
  }

  /** Replaces the entry of the same sequence, to erase the name of a person. */
  replace(entry: AuditEntry): void {
    this.#entries.put(keyOf(entry.organizationId, entry.sequence), entry)
  }

  /** The sequence of the last entry. 0: there is none. */
  lastSequence(organizationId: string): number {
    return this.#entries.last(uuidBytes(organizationId))?.sequence ?? 0
  }

  /** The entries of all organizations, oldest first. */
  all(): AuditEntry[] {
    const entries = Array.from(this.#entries.range(Buffer.alloc(0)), ({ value }) => value)
    return entries.sort((a, b) => a.timeMs - b.timeMs)
  }

  /**
   * Removes at most `countMax` entries and returns their number. Keeps the last entry, because the
   * next one continues its sequence.
   */
  removeOlderThan(organizationId: string, timeMs: number, countMax = Number.POSITIVE_INFINITY): number {
    const last = this.#entries.last(uuidBytes(organizationId))?.sequence
    let removed = 0
    for (const { sequence, timeMs: entryMs } of this.#oldest(organizationId)) {
      if (removed >= countMax || entryMs >= timeMs || sequence === last) break
      this.#entries.remove(keyOf(organizationId, sequence))
      removed++
    }
    return removed
  }

  /** The number of entries that removeOlderThan would remove. */
  countOlderThan(organizationId: string, timeMs: number): number {
    const last = this.#entries.last(uuidBytes(organizationId))?.sequence
    let count = 0
    for (const { value } of this.#entries.range(uuidBytes(organizationId))) {
      if (value.timeMs >= timeMs || value.sequence === last) break
      count++
    }
    return count
  }

  #removeBefore(organizationId: string, sequenceMin: number): void {
    for (const { sequence } of this.#oldest(organizationId)) {
      if (sequence >= sequenceMin) break
      this.#entries.remove(keyOf(organizationId, sequence))
    }
  }

  /** Reads in steps, since a cursor must not point to a removed entry. */
  *#oldest(organizationId: string): Generator<AuditEntry> {
    const prefix = uuidBytes(organizationId)
    let from: Uint8Array = prefix
    while (true) {
      const step: AuditEntry[] = []
      for (const { value } of this.#entries.range(prefix, from)) {
        step.push(value)
        if (step.length === STEP) break
      }
      const last = step.at(-1)
      if (last === undefined) return
      yield* step
      from = keyOf(organizationId, last.sequence + 1)
    }
  }
}

const STEP = 100

function keyOf(organizationId: string, sequence: number): Buffer {
  return Buffer.concat([uuidBytes(organizationId), u64Bytes(sequence)])
}
