import { SOURCES_MAX, SOURCES_PER_ORGANIZATION_MAX } from '../limits.ts'
import { NO_ORGANIZATION, type SourceDelta } from '../store/sources.ts'
import { FORMATS } from './formats/formats.ts'
import { SourceMemory } from './formats/log-line.ts'
import { newCounts } from './outcome.ts'
import { tokenRateHash } from './token-rate.ts'

/** By which way messages come in. */
export const LISTENERS = ['tls', 'tcp', 'udp', 'https', 'file'] as const
export type Listener = (typeof LISTENERS)[number]

/** Whose messages a source's are: nobody's without a token. */
export interface SourceOwner {
  readonly organizationId: string
  readonly tokenId: string
  readonly label: string
}

export const UNATTRIBUTED: SourceOwner = { organizationId: NO_ORGANIZATION, tokenId: NO_ORGANIZATION, label: '' }

/** Messages of one token by outcome, since the start. */
export class TokenCounts implements SourceOwner {
  readonly organizationId: string
  readonly tokenId: string
  /** May change, and is then that of all that was counted. */
  label: string
  readonly counts = newCounts()
  /** For TokenRate. */
  readonly rateHash: number

  constructor({ organizationId, tokenId, label }: SourceOwner) {
    this.organizationId = organizationId
    this.tokenId = tokenId
    this.label = label
    this.rateHash = tokenRateHash(tokenId)
  }
}

/** One sender of messages: what is remembered of it, and what was counted since it was last told. */
export class Source {
  readonly owner: TokenCounts
  readonly listener: Listener
  readonly address: string
  /** HOSTNAME of its messages: behind a relay there are many. '' where they name none. */
  readonly host: string
  /** Milliseconds since 1970. */
  lastSeenMs = 0
  readonly memory = new SourceMemory()
  /** Messages that came. What became of them may be told later: those that match count when they are on disk. */
  received = 0
  readonly counts = newCounts()
  /** Messages by format, in the order of FORMATS. */
  readonly formats = new Float64Array(FORMATS.length)
  /** What was not understood last, redacted. */
  sample = ''
  sampledAtMs = 0
  /** By how many minutes the clock on its wall differs from ours, where that looks like a zone that nobody told. */
  zoneMinutes = 0
  /** Messages that matched and had a time that could not be read. */
  timesUnread = 0
  changed = false
  readonly #ofListener: Float64Array
  readonly #ofToken: Float64Array
  readonly #table: SourceTable

  constructor(owner: TokenCounts, listener: Listener, address: string, host: string, table: SourceTable) {
    this.owner = owner
    this.listener = listener
    this.address = address
    this.host = host
    this.#ofListener = table.listeners[listener]
    this.#table = table
    this.#ofToken = owner.counts
  }

  /** Notes that messages came. */
  receive(nowMs: number, times = 1): void {
    this.received += times
    this.#table.received[this.listener] += times
    this.#note(nowMs)
  }

  /** Counts what became of messages: of this source, of its listener and of its token. */
  count(outcome: number, nowMs: number, times = 1): void {
    this.counts[outcome] = (this.counts[outcome] ?? 0) + times
    this.#ofListener[outcome] = (this.#ofListener[outcome] ?? 0) + times
    this.#ofToken[outcome] = (this.#ofToken[outcome] ?? 0) + times
    this.#note(nowMs)
  }

  #note(nowMs: number): void {
    this.lastSeenMs = nowMs
    if (this.changed) return
    this.changed = true
    this.#table.noteChanged(this)
  }
}

/** The sources of a thread. Beyond the limit, new ones of an organization share one row whose address is `other`. */
export class SourceTable {
  /** Sources that found no place of their own. */
  overflowed = 0
  /** Messages by listener and outcome, since the start. */
  readonly listeners: Readonly<Record<Listener, Float64Array>> = {
    tls: newCounts(),
    tcp: newCounts(),
    udp: newCounts(),
    https: newCounts(),
    file: newCounts(),
  }
  /** Messages that came, by listener. */
  readonly received: Record<Listener, number> = { tls: 0, tcp: 0, udp: 0, https: 0, file: 0 }
  /** By id. One for each token whose messages came: as many as were made. */
  readonly tokens = new Map<string, TokenCounts>()
  readonly #sources = new Map<string, Source>()
  /** Those to be told, also such as were forgotten and whose connection or batch is still there: what they count is counted. */
  #changed: Source[] = []
  readonly #sourcesMax: number
  /**
   * Of one organization, so that none takes the places of all others. Those without a known token, whose addresses anybody can make up, are one too,
   * and their places are beside the others'.
   */
  readonly #perOrganizationMax: number
  readonly #unauthenticatedMax: number
  readonly #ofOrganization = new Map<string, number>()

  constructor(sourcesMax = SOURCES_MAX, perOrganizationMax = SOURCES_PER_ORGANIZATION_MAX) {
    this.#sourcesMax = sourcesMax
    this.#perOrganizationMax = perOrganizationMax
    this.#unauthenticatedMax = Math.floor(sourcesMax / 4)
  }

  get(owner: SourceOwner, listener: Listener, address: string, host: string): Source {
    const key = `${owner.organizationId}${owner.tokenId} ${listener} ${address} ${host}`
    const before = this.#sources.get(key)
    if (before !== undefined) {
      before.owner.label = owner.label
      return before
    }
    const isUnauthenticated = owner.tokenId === NO_ORGANIZATION
    const own = this.#ofOrganization.get(owner.organizationId) ?? 0
    const known = this.#sources.size - (this.#ofOrganization.get(NO_ORGANIZATION) ?? 0)
    const isFull = isUnauthenticated
      ? own >= this.#unauthenticatedMax
      : known >= this.#sourcesMax || own >= this.#perOrganizationMax
    if (isFull && address !== OTHER) {
      this.overflowed++
      return this.get(owner, listener, OTHER, '')
    }
    const source = new Source(this.#tokenCounts(owner), listener, address, host, this)
    this.#sources.set(key, source)
    this.#ofOrganization.set(owner.organizationId, own + 1)
    return source
  }

  #tokenCounts(owner: SourceOwner): TokenCounts {
    let known = this.tokens.get(owner.tokenId)
    if (known === undefined) {
      known = new TokenCounts(owner)
      this.tokens.set(owner.tokenId, known)
    }
    known.label = owner.label
    return known
  }

  /** What was counted since the last call, and forgets the sources that were silent since `silentSinceMs`. */
  takeDeltas(silentSinceMs: number): SourceDelta[] {
    const deltas = this.#changed.map(deltaOf)
    this.#changed = []
    for (const [key, source] of this.#sources) {
      if (source.lastSeenMs >= silentSinceMs) continue
      this.#sources.delete(key)
      const { organizationId } = source.owner
      const left = (this.#ofOrganization.get(organizationId) ?? 0) - 1
      if (left > 0) this.#ofOrganization.set(organizationId, left)
      else this.#ofOrganization.delete(organizationId)
    }
    return deltas
  }

  noteChanged(source: Source): void {
    this.#changed.push(source)
  }
}

export const OTHER = 'other'

function deltaOf(source: Source): SourceDelta {
  const formats: Record<string, number> = {}
  for (const [index, { id }] of FORMATS.entries()) {
    const count = source.formats[index] ?? 0
    if (count > 0) formats[id] = (formats[id] ?? 0) + count
  }
  const delta: SourceDelta = {
    organizationId: source.owner.organizationId,
    tokenId: source.owner.tokenId,
    listener: source.listener,
    address: source.address,
    host: source.host,
    lastSeenMs: source.lastSeenMs,
    received: source.received,
    counts: Array.from(source.counts),
    formats,
    sample: source.sample,
    zoneMinutes: source.zoneMinutes,
    timesUnread: source.timesUnread,
  }
  source.received = 0
  source.counts.fill(0)
  source.formats.fill(0)
  source.sample = ''
  source.timesUnread = 0
  source.changed = false
  return delta
}
