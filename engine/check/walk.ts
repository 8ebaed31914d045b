import { strict as assert } from 'node:assert'
import { Fault } from '../kernel/process/error-codes.ts'
import { printable } from '../kernel/process/table.ts'
import { FINDINGS_NAMED_MAX } from '../limits.ts'
import { openPacked } from '../store/family.ts'
import { ORGANIZATION_KEY_BYTES, uuidText } from '../store/keys.ts'
import { NO_ORGANIZATION } from '../store/sources.ts'
import type { Store } from '../store/store.ts'

/** A violated invariant of the store. */
export interface Finding {
  readonly table: string
  /** '' if the organization is unknown. */
  readonly organizationId: string
  readonly found: string
  readonly expected: string
}

/** The findings of a check. Only the first are kept, in case the store is badly damaged. */
class Findings {
  readonly named: Finding[] = []
  count = 0

  add(finding: Finding): void {
    this.count++
    if (this.named.length < FINDINGS_NAMED_MAX) this.named.push(finding)
  }
}

/** Formats a finding as one line. A damaged record can contain any characters. */
export function findingLine({ table, organizationId, found, expected }: Finding): string {
  const owner = organizationId === '' ? 'of no organization' : `of ${organizationId}`
  return printable(`${table} ${owner}: found ${found}, expected ${expected}`)
}

/** Records between two calls of `onProgress`. */
const PROGRESS_RECORDS = 8192

/** Receives the number of checked records and the total. An exception ends the check. */
export type OnProgress = (records: number, recordsTotal: number) => void

/** How to read the records of a table. */
export interface TableForm<T> {
  /** Length of the key in bytes; the minimum length if `keyIsLonger`. */
  readonly keyBytes: number
  readonly keyIsLonger?: boolean
  /** The key does not begin with an organization. */
  readonly isIndex?: boolean
  /** Records may have the all-zero organization (NO_ORGANIZATION). */
  readonly mayBeUnattributed?: boolean
  readonly open: (bytes: Buffer) => T
}

/** A record with a well-formed key. */
export interface Visited<T> {
  readonly key: Buffer
  readonly value: T
  /** The stored bytes. */
  readonly bytes: Buffer
  readonly organizationId: string
}

/** Opens msgpack in a sealed record, as written by Family. */
export function packed<T>(what: string): (bytes: Buffer) => T {
  return (bytes) => openPacked<T>(bytes, what)
}

/** Visits tables record by record and collects findings. Holds one record at a time. */
export class StoreWalk {
  readonly store: Store
  readonly findings = new Findings()
  readonly #onProgress: OnProgress
  readonly #recordsTotal: number
  #records = 0
  readonly #visited = new Set<string>()
  /** Cache of the last lookup: the keys of an organization are adjacent. */
  #organization = { id: '', exists: false }
  /** The same of organizations that were removed. */
  #removal = { id: '', exists: false }

  constructor(store: Store, onProgress: OnProgress) {
    this.store = store
    this.#onProgress = onProgress
    const names = [...store.environment.tables.keys()]
    this.#recordsTotal = names.reduce((sum, name) => sum + store.environment.tableRecords(name), 0)
  }

  /** An unvisited table is an internal error. */
  assertAllVisited(): void {
    const left = [...this.store.environment.tables.keys()].filter((name) => !this.#visited.has(name))
    assert.deepEqual(left, [], 'tables that the check skips')
  }

  /**
   * Visits all readable records in key order. An unreadable record or an exception of `visit`
   * becomes a finding.
   */
  table<T>(name: string, form: TableForm<T>, visit: (record: Visited<T>) => void): void {
    this.#visited.add(name)
    for (const { key, value: bytes } of this.store.environment.table(name).getRange({})) {
      if (this.#records++ % PROGRESS_RECORDS === 0) this.#onProgress(this.#records, this.#recordsTotal)
      const organizationId = this.#ownerOf(name, form, key)
      if (organizationId === undefined) continue
      let value: T
      try {
        value = form.open(bytes)
      } catch (error) {
        this.wrong(name, organizationId, whyUnread(error), `a valid record at ${shortKey(key)}`)
        continue
      }
      try {
        visit({ key, value, bytes, organizationId })
      } catch (error) {
        // The checksum is correct, so another program or a defective release wrote the record.
        this.wrong(
          name,
          organizationId,
          `unexpected fields at ${shortKey(key)} (${whyUnread(error)})`,
          'the current format',
        )
      }
    }
  }

  wrong(table: string, organizationId: string, found: string, expected: string): void {
    const finding: Finding = { table, organizationId, found, expected }
    this.findings.add(finding)
  }

  /**
   * Runs work that reads other records. An unreadable one is already a finding of its own table.
   */
  unlessUnreadable(work: () => void): void {
    try {
      work()
    } catch (error) {
      if (!(error instanceof Fault)) throw error
    }
  }

  hasOrganization(id: string): boolean {
    if (this.#organization.id !== id) {
      const exists = this.store.environment.table('organizations').doesExist(Buffer.from(id.replaceAll('-', ''), 'hex'))
      this.#organization = { id, exists }
    }
    return this.#organization.exists
  }

  #isRemoved(id: string): boolean {
    if (this.#removal.id !== id) this.#removal = { id, exists: this.store.removals.has(id) }
    return this.#removal.exists
  }

  /** The organization of a record. undefined: the key is malformed, which is added as a finding. */
  #ownerOf<T>(table: string, form: TableForm<T>, key: Buffer): string | undefined {
    const isOfForm = form.keyIsLonger ? key.length > form.keyBytes : key.length === form.keyBytes
    if (!isOfForm) {
      const expected = form.keyIsLonger ? `more than ${form.keyBytes} bytes` : `${form.keyBytes} bytes`
      const owner = form.isIndex || key.length < ORGANIZATION_KEY_BYTES ? '' : uuidText(key)
      this.wrong(table, owner, `a key of ${key.length} bytes, ${shortKey(key)}`, expected)
      return undefined
    }
    if (form.isIndex) return ''
    const organizationId = uuidText(key)
    // Records of an organization that was removed are deleted one transaction after the other.
    if (this.#isRemoved(organizationId)) return undefined
    if (this.hasOrganization(organizationId) || (form.mayBeUnattributed && organizationId === NO_ORGANIZATION))
      return organizationId
    this.wrong(table, organizationId, `a record at ${shortKey(key)}`, 'an organization of that id')
    return undefined
  }
}

const KEY_BYTES_SHOWN = 48

/** A key as hex, since it may contain any bytes. */
export function shortKey(key: Buffer): string {
  const hex = key.toString('hex', 0, KEY_BYTES_SHOWN)
  return key.length > KEY_BYTES_SHOWN ? `${hex}...` : hex
}

function whyUnread(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
