import { Action } from '../formats/action.ts'
import { KeyTable, textAt } from '../formats/bytes.ts'
import { FORMATS, NO_FORMAT } from '../formats/formats.ts'
import { LogLine, Verdict } from '../formats/log-line.ts'
import { LogTime, TimeFound } from '../formats/log-time.ts'
import type { OwnFormat } from '../formats/own-format.ts'
import { readUserAndBytes, UserCounts } from '../formats/user-name.ts'
import { NO_CLIENT } from '../kernel/event/client.ts'
import { METHODS, TIME_MS_MAX } from '../kernel/event/event.ts'
import type { LineMatch } from '../kernel/event/match-tally.ts'
import { canonicalAddress } from '../kernel/process/network.ts'
import {
  COVERAGE_ORGANIZATIONS_MAX,
  COVERAGE_PER_SECOND_MAX,
  LOG_BATCH_EVENTS_MAX,
  LOG_BATCHES_IN_FLIGHT_MAX,
} from '../limits.ts'
import { Outcome, type OutcomeName } from '../store/outcomes.ts'
import type { KnownHosts } from '../store/registry-in-force.ts'
import type { Reject } from '../store/sources.ts'
import type { UnstoredPlaces } from './accept.ts'
import { BodyReader } from './body-reader.ts'
import { CandidateTable } from './candidate-table.ts'
import { type LineStatus, OUTCOME_OF_VERDICT, VERDICTS, verdictsByFormat } from './line-status.ts'
import type { Origin } from './origin.ts'
import { type EventBatch, EventIds, HeldQuestions, type PendingEvent, PendingEvents } from './pending-events.ts'
import { OrganizationRate, type TokenRate } from './rates.ts'
import { coverageFromMessage } from './read-coverage.ts'
import { RejectSamples } from './reject-samples.ts'
import { type Source, SourceTable, UNATTRIBUTED } from './sources.ts'
import { type FramingFault, namedFaults } from './syslog/counted.ts'
import { SyslogMessage } from './syslog/message.ts'
import { readSyslog } from './syslog/read-message.ts'
import type { KnownToken, TokenAuthenticator } from './token-authenticator.ts'
import { zoneMinutes } from './zone.ts'

const NO_PLACES: UnstoredPlaces = { duplicates: [], outsideDedupWindow: [], rejected: [] }
const METHOD_LOG = METHODS.indexOf('log')

/** Finds the token of a message. */
export type Authenticator = Pick<TokenAuthenticator, 'find' | 'boundOf' | 'stillActive'>

export interface PipelineOptions {
  /**
   * Maximum messages per token and second. Messages beyond it are refused as if the queue were
   * full. undefined: no limit.
   */
  readonly tokenRate: TokenRate | undefined
  /** Called for each unauthorized message. */
  readonly noteUnauthorized: (origin: Origin, hasToken: boolean) => void
  /** Called for each kind of wrong octet counts. Default: only the source counts them. */
  readonly noteFraming?: (origin: Origin, fault: FramingFault) => void
  /** Whether coverage reports are stored. Default: they are skipped. */
  readonly storesCoverage?: boolean
  /**
   * Whether DNS queries wait for the line that says that they were blocked. Otherwise that line must
   * be in the same batch.
   */
  readonly holdsQuestions?: boolean
  /** Replaces the custom format of the token. */
  readonly own?: OwnFormat | undefined
  /** Of several listeners in one thread. */
  readonly sources?: SourceTable
}

/** The queues of an organization. */
interface Pending {
  /** Events of log messages, which get their ids here. */
  readonly logs: PendingEvents
  /** Events of collectors, which have ids, and coverage reports. */
  readonly collected: PendingEvents
  /** Events of DNS queries that wait. undefined: none has come, or they are in `logs`. */
  questions: HeldQuestions | undefined
  inFlight: number
  messagesInFlight: number
}

/**
 * The outcome of a message, `stored` if it is queued for storing. Or why it was not taken: the queue
 * of its organization is full, or its token is over its rate. It must then be passed again.
 */
export type Taken = OutcomeName | 'full' | 'overRate'

export function isTaken(taken: Taken): taken is OutcomeName {
  return taken !== 'full' && taken !== 'overRate'
}

/** A batch in transit to the writer. */
export interface OutgoingBatch extends EventBatch {
  readonly organizationId: string
  readonly deduplicate: boolean
}

/**
 * Processes messages: authenticates, parses, matches, and counts each message. Matches wait in a
 * batch for the writer.
 *
 * One instance per thread. Messages are read in its buffer. A message without a match allocates
 * nothing.
 */
export class MessagePipeline {
  /** The current message, of any listener. */
  readonly line: LogLine
  /**
   * Messages by format, in the order of FORMATS, then those without a format. VERDICTS counts each.
   */
  readonly formatCounts = new Float64Array((FORMATS.length + 1) * VERDICTS)
  readonly sources: SourceTable
  /** Coverage reports skipped by the rate limit. */
  coverageSkipped = 0
  readonly users = new UserCounts()
  /** Names of no platform that look like AI services. */
  readonly candidates = new CandidateTable()
  /** The verdict on the last message, and the index of its format. */
  verdict: Verdict = Verdict.unknown
  format = NO_FORMAT
  /** When the last message was sent, if it names a platform and is no repetition. */
  matchMs = 0
  readonly #authenticator: Authenticator
  readonly #known: KnownHosts
  readonly #message = new SyslogMessage()
  readonly #body = new BodyReader()
  readonly #headerTime = new LogTime()
  readonly #ids = new EventIds()
  readonly #pending = new Map<string, Pending>()
  readonly #clients = new ClientAddresses()
  readonly #options: PipelineOptions
  readonly #rejects = new RejectSamples()
  readonly #coverageRate = new OrganizationRate(COVERAGE_PER_SECOND_MAX, COVERAGE_ORGANIZATIONS_MAX)

  /** @param bytes the message buffer, with SCRATCH_BYTES of scratch space at the end */
  constructor(bytes: Uint8Array, known: KnownHosts, authenticator: Authenticator, options: PipelineOptions) {
    this.line = new LogLine(bytes)
    this.#known = known
    this.#authenticator = authenticator
    this.#options = options
    this.sources = options.sources ?? new SourceTable()
  }

  /** Processes the message in [start, end), which is not empty and arrived at `line.referenceMs`. */
  take(start: number, end: number, origin: Origin): Taken {
    const { line } = this
    const message = this.#message
    // A file that was preallocated has NULs before a line.
    while (start + 1 < end && line.bytes[start] === 0) start++
    if (origin.token !== undefined) message.expectedToken = origin.token.text
    readSyslog(line.view, start, end, message, line.referenceMs)
    const token = this.#tokenOf(message, origin)
    if (token === undefined) {
      this.#refuse(message, origin)
      return 'unauthorized'
    }
    const source = this.#sourceOf(message, token, origin)
    const { tokenRate } = this.#options
    if (tokenRate !== undefined && !tokenRate.take(source.owner.rateHash, line.referenceMs)) return 'overRate'
    this.#read(message, end, token, source)
    const outcome = this.verdict === Verdict.event ? this.#match(message, end, token, source, origin) : undefined
    if (outcome === 'full') {
      tokenRate?.refund(source.owner.rateHash, line.referenceMs)
      return outcome
    }
    if (this.verdict === Verdict.skip && this.format !== NO_FORMAT && line.isRefusal && origin.matched === 'store')
      this.#refuseQuestion(token.organizationId, source)
    const taken = outcome ?? OUTCOME_OF_VERDICT[this.verdict]
    this.#count(taken, source, origin, end)
    return taken
  }

  /** Returns what the last message says, which named a platform. Slow: it creates a string. */
  match(): LineMatch {
    const { hostStart, hostEnd, count } = this.line
    return { name: this.line.text(hostStart, hostEnd), client: this.client(), timeMs: this.matchMs, count }
  }

  /** The client of the last message, NO_CLIENT where none is known. Slow, as match. */
  client(): string {
    const { line } = this
    if (line.clientStart === line.clientEnd) return NO_CLIENT
    return this.#clients.canonical(line.text(line.clientStart, line.clientEnd))
  }

  /**
   * When the last message, of this origin, was sent. NaN if neither it nor its header has a time.
   */
  sentMs({ token, source }: Origin): number {
    if (token === undefined || source === undefined) return Number.NaN
    return this.#timeOf(this.#message, token, source)
  }

  /** Counts messages with wrong octet counts, in the order of FRAMING_FAULTS. */
  noteFraming(origin: Origin, faults: Float64Array): void {
    const { listener, address } = origin
    const owner = this.#authenticator.boundOf(origin) ?? UNATTRIBUTED
    const source = origin.source ?? this.sources.get(owner, listener, address, '')
    for (const [fault, messages] of Object.entries(namedFaults(faults)) as [FramingFault, number][]) {
      source.countFraming(fault, messages, this.line.referenceMs)
      this.#options.noteFraming?.(origin, fault)
    }
  }

  /**
   * Returns the batches that are ready for the writer, of every organization or of one: full ones,
   * also partly filled ones ('due'), or also the questions that wait ('all'). The caller reports
   * each durable batch by `settled`, and asks again for what LOG_BATCHES_IN_FLIGHT_MAX left.
   */
  takeBatches(which: 'full' | 'due' | 'all', of?: string): OutgoingBatch[] {
    const batches: OutgoingBatch[] = []
    const nowMs = performance.now()
    for (const [organizationId, pending] of this.#pending) {
      if (of !== undefined && organizationId !== of) continue
      const hasRoom = (): boolean => pending.inFlight < LOG_BATCHES_IN_FLIGHT_MAX
      const take = (queue: PendingEvents | undefined): void => {
        if (queue === undefined || queue.empty) return
        pending.inFlight++
        pending.messagesInFlight += queue.messages
        batches.push({ ...queue.take(), organizationId, deduplicate: queue === pending.collected })
      }
      for (const queue of [pending.logs, pending.collected])
        if ((which !== 'full' || queue.full) && hasRoom()) take(queue)
      // A turn moves the newer questions, so the older ones must have room.
      for (let turns = which === 'all' ? 2 : 1; turns > 0 && hasRoom(); turns--)
        take(pending.questions?.turn(nowMs, which))
    }
    return batches
  }

  /**
   * The batch is on disk, except for the events at these indexes, which attribute the events of
   * collectors to their senders. Of the events of logs, only rejected ones are not stored.
   *
   * 'all': nothing of the batch is stored, because its organization was removed, and the token of
   * its messages with it.
   */
  settled(batch: OutgoingBatch, unstoredPlaces: UnstoredPlaces | 'all'): void {
    const pending = this.#pending.get(batch.organizationId)
    if (pending === undefined) return
    pending.inFlight--
    const unstored = new Map<Source, number>()
    const note = (source: Source | undefined, outcome: number, times: number): number => {
      if (source === undefined || times === 0) return 0
      source.count(outcome, source.lastSeenMs, times)
      unstored.set(source, (unstored.get(source) ?? 0) + times)
      return times
    }
    const { senders } = batch
    const places = unstoredPlaces === 'all' ? NO_PLACES : unstoredPlaces
    const outcome = unstoredPlaces === 'all' ? Outcome.unauthorized : Outcome.stored
    if (senders.length > 0) {
      for (const place of places.duplicates) note(senders[place], Outcome.duplicate, 1)
      for (const place of places.outsideDedupWindow) note(senders[place], Outcome.outsideDedupWindow, 1)
      for (const place of places.rejected) note(senders[place], Outcome.rejected, 1)
    } else {
      let left = places.rejected.length
      for (const [source, messages] of batch.messages) left -= note(source, Outcome.rejected, Math.min(left, messages))
    }
    for (const [source, messages] of batch.messages) {
      pending.messagesInFlight -= messages
      const others = messages - (unstored.get(source) ?? 0)
      if (others > 0) source.count(outcome, source.lastSeenMs, others)
    }
    const { inFlight, logs, collected, questions } = pending
    if (inFlight === 0 && logs.empty && collected.empty && (questions?.empty ?? true))
      this.#pending.delete(batch.organizationId)
  }

  /** Matched messages that are not known to be on disk. */
  get unsettled(): number {
    let messages = 0
    for (const { logs, collected, questions, messagesInFlight } of this.#pending.values())
      messages += logs.messages + collected.messages + (questions?.messages ?? 0) + messagesInFlight
    return messages
  }

  /** Whether no event is queued or in transit. */
  get idle(): boolean {
    return this.#pending.size === 0
  }

  /** Counters since the start. */
  lineStatus(): LineStatus {
    const { formatCounts, coverageSkipped, users, candidates } = this
    return {
      formats: verdictsByFormat(formatCounts),
      coverageSkipped,
      usersTruncated: users.truncated,
      usersRefused: users.refused,
      candidatesSkipped: { ...candidates.skipped },
    }
  }

  /** Returns and clears a rate-limited sample of the messages that were not understood. */
  takeRejects(): Reject[] {
    return this.#rejects.take()
  }

  #tokenOf(message: SyslogMessage, origin: Origin): KnownToken | undefined {
    if (origin.givenToken !== undefined) {
      origin.token = this.#authenticator.stillActive(origin.token ?? origin.givenToken)
      return origin.token
    }
    const { tokenStart, tokenEnd } = message
    if (tokenStart === tokenEnd) return this.#authenticator.boundOf(origin)
    if (message.isExpectedToken && origin.token !== undefined) {
      origin.token = this.#authenticator.stillActive(origin.token)
      return origin.token
    }
    const token = this.#authenticator.find(this.line.bytes, tokenStart, tokenEnd)
    origin.token = token
    return token
  }

  #refuse(message: SyslogMessage, origin: Origin): void {
    const source = this.sources.get(UNATTRIBUTED, origin.listener, origin.address, '')
    source.receive(this.line.referenceMs)
    source.count(Outcome.unauthorized, this.line.referenceMs)
    source.hasUnknownToken = message.tokenStart !== message.tokenEnd
    this.#options.noteUnauthorized(origin, source.hasUnknownToken)
  }

  #sourceOf(message: SyslogMessage, token: KnownToken, origin: Origin): Source {
    const { hostStart, hostEnd } = message
    const before = origin.source
    if (
      before !== undefined &&
      before.owner.tokenId === token.tokenId &&
      before.owner.label === token.label &&
      before.host.length === hostEnd - hostStart &&
      textAt(this.line.view, hostStart, hostEnd, before.host)
    ) {
      return before
    }
    const host = hostStart === hostEnd ? '' : printable(this.line.text(hostStart, hostEnd))
    const source = this.sources.get(token, origin.listener, origin.address, host)
    source.memory.dayOrder.settleIfUnknown(token.dayOrder)
    origin.source = source
    return source
  }

  /** Sets the verdict on the message and its format. */
  #read(message: SyslogMessage, end: number, token: KnownToken, source: Source): void {
    const { line } = this
    const { msgStart, appStart, appEnd } = message
    line.memory = source.memory
    line.memory.isForwarded = token.isForwarded
    this.#body.own = this.#options.own ?? token.ownFormat
    this.format = NO_FORMAT
    this.verdict = Verdict.skip
    if (msgStart === end || LOGIN_PROGRAMS.find(line.view, appStart, appEnd) >= 0) return
    const verdict = this.#body.read(line, msgStart, end)
    this.format = this.#body.format
    if (verdict === Verdict.skip && line.coverageEnd > 0) this.verdict = this.#takeCoverage(token.organizationId)
    // syslogd's summary of repeated messages. RFC 3164 does not define it, but all implementations
    // write it.
    else if (verdict === Verdict.unknown && textAt(line.view, msgStart, end, 'last message repeated ')) return
    else if (verdict === Verdict.event && line.timeIsUnread && Number.isNaN(this.#timeOf(message, token, source)))
      this.verdict = line.reject(TIME_UNREAD)
    else this.verdict = verdict
  }

  /** The outcome of a message that names a host. Queues its event if the host is of a platform. */
  #match(message: SyslogMessage, end: number, token: KnownToken, source: Source, origin: Origin): OutcomeName | 'full' {
    const { matched } = origin
    const { line } = this
    const { organizationId } = token
    // A collector has matched its events. If the organization's registry lacks the name, they wait
    // for one that has it.
    const isCollected = line.eventIdStart >= 0
    if (!isCollected && !this.#known.knows(organizationId, line.view, line.hostStart, line.hostEnd)) {
      if (matched === 'store') this.candidates.note(line, token, this.format, message.msgStart, end)
      return 'unmatched'
    }
    if (matched === 'repeat') return 'duplicate'
    if (matched === 'dry') {
      this.matchMs = this.#matchTime(message, token, source)
      return 'stored'
    }
    const pending = this.#pendingOf(organizationId)
    const queue = this.#queueOf(pending)
    if (queue.full) return 'full'
    this.#add(queue, message, token, source)
    this.candidates.noteAi(line, organizationId)
    return 'stored'
  }

  #count(taken: OutcomeName, source: Source, { matched }: Origin, end: number): void {
    const { line, verdict, format } = this
    source.receive(line.referenceMs)
    const place = (format === NO_FORMAT ? FORMATS.length : format) * VERDICTS + verdict
    this.formatCounts[place] = (this.formatCounts[place] ?? 0) + 1
    if (format !== NO_FORMAT) source.formats[format] = (source.formats[format] ?? 0) + 1
    // A stored message is counted when it is on disk.
    if (taken !== 'stored' || matched !== 'store') source.count(Outcome[taken], line.referenceMs)
    const isProblem = verdict === Verdict.reject || verdict === Verdict.unknown || verdict === Verdict.ambiguous
    if (isProblem && matched !== 'repeat') this.#rejects.keep(line, source, format, this.#message.msgStart, end)
  }

  /**
   * Rate-limited: parsing a report allocates an object and costs many times as much as reading a
   * message in place. Reports are cumulative, so the next one includes a skipped one.
   */
  #takeCoverage(organizationId: string): Verdict {
    const { line } = this
    if (!this.#options.storesCoverage) return Verdict.skip
    if (!this.#coverageRate.take(organizationId, line.referenceMs)) {
      this.coverageSkipped++
      return Verdict.skip
    }
    const report = coverageFromMessage(line.text(line.coverageStart, line.coverageEnd))
    if (typeof report === 'string') return line.reject('coverage: expected a report with all members')
    if (!this.#pendingOf(organizationId).collected.addReport(report)) this.coverageSkipped++
    return Verdict.skip
  }

  #add(queue: PendingEvents, message: SyslogMessage, token: KnownToken, source: Source): void {
    const { line } = this
    const lastMs = this.#matchTime(message, token, source)
    this.matchMs = lastMs
    const firstMs = Number.isNaN(line.firstSeenMs) ? lastMs : Math.min(line.firstSeenMs, lastMs)
    const isCollected = line.eventIdStart >= 0
    if (!isCollected) this.users.count(readUserAndBytes(line))
    const client = this.client()
    if (line.isQuestion) source.memory.askedBy.set(this.#name(), client)
    queue.add(line.view, this.#event(client, firstMs, lastMs), line.eventIdStart, source)
    source.lastSeenMs = line.referenceMs
  }

  #queueOf(pending: Pending): PendingEvents {
    if (this.line.eventIdStart >= 0) return pending.collected
    if (!this.line.isQuestion || this.#options.holdsQuestions !== true) return pending.logs
    pending.questions ??= new HeldQuestions(LOG_BATCH_EVENTS_MAX, this.#ids)
    return pending.questions.newer
  }

  /** The event of the message, by offsets in the line. */
  #event(client: string, firstMs: number, lastMs: number): PendingEvent {
    const { line } = this
    const isCollected = line.eventIdStart >= 0
    return {
      nameStart: line.hostStart,
      nameEnd: line.hostEnd,
      client,
      method: isCollected ? line.method : METHOD_LOG,
      firstMs,
      lastMs,
      count: line.count,
      blocked: isCollected ? line.blockedCount : line.action === Action.blocked ? 1 : 0,
      isQuestion: line.isQuestion,
      userStart: line.userStart,
      userEnd: line.userEnd,
      bytesSent: line.bytesSent,
      bytesReceived: line.bytesReceived,
    }
  }

  /** In lower case, because clients mix the case of letters. */
  #name(): string {
    const { line } = this
    return line.text(line.hostStart, line.hostEnd).toLowerCase()
  }

  /** The line says that the query of an earlier line was blocked. */
  #refuseQuestion(organizationId: string, source: Source): void {
    const { line } = this
    const pending = this.#pending.get(organizationId)
    if (pending === undefined || !this.#known.knows(organizationId, line.view, line.hostStart, line.hostEnd)) return
    // A line without the client follows the query at once.
    const client = line.clientStart < line.clientEnd ? this.client() : source.memory.askedBy.get(this.#name())
    if (client === undefined) return
    const queue = pending.questions ?? pending.logs
    queue.refuse(line.view, { ...this.#event(client, 0, 0), isQuestion: true }, source)
  }

  /**
   * Returns a time that an event can have, now if there is none. batch-reader.ts corrects times in
   * the future.
   */
  #matchTime(message: SyslogMessage, token: KnownToken, source: Source): number {
    const { line } = this
    const timeMs = this.#timeOf(message, token, source)
    const isPossible = timeMs >= 0 && timeMs <= TIME_MS_MAX
    const isUnread = Number.isNaN(line.timeMs) ? line.timeIsUnread : !isPossible
    if (isUnread) source.timesUnread++
    return isPossible ? timeMs : line.referenceMs
  }

  /** The time of the event in UTC: from the message, else from the syslog header, else NaN. */
  #timeOf({ timeStart, timeEnd }: SyslogMessage, token: KnownToken, source: Source): number {
    const { line } = this
    let timeMs = line.timeMs
    let isLocal = line.timeIsLocal
    if (Number.isNaN(timeMs)) {
      const header = this.#headerTime
      if (timeStart === timeEnd || header.read(line.view, timeStart, timeEnd, line.referenceMs) !== TimeFound.found) {
        return Number.NaN
      }
      timeMs = header.ms
      isLocal = header.isLocal
    }
    if (!isLocal) return timeMs
    const utcMs = token.wallClock.toUtc(timeMs)
    if (source.listener !== 'file') source.zoneMinutes = zoneMinutes(utcMs - line.referenceMs)
    return utcMs
  }

  #pendingOf(organizationId: string): Pending {
    let pending = this.#pending.get(organizationId)
    if (pending === undefined) {
      pending = {
        logs: new PendingEvents(LOG_BATCH_EVENTS_MAX, this.#ids),
        collected: new PendingEvents(LOG_BATCH_EVENTS_MAX, this.#ids),
        questions: undefined,
        inFlight: 0,
        messagesInFlight: 0,
      }
      this.#pending.set(organizationId, pending)
    }
    return pending
  }
}

/** HOSTNAME for display: `?` replaces each character that is not printable ASCII (RFC 5424 §6). */
function printable(host: string): string {
  return host.slice(0, 255).replace(/[^\x21-\x7e]/g, '?')
}

/**
 * Programs that write what anyone types as a user name, with blanks: it could be a line of another
 * program. They name no request.
 */
const LOGIN_PROGRAMS = new KeyTable({ sshd: 0, 'sshd-session': 0, dropbear: 0, login: 0, su: 0, sudo: 0, cron: 0 })
/** The time of receipt would report use of today for a line of last month. */
const TIME_UNREAD = 'time: expected a form such as 2026-11-20T09:15:02Z, Nov 20 09:15:02 or seconds since 1970'

const CLIENTS_REMEMBERED = 4096

/** The canonical text of clients' addresses. Remembers IPv6 addresses by their text in messages. */
class ClientAddresses {
  readonly #canonical = new Map<string, string>()

  canonical(text: string): string {
    if (!text.includes(':')) return text
    const known = this.#canonical.get(text)
    if (known !== undefined) return known
    const canonical = canonicalAddress(text)
    if (this.#canonical.size >= CLIENTS_REMEMBERED) this.#canonical.clear()
    this.#canonical.set(text, canonical)
    return canonical
  }
}
