import { FORMATS } from '../formats/formats.ts'
import { SourceMemory } from '../formats/log-line.ts'
import { SOURCES_MAX, SOURCES_PER_ORGANIZATION_MAX } from '../limits.ts'
import { tokenMarkOf } from '../store/event-source.ts'
import { newCounts } from '../store/outcomes.ts'
import { NO_ORGANIZATION, type SourceDelta } from '../store/sources.ts'
import { tokenRateHash } from './rates.ts'
import type { FramingFault } from './syslog/counted.ts'

/** How messages arrive. */
export const LISTENERS = ['tls', 'tcp', 'udp', 'https', 'file'] as const
export type Listener = (typeof LISTENERS)[number]

/** The owner of a source's messages. UNATTRIBUTED without a token. */
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
  /** The current label. All counts are shown under it. */
  label: string
  readonly counts = newCounts()
  /** The key of the token in TokenRate. */
  readonly rateHash: number
  /** Begins the ids of its log events. */
  readonly tokenMark: number

  constructor({ organizationId, tokenId, label }: SourceOwner) {
    this.organizationId = organizationId
    this.tokenId = tokenId
    this.label = label
    this.rateHash = tokenRateHash(tokenId)
    this.tokenMark = tokenMarkOf(tokenId)
  }
}

/** One sender: its parsing state, and its counters since they were last reported. */
export class Source {
  readonly owner: TokenCounts
  readonly listener: Listener
  readonly address: string
  /** HOSTNAME in its messages: a relay forwards many. '' if the messages have none. */
  readonly host: string
  /** Milliseconds since 1970. */
  lastSeenMs = 0
  readonly memory = new SourceMemory()
  /** Received messages. Their outcomes may follow later: a match counts when it is on disk. */
  received = 0
  readonly counts = newCounts()
  /** Messages by format, in the order of FORMATS. */
  readonly formats = new Float64Array(FORMATS.length)
  /** The last message that was not understood, redacted. */
  sample = ''
  sampledAtMs = 0
  /**
   * The difference of the sender's clock to this one's in minutes, if it looks like a time zone
   * that is not configured.
   */
  zoneMinutes = 0
  /** Matched messages whose time could not be parsed. */
  timesUnread = 0
  /** The last message had a token that is unknown, revoked or expired. */
  hasUnknownToken = false
  /** Messages with wrong octet counts. undefined: none. */
  framing: Partial<Record<FramingFault, number>> | undefined
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

  /** Counts received messages. */
  receive(nowMs: number, times = 1): void {
    this.received += times
    this.#table.received[this.listener] += times
    this.#note(nowMs)
  }

  /** Counts outcomes for this source, its listener and its token. */
  count(outcome: number, nowMs: number, times = 1): void {
    this.counts[outcome] = (this.counts[outcome] ?? 0) + times
    this.#ofListener[outcome] = (this.#ofListener[outcome] ?? 0) + times
    this.#ofToken[outcome] = (this.#ofToken[outcome] ?? 0) + times
    this.#note(nowMs)
  }

  countFraming(fault: FramingFault, messages: number, nowMs: number): void {
    this.framing ??= {}
    this.framing[fault] = (this.framing[fault] ?? 0) + messages
    this.#note(nowMs)
  }

  #note(nowMs: number): void {
    this.lastSeenMs = nowMs
    if (this.changed) return
    this.changed = true
    this.#table.noteChanged(this)
  }
}

/**
 * The sources of a thread. Beyond the limits, further sources of an organization share one row with
 * the address `other`.
 */
export class SourceTable {
  /** Lookups of sources that have no row of their own. */
  overflowed = 0
  /** Messages by listener and outcome, since the start. */
  readonly listeners: Readonly<Record<Listener, Float64Array>> = {
    tls: newCounts(),
    tcp: newCounts(),
    udp: newCounts(),
    https: newCounts(),
    file: newCounts(),
  }
  /** Received messages by listener. */
  readonly received: Record<Listener, number> = { tls: 0, tcp: 0, udp: 0, https: 0, file: 0 }
  /** By token id. Bounded by the number of tokens. */
  readonly tokens = new Map<string, TokenCounts>()
  readonly #sources = new Map<string, Source>()
  /**
   * Sources to be reported. Includes forgotten ones that are still in use by a connection or batch.
   */
  #changed: Source[] = []
  readonly #sourcesMax: number
  /**
   * Limit per organization, so that none can displace the others. Unauthenticated senders, who can
   * forge addresses, have a separate limit.
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

  /**
   * Returns the counts since the last call. Forgets sources without a message since
   * `silentSinceMs`.
   */
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
    hasUnknownToken: source.hasUnknownToken,
    ...(source.framing === undefined ? {} : { framing: source.framing }),
  }
  source.received = 0
  source.counts.fill(0)
  source.formats.fill(0)
  source.sample = ''
  source.timesUnread = 0
  source.framing = undefined
  source.changed = false
  return delta
}
