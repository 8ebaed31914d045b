import type { Environment, Table } from '../kernel/lmdb/environment.ts'
import { openRecord, sealRecord } from '../kernel/lmdb/record.ts'
import { isFault } from '../kernel/process/error-codes.ts'
import { CLIENT_RECORDS_REMOVED_MAX } from '../limits.ts'
import { type ClientReader, withContacts, withoutClients } from './client-records.ts'
import { Family } from './family.ts'
import { dayTextKey, endOfPrefix, u32Bytes, uuidBytes } from './keys.ts'

/** 1: without contacts, in stores of schema 1. */
const RECORD_VERSION = 2
const DAY_OFFSET = 16
const PLATFORM_OFFSET = 20

/** The clients of a platform on a day, in the form of client-records.ts. */
export interface ClientDay {
  readonly day: number
  readonly platformId: string
  readonly bytes: Uint8Array
}

/** The size of an organization's client records. */
export interface ClientTotals {
  readonly records: number
  /** Sum of the records without their keys. */
  readonly bytes: number
  /** Records that the size limit or a full disk ever took. */
  readonly removed: number
}

const NONE: ClientTotals = { records: 0, bytes: 0, removed: 0 }

/** Who used each platform, by organization, day (UTC) and platform. */
export class ClientDays {
  readonly #days: Table
  readonly #totals: Family<ClientTotals>

  constructor(environment: Environment) {
    this.#days = environment.table('clients')
    this.#totals = new Family(environment.table('client-totals'), 'size of client records')
  }

  /** The record of a platform and day. @throws Fault STORE_DAMAGED. */
  get(organizationId: string, day: number, platformId: string): Buffer | undefined {
    const stored = this.#days.get(dayTextKey(organizationId, day, platformId))
    return stored && openClients(stored)
  }

  /** The bytes of that record. 0: there is none. */
  bytesOf(organizationId: string, day: number, platformId: string): number {
    return this.#bytesOf(dayTextKey(organizationId, day, platformId)) ?? 0
  }

  /** The records from `firstDay` on, before `endDay` if it is given, by day. */
  *since(organizationId: string, firstDay: number, endDay?: number): Generator<ClientDay> {
    const range = rangeOf(organizationId, endDay)
    const start = Buffer.concat([range.start, u32Bytes(firstDay)])
    for (const { key, value } of this.#days.getRange({ ...range, start })) {
      yield {
        day: key.readUInt32BE(DAY_OFFSET),
        platformId: key.toString('utf8', PLATFORM_OFFSET),
        bytes: openClients(value),
      }
    }
  }

  /** The last day with a record. -1: there is none. */
  lastDay(organizationId: string): number {
    const { start, end } = rangeOf(organizationId)
    const [key] = this.#days.getKeys({ start: end, end: start, reverse: true, exclusiveStart: true, limit: 1 })
    return key?.readUInt32BE(DAY_OFFSET) ?? -1
  }

  totals(organizationId: string): ClientTotals {
    return this.#totals.get(uuidBytes(organizationId)) ?? NONE
  }

  /**
   * Writes records, and removes old ones: those before `firstDay`, then the oldest while all
   * together have more than `bytesMax` bytes. Removes at most CLIENT_RECORDS_REMOVED_MAX at once;
   * the next call continues. `lost` is the number of records that could not be written. Returns how
   * many the size limit removed, with the lost ones.
   */
  write(organizationId: string, written: readonly ClientDay[], firstDay: number, bytesMax: number, lost = 0): number {
    const before = this.totals(organizationId)
    let { records, bytes } = before
    for (const { day, platformId, bytes: clients } of written) {
      const key = dayTextKey(organizationId, day, platformId)
      const replacedBytes = this.#bytesOf(key)
      if (replacedBytes === undefined) records++
      const record = sealRecord(RECORD_VERSION, clients)
      this.#days.putSync(key, record)
      bytes += record.length - (replacedBytes ?? 0)
    }
    let overLimit = lost
    for (let left = CLIENT_RECORDS_REMOVED_MAX; left > 0; left--) {
      const [key] = this.#days.getKeys({ ...rangeOf(organizationId), limit: 1 })
      if (key === undefined) break
      const isExpired = key.readUInt32BE(DAY_OFFSET) < firstDay
      if (!isExpired && bytes <= bytesMax) break
      if (!isExpired) overLimit++
      records--
      bytes -= this.#bytesOf(key) ?? 0
      this.#days.removeSync(key)
    }
    if (written.length > 0 || lost > 0 || records !== before.records) {
      this.#totals.put(uuidBytes(organizationId), { records, bytes, removed: before.removed + overLimit })
    }
    return overLimit
  }

  /** The bytes of a record, which are not copied. undefined: there is none. */
  #bytesOf(key: Buffer): number | undefined {
    return this.#days.getBinaryFast(key)?.length
  }

  /**
   * Erases clients in up to `countMax` records from the key `from` (in hex) on; '': from the first.
   * Returns the key of the next record. undefined: none is left. A damaged record, which nobody can
   * read, stays.
   */
  erase(
    organizationId: string,
    from: string,
    countMax: number,
    isErased: (reader: ClientReader) => boolean,
  ): string | undefined {
    const totals = this.totals(organizationId)
    const range = rangeOf(organizationId)
    const changed: { readonly key: Buffer; readonly record: Buffer; readonly added: number }[] = []
    let count = 0
    let next: string | undefined
    for (const { key, value } of this.#days.getRange({
      ...range,
      ...(from === '' ? {} : { start: Buffer.from(from, 'hex') }),
    })) {
      if (count++ === countMax) {
        next = key.toString('hex')
        break
      }
      const clients = withoutDamaged(() => withoutClients(openClients(value), key.readUInt32BE(DAY_OFFSET), isErased))
      if (clients === undefined) continue
      const record = sealRecord(RECORD_VERSION, clients)
      changed.push({ key: Buffer.from(key), record, added: record.length - value.length })
    }
    let { bytes } = totals
    for (const { key, record, added } of changed) {
      this.#days.putSync(key, record)
      bytes += added
    }
    if (changed.length > 0) this.#totals.put(uuidBytes(organizationId), { ...totals, bytes })
    return next
  }

  /** Number of records of days before `endDay`. */
  countBefore(organizationId: string, endDay: number): number {
    return this.#days.getKeysCount(rangeOf(organizationId, endDay))
  }

  /** Removes up to `countMax` records of days before `endDay`, and returns their number. */
  removeBefore(organizationId: string, endDay: number, countMax: number): number {
    const before = this.totals(organizationId)
    const range = { ...rangeOf(organizationId, endDay), limit: countMax }
    const keys = countMax < 1 ? [] : Array.from(this.#days.getKeys(range), (key) => Buffer.from(key))
    let { bytes } = before
    for (const key of keys) {
      bytes -= this.#bytesOf(key) ?? 0
      this.#days.removeSync(key)
    }
    if (keys.length > 0) {
      this.#totals.put(uuidBytes(organizationId), { ...before, records: before.records - keys.length, bytes })
    }
    return keys.length
  }
}

function withoutDamaged<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (isFault(error, 'STORE_DAMAGED')) return undefined
    throw error
  }
}

/** The keys of days before `endDay`, by default of all. */
function rangeOf(organizationId: string, endDay?: number): { readonly start: Buffer; readonly end: Buffer } {
  const start = uuidBytes(organizationId)
  return { start, end: endDay === undefined ? endOfPrefix(start) : Buffer.concat([start, u32Bytes(endDay)]) }
}

/** The clients in a stored record. @throws Fault STORE_DAMAGED, STORE_VERSION. */
export function openClients(stored: Buffer): Buffer {
  const bytes = openRecord(stored, RECORD_VERSION, 'clients')
  return stored[0] === RECORD_VERSION ? bytes : withContacts(bytes)
}
