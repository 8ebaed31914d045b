import { NO_CLIENT } from '../event/client.ts'
import { METHODS, TIME_MS_MAX } from '../event/event.ts'
import type { LineMatch } from '../event/match-tally.ts'
import {
  COVERAGE_ORGANIZATIONS_MAX,
  COVERAGE_PER_SECOND_MAX,
  LOG_BATCH_EVENTS_MAX,
  LOG_BATCHES_IN_FLIGHT_MAX,
} from '../limits.ts'
import { Outcome } from '../store/outcomes.ts'
import type { KnownHosts } from '../store/registry-in-force.ts'
import type { Reject } from '../store/sources.ts'
import type { UnstoredPlaces } from './accept.ts'
import { BodyReader } from './body-reader.ts'
import { CandidateTable } from './candidate-table.ts'
import { ClientAddresses } from './client-addresses.ts'
import { Action } from './formats/action.ts'
import { textAt } from './formats/bytes.ts'
import { NO_FORMAT } from './formats/detect.ts'
import { FORMATS } from './formats/formats.ts'
import { LogLine, Verdict } from './formats/log-line.ts'
import { LogTime, TimeFound } from './formats/log-time.ts'
import type { OwnFormat } from './formats/own-format.ts'
import { readUser, UserCounts } from './formats/user-name.ts'
import { type LineStatus, OUTCOME_OF_VERDICT, VERDICTS, verdictsByFormat } from './line-status.ts'
import { OrganizationRate } from './organization-rate.ts'
import type { Origin } from './origin.ts'
import { type EventBatch, EventIds, PendingEvents } from './pending-events.ts'
import { coverageFromMessage } from './read-coverage.ts'
import { RejectSamples } from './reject-samples.ts'
import { type Source, SourceTable, UNATTRIBUTED } from './sources.ts'
import { SyslogMessage } from './syslog/message.ts'
import { readSyslog } from './syslog/read-message.ts'
import type { KnownToken, TokenAuthenticator } from './token-authenticator.ts'
import type { TokenRate } from './token-rate.ts'
import { zoneMinutes } from './zone.ts'

const NO_PLACES: UnstoredPlaces = { duplicates: [], tooLate: [], rejected: [] }
const METHOD_LOG = METHODS.indexOf('log')

/** Finds the token of a message. */
export type Authenticator = Pick<TokenAuthenticator, 'find' | 'boundOf' | 'stillActive'>

export interface IntakeOptions {
  /**
   * Maximum messages per token and second. Messages beyond it are refused as if the queue were
   * full. undefined: no limit.
   */
  readonly tokenRate: TokenRate | undefined
  /** Called for each unauthorized message. */
  readonly noteUnauthorized: (origin: Origin, hasToken: boolean) => void
  /** Whether coverage reports are stored. Default: they are skipped. */
  readonly storesCoverage?: boolean
  /** Replaces the own format of the token. */
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
  inFlight: number
  messagesInFlight: number
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
export class Intake {
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
  /** The outcome of the last message. `stored` if it is queued for storing. */
  outcome: number = Outcome.unknown
  /** Whether take() returned false because the token is over its rate. */
  isOverRate = false
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
  readonly #options: IntakeOptions
  readonly #rejects = new RejectSamples()
  readonly #coverageRate = new OrganizationRate(COVERAGE_PER_SECOND_MAX, COVERAGE_ORGANIZATIONS_MAX)

  /** @param bytes the message buffer, with SCRATCH_BYTES of scratch space at the end */
  constructor(bytes: Uint8Array, known: KnownHosts, authenticator: Authenticator, options: IntakeOptions) {
    this.line = new LogLine(bytes)
    this.#known = known
    this.#authenticator = authenticator
    this.#options = options
    this.sources = options.sources ?? new SourceTable()
  }

  /**
   * Processes the message in [start, end), which is not empty and arrived at `line.referenceMs`.
   * Returns false if the token is over its rate or the organization's queue is full. The caller
   * must then pass the same message again.
   */
  take(start: number, end: number, origin: Origin): boolean {
    const { line } = this
    const message = this.#message
    if (origin.token !== undefined) message.expectedToken = origin.token.text
    readSyslog(line.view, start, end, message, line.referenceMs)
    const token = this.#tokenOf(message, origin)
    if (token === undefined) {
      this.#refuse(message, origin)
      this.outcome = Outcome.unauthorized
      return true
    }
    const source = this.#sourceOf(message, token, origin)
    const { tokenRate } = this.#options
    this.isOverRate = tokenRate !== undefined && !tokenRate.take(source.owner.rateHash, line.referenceMs)
    if (this.isOverRate) return false
    line.memory = source.memory
    const msgStart = message.msgStart
    this.#body.own = this.#options.own ?? token.ownFormat
    const verdict = msgStart === end ? Verdict.skip : this.#read(msgStart, end, token.organizationId)
    const format = this.#body.format
    let outcome = OUTCOME_OF_VERDICT[verdict] ?? Outcome.unknown
    const isWanted = verdict === Verdict.event && this.#isWanted(token.organizationId)
    if (verdict === Verdict.event && !isWanted && origin.matched === 'store') {
      this.candidates.note(line, token)
    }
    if (isWanted) {
      outcome = origin.matched === 'repeat' ? Outcome.duplicate : Outcome.stored
      if (origin.matched === 'store') {
        const pending = this.#pendingOf(token.organizationId)
        const queue = line.eventIdStart < 0 ? pending.logs : pending.collected
        if (queue.full) {
          tokenRate?.refund(source.owner.rateHash, line.referenceMs)
          return false
        }
        this.#add(queue, message, token, source)
        this.candidates.noteAi(line, token.organizationId)
      } else if (origin.matched === 'dry') this.matchMs = this.#matchTime(message, token, source)
    }
    source.receive(line.referenceMs)
    this.verdict = verdict
    this.format = format
    this.outcome = outcome
    const place = (format === NO_FORMAT ? FORMATS.length : format) * VERDICTS + verdict
    this.formatCounts[place] = (this.formatCounts[place] ?? 0) + 1
    if (format !== NO_FORMAT) source.formats[format] = (source.formats[format] ?? 0) + 1
    // A stored message is counted when it is on disk.
    if (outcome !== Outcome.stored || origin.matched !== 'store') source.count(outcome, line.referenceMs)
    const isProblem = verdict === Verdict.reject || verdict === Verdict.unknown || verdict === Verdict.ambiguous
    if (isProblem && origin.matched !== 'repeat') this.#rejects.keep(line, source, format, msgStart, end)
    return true
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

  /**
   * Returns the batches that are ready for the writer. `all` includes partly filled ones. The
   * caller reports each durable batch by `settled`.
   */
  takeBatches(all: boolean): OutgoingBatch[] {
    const batches: OutgoingBatch[] = []
    for (const [organizationId, pending] of this.#pending) {
      for (const queue of [pending.logs, pending.collected]) {
        if (queue.empty || (!all && !queue.full) || pending.inFlight >= LOG_BATCHES_IN_FLIGHT_MAX) continue
        pending.inFlight++
        pending.messagesInFlight += queue.messages
        batches.push({ ...queue.take(), organizationId, deduplicate: queue === pending.collected })
      }
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
      for (const place of places.tooLate) note(senders[place], Outcome.tooLate, 1)
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
    if (pending.inFlight === 0 && pending.logs.empty && pending.collected.empty)
      this.#pending.delete(batch.organizationId)
  }

  /** Matched messages that are not known to be on disk. */
  get unsettled(): number {
    let messages = 0
    for (const { logs, collected, messagesInFlight } of this.#pending.values())
      messages += logs.messages + collected.messages + messagesInFlight
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

  /**
   * A collector has matched its events. If the organization's registry lacks the name, they wait
   * for one that has it.
   */
  #isWanted(organizationId: string): boolean {
    const { view, hostStart, hostEnd, eventIdStart } = this.line
    return eventIdStart >= 0 || this.#known.knows(organizationId, view, hostStart, hostEnd)
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

  #read(start: number, end: number, organizationId: string): Verdict {
    const { line } = this
    const verdict = this.#body.read(line, start, end)
    if (verdict === Verdict.skip && line.coverageEnd > 0) return this.#takeCoverage(organizationId)
    // syslogd's summary of repeated messages. RFC 3164 does not define it, but all implementations
    // write it.
    if (verdict === Verdict.unknown && textAt(line.view, start, end, 'last message repeated ')) return Verdict.skip
    return verdict
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
    if (!isCollected) {
      this.#body.takeUserAndBytes(line)
      this.users.count(readUser(line))
    }
    queue.add(
      line.view,
      {
        nameStart: line.hostStart,
        nameEnd: line.hostEnd,
        client: this.client(),
        method: isCollected ? line.method : METHOD_LOG,
        firstMs,
        lastMs,
        count: line.count,
        blocked: isCollected ? line.blockedCount : line.action === Action.blocked ? 1 : 0,
        userStart: line.userStart,
        userEnd: line.userEnd,
        bytesSent: line.bytesSent,
        bytesReceived: line.bytesReceived,
      },
      line.eventIdStart,
      source,
    )
    source.lastSeenMs = line.referenceMs
  }

  /**
   * Returns a time that an event can have, now if there is none. batch-reader.ts corrects times in
   * the future.
   */
  #matchTime(message: SyslogMessage, token: KnownToken, source: Source): number {
    const { line } = this
    if (Number.isNaN(line.timeMs) && line.timeIsUnread) source.timesUnread++
    const timeMs = this.#timeOf(message, token, source)
    return timeMs >= 0 && timeMs <= TIME_MS_MAX ? timeMs : line.referenceMs
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
