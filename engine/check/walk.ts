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

/** Formats a finding as one line. A damaged record can contain any characters. */
export function findingLine({ table, organizationId, found, expected }: Finding): string {
  const owner = organizationId === '' ? 'of no organization' : `of ${organizationId}`
  return printable(`${table} ${owner}: found ${found}, expected ${expected}`)
}

/** Records between two calls of `onProgress`. */
const PROGRESS_RECORDS = 8192

/** Receives the number of checked records and the total. An exception ends the check. */
export type OnProgress = (records: number, recordsTotal: number) => void

/** What the check knows of the records of a table. */
export interface Form<T> {
  /** Reads the stored bytes; throws if they are damaged. */
  readonly open: (bytes: Buffer) => T
  /** The key that a record has by its content. */
  readonly keyOf?: (value: T, organizationId: string, key: Buffer) => Uint8Array
  /** Length of the key in bytes, if the content does not tell the key. */
  readonly keyBytes?: number
  /** The key does not begin with an organization. */
  readonly isIndex?: boolean
  /** Records may have the all-zero organization (NO_ORGANIZATION). */
  readonly mayBeUnattributed?: boolean
  /** Records of other tables without which this one means nothing: table and key. */
  readonly needs?: (value: T, key: Buffer) => readonly (readonly [table: string, key: Uint8Array])[]
  /**
   * A table that has the key of each record under another key, and nothing else. undefined: the
   * record must not be found by it.
   */
  readonly index?: { readonly table: string; readonly keyOf: (value: T) => Uint8Array | undefined }
}

/** A record that could be read. */
export interface Visited<T> {
  readonly key: Buffer
  readonly value: T
  /** The stored bytes. */
  readonly bytes: Buffer
  readonly organizationId: string
}

/** Adds a finding about the record that is visited. */
export type Wrong = (found: string, expected: string) => void

/** Opens msgpack in a sealed record, as written by Family. */
export function packed<T>(what: string): (bytes: Buffer) => T {
  return (bytes) => openPacked<T>(bytes, what)
}

/** Visits tables record by record and collects findings. Holds one record at a time. */
export class StoreWalk {
  readonly store: Store
  /** The first ones, in case the store is badly damaged. */
  readonly findings: Finding[] = []
  findingsCount = 0
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
   * Checks all records of a table and its index in key order, and visits those that can be read. An
   * unreadable record or an exception of `visit` becomes a finding.
   */
  table<T>(name: string, form: Form<T>, visit: (record: Visited<T>, wrong: Wrong) => void = () => {}): void {
    for (const { key, bytes } of this.#range(name)) {
      const organizationId = this.#ownerOf(name, form, key)
      if (organizationId === undefined) continue
      const wrong: Wrong = (found, expected) => this.wrong(name, organizationId, found, expected)
      let value: T
      try {
        value = form.open(bytes)
      } catch (error) {
        wrong(whyUnread(error), `a valid record at ${shortKey(key)}`)
        continue
      }
      try {
        this.#checkForm(form, key, value, organizationId, wrong)
        visit({ key, value, bytes, organizationId }, wrong)
      } catch (error) {
        // The checksum is correct, so another program or a defective release wrote the record.
        wrong(`unexpected fields at ${shortKey(key)} (${whyUnread(error)})`, 'the current format')
      }
    }
    if (form.index !== undefined) this.#checkIndex(name, form, form.index)
  }

  #checkForm<T>(form: Form<T>, key: Buffer, value: T, organizationId: string, wrong: Wrong): void {
    const own = form.keyOf?.(value, organizationId, key) ?? key
    if (!key.equals(own)) wrong(`a record at ${shortKey(key)}`, `its key, ${shortKey(Buffer.from(own))}`)
    for (const [table, needed] of form.needs?.(value, key) ?? []) {
      if (this.store.environment.table(table).doesExist(Buffer.from(needed))) continue
      wrong(`a record at ${shortKey(key)} without one in ${table}`, 'both')
    }
    const indexed = form.index?.keyOf(value)
    if (form.index === undefined || indexed === undefined) return
    const entry = this.store.environment.table(form.index.table).get(Buffer.from(indexed))
    if (entry?.equals(key) !== true) wrong(`no entry in ${form.index.table} for ${shortKey(key)}`, 'its own')
  }

  /** Each entry leads to the record to which it belongs. */
  #checkIndex<T>(name: string, { open }: Form<T>, { table, keyOf }: NonNullable<Form<T>['index']>): void {
    const records = this.store.environment.table(name)
    for (const { key, bytes: entry } of this.#range(table)) {
      try {
        const record = records.get(Buffer.from(entry))
        if (record !== undefined && key.equals(keyOf(open(record)) ?? Buffer.of())) continue
      } catch {
        // The record is a finding of its own table.
        continue
      }
      this.wrong(table, '', `an entry at ${shortKey(key)}`, `a record in ${name} with that entry`)
    }
  }

  *#range(name: string): Generator<{ key: Buffer; bytes: Buffer }> {
    this.#visited.add(name)
    for (const { key, value: bytes } of this.store.environment.table(name).getRange({})) {
      if (this.#records++ % PROGRESS_RECORDS === 0) this.#onProgress(this.#records, this.#recordsTotal)
      yield { key, bytes }
    }
  }

  wrong(table: string, organizationId: string, found: string, expected: string): void {
    this.findingsCount++
    if (this.findings.length < FINDINGS_NAMED_MAX) this.findings.push({ table, organizationId, found, expected })
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

  /** The organization of a record. undefined: the record is not checked, or its key is a finding. */
  #ownerOf<T>(table: string, form: Form<T>, key: Buffer): string | undefined {
    const least = form.isIndex ? 1 : ORGANIZATION_KEY_BYTES
    if (form.keyBytes === undefined ? key.length < least : key.length !== form.keyBytes) {
      const expected = form.keyBytes === undefined ? `${least} bytes or more` : `${form.keyBytes} bytes`
      this.wrong(table, '', `a key of ${key.length} bytes, ${shortKey(key)}`, expected)
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
function shortKey(key: Buffer): string {
  const hex = key.toString('hex', 0, KEY_BYTES_SHOWN)
  return key.length > KEY_BYTES_SHOWN ? `${hex}...` : hex
}

function whyUnread(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
