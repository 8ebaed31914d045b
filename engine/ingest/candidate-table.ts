import { candidateOf } from '../../registry/candidate-names.ts'
import { canonicalName } from '../../registry/domain-name.ts'
import { keyedNames } from '../../registry/keyed-hash.ts'
import { hashLabel, ROOT_STATE } from '../../registry/label-hash.ts'
import { FORMATS } from '../formats/formats.ts'
import type { LogLine } from '../formats/log-line.ts'
import { MINUTE_MS } from '../kernel/process/clock.ts'
import { addToSketch, type CandidateDelta, SKETCH_BYTES } from '../store/candidates.ts'
import type { KnownToken } from './token-authenticator.ts'

/**
 * How devices say that a host is an AI service, in any language of their keys: the value of a
 * category, alone or in a list.
 *
 *   FortiGate             catdesc="Artificial Intelligence Technology", appcat="GenAI"
 *   PAN-OS                artificial-intelligence, ai-code-assistant and seven more (URL category list)
 *   Zscaler               AI and ML Applications, Generative AI and ML Applications, AI_ML_APPS
 *   Netskope, Umbrella, Sophos, Juniper, Cisco Talos    Generative AI
 *   Cloudflare Gateway    Artificial Intelligence
 */
const VALUES = [
  'artificial[ _-]intelligence(?:[ _-]technology)?',
  '(?:enhanced_)?gen(?:erative)?[ _-]?ai(?: (?:and|&) ml applications)?(?: - [a-z&,/ ]{1,40})?',
  'ai[ _](?:and|&)[ _]ml[ _]applications',
  'ai_ml_apps',
  'ai-(?:code-assistant|conversational-assistant|writing-assistant|media-service|data-and-workflow-optimizer|platform-service|meeting-assistant|website-generator)',
].join('|')
/** The value of a category, or one of its list. */
const AI = new RegExp(`^(?:${VALUES})$`, 'i')
/**
 * A field with a category: `catdesc="..."`, `"QueryCategoryNames":["..."]`, `urlcategory=... `. Not
 * in the query of a URL, where `?`, `&` or `/` is before the key.
 */
const FIELD =
  /(?<![\w?&/.%-])["']?(appcat|catdesc|urlcat|\w{0,20}categor(?:y|ies)(?:_?names?)?)["']?[=:] ?(?:"([^"]*)"|\[([^\]]*)\]|([^"\t,;|]*?)(?= \w+=|[\t,;|]|$))/gi
/** A column of a CSV line, or a member of a list in one. */
const COLUMN = new RegExp(`(?:^|[,;\\t|]) ?"?(?:[a-z /-]{1,40},){0,4}(?:${VALUES})(?=["',;|\\t]|$)`, 'im')
/** Formats whose lines may be columns without names. */
const COLUMN_FORMATS: ReadonlySet<string> = new Set(['any-csv', 'firewall-csv', 'netskope', 'umbrella', 'zscaler'])

/** A category is near the beginning; a longer message is one with a long URL. */
const CATEGORY_CHARS_MAX = 4096

/**
 * Whether the device that wrote the message has the host in a category for AI services. All of its
 * categories must say so: a client can write one into a URL. The category of an application counts
 * only if there is no other. It is a signal of a candidate and nothing else.
 */
export function hasAiCategory(message: string, format: string): boolean {
  let isAi = false
  let isAiApp = false
  let hasField = false
  for (const [, key = '', quoted, list, plain = ''] of message.matchAll(FIELD)) {
    if (/super/i.test(key)) continue
    const values = (quoted ?? list ?? plain).split(/[,;|]/).map((value) => value.replace(/^[\s"']+|[\s"']+$/g, ''))
    const says = values.some((value) => AI.test(value))
    if (/^app/i.test(key)) isAiApp ||= says
    else if (hasField && says !== isAi) return false
    else isAi = says
    hasField ||= !/^app/i.test(key)
  }
  if (hasField) return isAi
  return isAiApp || (COLUMN_FORMATS.has(format) && COLUMN.test(message))
}

/**
 * Candidates that wait for the writer, of all organizations of a thread. Further names are not
 * counted until these are stored; counted as `full`.
 */
export const CANDIDATES_WAITING_MAX = 2000
/**
 * Hashes of names that are no candidates, in sets of four: 64 KiB. A larger table would take the
 * processor's cache from the reading of messages. In single slots, names displace each other.
 */
const PLAIN_SLOTS = 32_768
const PLAIN_SET = 4
/** Slots for the hashes of names that are candidates. */
const CANDIDATE_SLOTS = 4096
/** Clients of which the last request of an AI platform is known: 96 KiB. */
const AI_CLIENTS = 8192
/** Milliseconds between requests of the same client that count as together. */
const TOGETHER_MS = 10 * MINUTE_MS
/**
 * Reading a name takes as long as reading a message. So of many messages, one in 256 may have a
 * name that was not read before, after a burst. The others are counted as `unread`.
 */
const MESSAGES_PER_NAME = 256
const NAMES_BURST = 8192

/**
 * Messages of a second that are all taken. Of further ones, an eighth is: taking a message costs 5%
 * of the time in which a thread reads one. The others are counted as `busy`.
 */
const MESSAGES_TAKEN = 5000

/** Messages that were not searched for candidates since the start, by limit. */
export interface CandidatesSkipped {
  readonly busy: number
  readonly unread: number
  readonly full: number
}

/** What is read of the token of a message. */
type CandidateOwner = Pick<KnownToken, 'organizationId' | 'wallClock'>

/** A candidate with its counts since the last delta. */
interface Waiting extends CandidateDelta {
  requests: number
  withAi: number
  isByDevice?: boolean
  firstSeenMs: number
  lastSeenMs: number
}

/**
 * Collects names of no platform that look like AI services. Most messages have a name that was read
 * before and is no candidate: they cost a hash of the name and one lookup.
 */
export class CandidateTable {
  readonly skipped: Record<keyof CandidatesSkipped, number> = { busy: 0, unread: 0, full: 0 }
  readonly #plain = new Uint16Array(PLAIN_SLOTS)
  readonly #candidateHashes = new Int32Array(CANDIDATE_SLOTS)
  readonly #candidates = new Array<Waiting | undefined>(CANDIDATE_SLOTS).fill(undefined)
  readonly #waiting = new Map<string, Map<string, Waiting>>()
  #waitingCount = 0
  #messages = 0
  #messagesBefore = 0
  #namesLeft = NAMES_BURST
  readonly #aiClients = new Uint32Array(AI_CLIENTS)
  readonly #aiTimesMs = new Float64Array(AI_CLIENTS)
  #organizationId = ''
  #organizationState = ROOT_STATE

  /** Notes that a client requested an AI platform. */
  noteAi(line: LogLine, organizationId: string): void {
    const client = this.#clientOf(line, organizationId)
    if (client === 0) return
    const slot = client % AI_CLIENTS
    this.#aiClients[slot] = client
    this.#aiTimesMs[slot] = line.referenceMs
  }

  /** Takes the message, between two offsets, of a host that no platform of the organization has. */
  note(line: LogLine, token: CandidateOwner, format: number, start: number, end: number): void {
    this.#messages = (this.#messages + 1) | 0
    // Neither a counter nor a clock: logs have patterns of lines.
    if (this.#messages > MESSAGES_TAKEN && Math.imul(this.#messages, 0x9e3779b1) >>> 29 !== 0) {
      this.skipped.busy++
      return
    }
    const { view, hostStart, hostEnd } = line
    // Two names with the same hash cost a candidate, and other organizations choose names, too. What
    // a name is may depend on the device, so messages of one organization and format share a hash.
    const name = keyedNames.bytes(view, hostStart, hostEnd)
    const hash = name ^ Math.imul(this.#stateOf(token.organizationId) + format, 0x9e3779b1)
    const plain = this.#plain
    const set = hash & (PLAIN_SLOTS - PLAIN_SET)
    const tag = tagOf(hash)
    if (plain[set] === tag || plain[set + 1] === tag || plain[set + 2] === tag || plain[set + 3] === tag) return
    this.#notePossible(line, token, hash, format, start, end)
  }

  /** The rest of note(), in a method of its own so that V8 inlines the first part. */
  #notePossible(line: LogLine, token: CandidateOwner, hash: number, format: number, start: number, end: number): void {
    const { organizationId } = token
    const slot = hash & (CANDIDATE_SLOTS - 1)
    const known = this.#candidateHashes[slot] === hash ? this.#candidates[slot] : undefined
    if (known?.organizationId === organizationId) return this.#count(known, line, token)
    if (!this.#mayRead()) {
      this.skipped.unread++
      return
    }
    const host = canonicalName(line.text(line.hostStart, line.hostEnd))
    const isByDevice = hasAiCategory(
      line.text(start, Math.min(end, start + CATEGORY_CHARS_MAX)),
      FORMATS[format]?.id ?? '',
    )
    const name = host === undefined ? undefined : candidateOf(host, isByDevice)?.name
    if (name === undefined) {
      this.#addPlain(hash)
      return
    }
    const waiting = this.#waitingOf(organizationId, name)
    if (waiting === undefined) {
      this.skipped.full++
      return
    }
    if (isByDevice) waiting.isByDevice = true
    this.#candidateHashes[slot] = hash
    this.#candidates[slot] = waiting
    this.#count(waiting, line, token)
  }

  /** Whether the name of one more message may be read. */
  #mayRead(): boolean {
    const messages = this.#messages - this.#messagesBefore
    this.#messagesBefore = this.#messages
    this.#namesLeft = Math.min(NAMES_BURST, this.#namesLeft + messages / MESSAGES_PER_NAME)
    if (this.#namesLeft < 1) return false
    this.#namesLeft--
    return true
  }

  /** A full set loses the entry that the hash selects. */
  #addPlain(hash: number): void {
    const at = hash & (PLAIN_SLOTS - PLAIN_SET)
    const free = this.#plain.subarray(at, at + PLAIN_SET).indexOf(0)
    this.#plain[at + (free < 0 ? hash & (PLAIN_SET - 1) : free)] = tagOf(hash)
  }

  #count(waiting: Waiting, line: LogLine, token: CandidateOwner): void {
    const timeMs = timeOf(line, token)
    const client = this.#clientOf(line, waiting.organizationId)
    const slot = client % AI_CLIENTS
    const isWithAi =
      client !== 0 &&
      this.#aiClients[slot] === client &&
      Math.abs(line.referenceMs - (this.#aiTimesMs[slot] ?? 0)) <= TOGETHER_MS
    waiting.requests += line.count
    if (isWithAi) waiting.withAi += line.count
    waiting.firstSeenMs = Math.min(waiting.firstSeenMs, timeMs)
    waiting.lastSeenMs = Math.max(waiting.lastSeenMs, timeMs)
    if (client !== 0) addToSketch(waiting.clients, client)
  }

  /** Returns and clears the counts since the last call. Call about once a second. */
  take(): CandidateDelta[] {
    this.#messages = 0
    this.#messagesBefore = 0
    if (this.#waitingCount === 0) return []
    const deltas = [...this.#waiting.values()].flatMap((names) => [...names.values()])
    this.#waiting.clear()
    this.#waitingCount = 0
    this.#candidates.fill(undefined)
    return deltas
  }

  #waitingOf(organizationId: string, name: string): Waiting | undefined {
    let names = this.#waiting.get(organizationId)
    const known = names?.get(name)
    if (known !== undefined || this.#waitingCount >= CANDIDATES_WAITING_MAX) return known
    if (names === undefined) {
      names = new Map()
      this.#waiting.set(organizationId, names)
    }
    const counts = { requests: 0, withAi: 0, firstSeenMs: Number.POSITIVE_INFINITY, lastSeenMs: 0 }
    const waiting: Waiting = { organizationId, name, ...counts, clients: new Uint8Array(SKETCH_BYTES) }
    names.set(name, waiting)
    this.#waitingCount++
    return waiting
  }

  /** The state of a hash of the organization: messages of one organization follow each other. */
  #stateOf(organizationId: string): number {
    if (this.#organizationId !== organizationId) {
      this.#organizationId = organizationId
      let state = ROOT_STATE
      for (let at = 0; at < organizationId.length; at++) {
        state = Math.imul(state ^ organizationId.charCodeAt(at), 0x01000193)
      }
      this.#organizationState = state
    }
    return this.#organizationState
  }

  /** A hash of the client within its organization; 0 without a client. */
  #clientOf({ view, clientStart, clientEnd }: LogLine, organizationId: string): number {
    if (clientStart === clientEnd) return 0
    const state = this.#stateOf(organizationId)
    const hash = hashLabel(view, clientStart, clientEnd - clientStart, state)
    // The sketch takes the high bits, which depend least on the last bytes of the address.
    return Math.imul(hash ^ (hash >>> 16), 0x85ebca6b) >>> 0 || 1
  }
}

/** The bits of a hash that do not select a set; never 0, which is a free slot. */
function tagOf(hash: number): number {
  return hash >>> 16 || 1
}

/** The time of the message in UTC, else of its arrival. A clock that is fast adds no future. */
function timeOf({ timeMs, timeIsLocal, referenceMs }: LogLine, { wallClock }: CandidateOwner): number {
  if (Number.isNaN(timeMs)) return referenceMs
  return Math.max(0, Math.min(timeIsLocal ? wallClock.toUtc(timeMs) : timeMs, referenceMs))
}
