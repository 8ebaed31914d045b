import { createHash } from 'node:crypto'
import { STORED_REJECTS_MAX, STORED_SOURCES_MAX } from '../limits.ts'
import type { Environment } from '../lmdb/environment.ts'
import { Family } from './family.ts'
import { u64Bytes, uuidBytes } from './keys.ts'
import { combineRecent, type RecentSpan } from './recent-arrivals.ts'

/** The organization of messages without a token that is known: none. */
export const NO_ORGANIZATION = '00000000-0000-0000-0000-000000000000'

/** What was counted of one source since the last time. */
export interface SourceDelta {
  readonly organizationId: string
  readonly tokenId: string
  readonly listener: string
  readonly address: string
  readonly host: string
  readonly lastSeenMs: number
  /** Messages that came. Those that match count as stored when they are on disk, and never if the service was killed before. */
  readonly received: number
  /** In the order of OUTCOMES. */
  readonly counts: readonly number[]
  /** Messages by id of their format. */
  readonly formats: Readonly<Record<string, number>>
  /** '' where nothing new was not understood. */
  readonly sample: string
  readonly zoneMinutes: number
  /** Messages that matched and had a time that could not be read. */
  readonly timesUnread: number
}

/** A source as it is stored: what was counted of it in all. */
export interface StoredSource extends SourceDelta {
  readonly firstSeenMs: number
  /** What arrived in the last hour before `lastSeenMs`. Absent in records of early releases. */
  readonly recent?: readonly RecentSpan[]
}

/** A message that was rejected or not recognised, for the operator to read. */
export interface Reject {
  readonly organizationId: string
  readonly timeMs: number
  readonly listener: string
  readonly address: string
  readonly host: string
  readonly tokenId: string
  /** '' where none was recognised. */
  readonly format: string
  readonly reason: string
  /** Redacted. */
  readonly sample: string
}

/** Who sends what: a row a sender, and the last messages that were not understood. */
export class Sources {
  readonly #sources: Family<StoredSource>
  readonly #rejects: Family<Reject>
  readonly #sourcesMax: number
  readonly #rejectsMax: number
  /** Rows by organization, where they were counted. */
  readonly #rows = new Map<string, number>()
  #rejectSequence = 0

  constructor(environment: Environment, sourcesMax = STORED_SOURCES_MAX, rejectsMax = STORED_REJECTS_MAX) {
    this.#sources = new Family(environment.table('sources'), 'source')
    this.#rejects = new Family(environment.table('rejects'), 'rejected message')
    this.#sourcesMax = sourcesMax
    this.#rejectsMax = rejectsMax
  }

  /** Those of an organization; of NO_ORGANIZATION: who sent without a token that is known. */
  ofOrganization(organizationId: string): StoredSource[] {
    return Array.from(this.#sources.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  /** Adds what was counted to the rows, and makes new ones; beyond the limit those go that were silent the longest. Inside a transaction of the caller. */
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

  /** Counting costs as much as there are rows, so it is done once, and then again when rows have left: as many as a tenth of the limit must come between. */
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
    const leaving = all.slice(0, excess + Math.floor(this.#sourcesMax / 10))
    this.#forget(organizationId, leaving)
  }

  /**
   * Removes those that were last heard of before `beforeMs`, at most `countMax`; what they sent stays in the sums. Inside a transaction of the caller.
   * Answers how many went.
   */
  removeSilent(organizationId: string, beforeMs: number, countMax: number): number {
    const leaving: { readonly key: Buffer; readonly value: StoredSource }[] = []
    for (const source of this.#sources.range(uuidBytes(organizationId))) {
      if (leaving.length >= countMax) break
      if (source.value.lastSeenMs < beforeMs && !isShared(source.value)) leaving.push(source)
    }
    if (leaving.length > 0) this.#forget(organizationId, leaving)
    return leaving.length
  }

  #forget(organizationId: string, leaving: readonly { readonly key: Buffer; readonly value: StoredSource }[]): void {
    for (const { key } of leaving) this.#sources.remove(key)
    // What they counted stays in the books, in one row for each token and listener.
    for (const { value } of leaving) {
      const one = { ...value, ...SHARED }
      const key = keyOf(one)
      const stored = this.#sources.get(key)
      const recent = combineRecent(stored?.recent ?? [], one.recent ?? [])
      this.#sources.put(key, stored === undefined ? one : { ...sum(stored, one), recent })
    }
    // The transaction may still fail, and then none of it was done: they are counted anew next time.
    this.#rows.delete(organizationId)
  }

  rejectsOf(organizationId: string): Reject[] {
    return Array.from(this.#rejects.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  /** Inside a transaction of the caller. The oldest go beyond the limit. */
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

/** The row of a token and listener that those share who have left. */
const SHARED = { address: 'other', host: '' } as const

function spanOf({ lastSeenMs, received, counts }: SourceDelta): RecentSpan {
  return [lastSeenMs, received, ...counts]
}

function isShared({ address, host }: SourceDelta): boolean {
  return address === SHARED.address && host === SHARED.host
}

/** HOSTNAME and address are others' text of any length: the key has their hash. */
function keyOf({ organizationId, tokenId, listener, address, host }: SourceDelta): Buffer {
  const sender = createHash('sha256').update(`${listener}\n${address}\n${host}`).digest().subarray(0, 16)
  return Buffer.concat([uuidBytes(organizationId), uuidBytes(tokenId), sender])
}

/** Both together: of the same sender, `delta` the later one. */
export function sum<Counted extends SourceDelta>(stored: Counted, delta: SourceDelta): Counted {
  const formats: Record<string, number> = { ...stored.formats }
  for (const [id, count] of Object.entries(delta.formats)) formats[id] = (formats[id] ?? 0) + count
  return {
    ...stored,
    received: stored.received + delta.received,
    lastSeenMs: Math.max(stored.lastSeenMs, delta.lastSeenMs),
    counts: delta.counts.map((count, index) => count + (stored.counts[index] ?? 0)),
    formats,
    sample: delta.sample === '' ? stored.sample : delta.sample,
    zoneMinutes: delta.zoneMinutes,
    timesUnread: stored.timesUnread + delta.timesUnread,
  }
}
