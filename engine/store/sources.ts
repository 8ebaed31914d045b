import { createHash } from 'node:crypto'
import type { Environment } from '../kernel/lmdb/environment.ts'
import { STORED_REJECTS_MAX, STORED_SOURCES_MAX } from '../limits.ts'
import { Family } from './family.ts'
import { u64Bytes, uuidBytes } from './keys.ts'
import { combineRecent, type RecentSpan } from './recent-arrivals.ts'

/** The organization of messages without a known token. No such organization exists. */
export const NO_ORGANIZATION = '00000000-0000-0000-0000-000000000000'

/** The counters of one source since the previous delta. */
export interface SourceDelta {
  readonly organizationId: string
  readonly tokenId: string
  readonly listener: string
  readonly address: string
  readonly host: string
  readonly lastSeenMs: number
  /**
   * Received messages. A match counts as `stored` only when it is on disk, so it has no outcome if
   * the service was killed before.
   */
  readonly received: number
  /** In the order of OUTCOMES. */
  readonly counts: readonly number[]
  /** Messages by format id. */
  readonly formats: Readonly<Record<string, number>>
  /** '' if every message was understood. */
  readonly sample: string
  readonly zoneMinutes: number
  /** Matched messages whose time could not be parsed. */
  readonly timesUnread: number
  /** The last message had a token that is unknown, revoked or expired. */
  readonly hasUnknownToken: boolean
  /** Messages with wrong octet counts, by kind. Absent: none. */
  readonly framing?: Readonly<Record<string, number>>
  /** The node of a cluster that received the last message; '' or absent: none has a name. */
  readonly node?: string
}

/** A stored source with its total counts. */
export interface StoredSource extends SourceDelta {
  readonly firstSeenMs: number
  /** What arrived in the last hour before `lastSeenMs`. Absent in records of early releases. */
  readonly recent?: readonly RecentSpan[]
}

/** By which sources are ordered, summed and found, so that a list does not hold them all. */
export interface SourceHead
  extends Pick<StoredSource, 'tokenId' | 'listener' | 'address' | 'host' | 'lastSeenMs' | 'received'> {
  readonly key: Buffer
}

/** A message that was rejected or not recognized, for the operator. */
export interface Reject {
  readonly organizationId: string
  readonly timeMs: number
  readonly listener: string
  readonly address: string
  readonly host: string
  readonly tokenId: string
  /** '' if no format was recognized. */
  readonly format: string
  readonly reason: string
  /** Redacted. */
  readonly sample: string
}

/** One row per sender with its counters, and the last messages that were not understood. */
export class Sources {
  readonly #sources: Family<StoredSource>
  readonly #rejects: Family<Reject>
  readonly #sourcesMax: number
  readonly #rejectsMax: number
  /** Number of rows by organization, once counted. */
  readonly #rows = new Map<string, number>()
  #rejectSequence = 0

  constructor(environment: Environment, sourcesMax = STORED_SOURCES_MAX, rejectsMax = STORED_REJECTS_MAX) {
    this.#sources = new Family(environment.table('sources'), 'source')
    this.#rejects = new Family(environment.table('rejects'), 'rejected message')
    this.#sourcesMax = sourcesMax
    this.#rejectsMax = rejectsMax
  }

  /** The sources of an organization. For NO_ORGANIZATION: senders without a known token. */
  ofOrganization(organizationId: string): StoredSource[] {
    return Array.from(this.#sources.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  /** The heads of the sources of an organization, or of one of its tokens. */
  heads(organizationId: string, tokenId = ''): SourceHead[] {
    const prefix = Buffer.concat([uuidBytes(organizationId), uuidBytes(tokenId)])
    return Array.from(this.#sources.range(prefix), ({ key, value }) => {
      const { tokenId, listener, address, host, lastSeenMs, received } = value
      return { key, tokenId, listener, address, host, lastSeenMs, received }
    })
  }

  /** The sources with these heads, in the same order, except for those that are gone. */
  ofHeads(heads: readonly SourceHead[]): StoredSource[] {
    return heads.flatMap(({ key }) => this.#sources.get(key) ?? [])
  }

  /**
   * Adds counts to the rows and creates missing rows. Beyond the limit, the sources that were
   * inactive the longest are merged into shared rows.
   */
  add(deltas: readonly SourceDelta[]): void {
    const added = new Map<string, number>()
    for (const delta of deltas) {
      const key = keyOf(delta)
      const stored = this.#sources.get(key)
      if (stored === undefined) added.set(delta.organizationId, (added.get(delta.organizationId) ?? 0) + 1)
      const counted = stored === undefined ? { ...delta, firstSeenMs: delta.lastSeenMs } : sum(stored, delta)
      this.#sources.put(key, { ...counted, recent: combineRecent(stored?.recent ?? [], [spanOf(delta)]) })
    }
    for (const [organizationId, rows] of added) this.#bound(organizationId, rows)
  }

  /**
   * Counting the rows is linear in their number. So they are counted once, and again only after
   * rows were removed, which is a tenth of the limit at a time.
   */
  #bound(organizationId: string, added: number): void {
    const before = this.#rows.get(organizationId)
    if (before !== undefined && before + added <= this.#sourcesMax) {
      this.#rows.set(organizationId, before + added)
      return
    }
    const all = Array.from(this.#sources.range(uuidBytes(organizationId)))
    const excess = all.length - this.#sourcesMax
    if (excess <= 0) {
      this.#rows.set(organizationId, all.length)
      return
    }
    all.sort((a, b) => a.value.lastSeenMs - b.value.lastSeenMs)
    const expired = all.slice(0, excess + Math.floor(this.#sourcesMax / 10))
    this.#forget(organizationId, expired)
  }

  /**
   * Removes at most `countMax` sources last seen before `beforeMs`. Their counts are kept in shared
   * rows. Returns how many were removed.
   */
  removeSilent(organizationId: string, beforeMs: number, countMax: number): number {
    const expired = this.#silent(organizationId, beforeMs, countMax)
    if (expired.length > 0) this.#forget(organizationId, expired)
    return expired.length
  }

  /** The number of sources that removeSilent would remove. */
  countSilent(organizationId: string, beforeMs: number): number {
    return this.#silent(organizationId, beforeMs, Number.POSITIVE_INFINITY).length
  }

  #silent(organizationId: string, beforeMs: number, countMax: number): { key: Buffer; value: StoredSource }[] {
    const silent: { key: Buffer; value: StoredSource }[] = []
    for (const source of this.#sources.range(uuidBytes(organizationId))) {
      if (silent.length >= countMax) break
      if (source.value.lastSeenMs < beforeMs && !isShared(source.value)) silent.push(source)
    }
    return silent
  }

  #forget(organizationId: string, expired: readonly { readonly key: Buffer; readonly value: StoredSource }[]): void {
    for (const { key } of expired) this.#sources.remove(key)
    // Keep the counts, in one shared row per token and listener.
    for (const { value } of expired) {
      const one = { ...value, ...SHARED }
      const key = keyOf(one)
      const stored = this.#sources.get(key)
      const recent = combineRecent(stored?.recent ?? [], one.recent ?? [])
      this.#sources.put(key, stored === undefined ? one : { ...sum(stored, one), recent })
    }
    // Count again the next time, because this transaction may still be aborted.
    this.#rows.delete(organizationId)
  }

  rejectsOf(organizationId: string): Reject[] {
    return Array.from(this.#rejects.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  /** Beyond the limit, removes the oldest. */
  addRejects(rejects: readonly Reject[]): void {
    for (const reject of rejects) {
      this.#rejectSequence = Math.max(this.#rejectSequence + 1, Date.now() * 1024)
      this.#rejects.put(Buffer.concat([uuidBytes(reject.organizationId), u64Bytes(this.#rejectSequence)]), reject)
    }
    for (const organizationId of new Set(rejects.map((reject) => reject.organizationId))) {
      const keys = Array.from(this.#rejects.range(uuidBytes(organizationId)), ({ key }) => key)
      for (const key of keys.slice(0, Math.max(0, keys.length - this.#rejectsMax))) this.#rejects.remove(key)
    }
  }
}

/** The address, host and node of the row that removed sources of a token and listener share. */
const SHARED = { address: 'other', host: '', node: '' } as const

/** Whether the row has the counts of sources that were removed. It is no sender. */
export function isShared({ address, host }: Pick<SourceDelta, 'address' | 'host'>): boolean {
  return address === SHARED.address && host === SHARED.host
}

function spanOf({ lastSeenMs, received, counts }: SourceDelta): RecentSpan {
  return [lastSeenMs, received, ...counts]
}

/** HOSTNAME and address are untrusted and of any length, so the key contains their hash. */
function keyOf({ organizationId, tokenId, listener, address, host }: SourceDelta): Buffer {
  const sender = createHash('sha256').update(`${listener}\n${address}\n${host}`).digest().subarray(0, 16)
  return Buffer.concat([uuidBytes(organizationId), uuidBytes(tokenId), sender])
}

/** Adds the later `delta` to the counters of the same sender. */
export function sum<Counted extends SourceDelta>(stored: Counted, delta: SourceDelta): Counted {
  const { node = '' } = delta.lastSeenMs < stored.lastSeenMs ? stored : delta
  const framing = sumOf(stored.framing ?? {}, delta.framing ?? {})
  return {
    ...stored,
    received: stored.received + delta.received,
    lastSeenMs: Math.max(stored.lastSeenMs, delta.lastSeenMs),
    counts: delta.counts.map((count, index) => count + (stored.counts[index] ?? 0)),
    formats: sumOf(stored.formats, delta.formats),
    ...(Object.keys(framing).length === 0 ? {} : { framing }),
    sample: delta.sample === '' ? stored.sample : delta.sample,
    zoneMinutes: delta.zoneMinutes,
    timesUnread: stored.timesUnread + delta.timesUnread,
    hasUnknownToken: delta.hasUnknownToken,
    node,
  }
}

function sumOf(a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>): Record<string, number> {
  const sums = { ...a }
  for (const [key, count] of Object.entries(b)) sums[key] = (sums[key] ?? 0) + count
  return sums
}
