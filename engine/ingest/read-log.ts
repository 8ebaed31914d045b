import { statSync } from 'node:fs'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { TextDecoder } from 'node:util'
import { MESSAGE_BYTES_MAX, RETRY_AFTER_SECONDS } from '../limits.ts'
import { type ByteSource, type FileKind, STANDARD_INPUT, withPathOf } from '../process/byte-source.ts'
import { SECOND_MS } from '../process/clock.ts'
import { openDecompressed } from '../process/decompressed-bytes.ts'
import { Fault } from '../process/error-codes.ts'
import type { Store } from '../store/store.ts'
import { type Acceptance, type EventAcceptor, unstoredPlaces } from './accept.ts'
import { BlockOfLines, NO_KEY } from './block-of-lines.ts'
import { LF } from './formats/bytes.ts'
import { NO_FORMAT } from './formats/detect.ts'
import { FORMATS } from './formats/formats.ts'
import { SCRATCH_BYTES, Verdict } from './formats/log-line.ts'
import type { Intake } from './intake.ts'
import { LogRecords } from './log-records.ts'
import type { LineMatch } from './match-tally.ts'
import { Origin } from './origin.ts'
import { Outcome } from './outcome.ts'
import type { KnownToken } from './token-authenticator.ts'

export const LOG_FILE: FileKind = { what: 'log file', unreadable: 'LOG_UNREADABLE', damaged: 'LOG_DAMAGED' }

/**
 * Minimum bytes of a block (store/read-lines.ts). A block ends with a whole message, so it is
 * slightly longer.
 */
export const BLOCK_BYTES = 1024 * 1024
const READ_BYTES = 64 * 1024
/** UTF-16 grows by half when converted to UTF-8. */
const DECODED_BYTES_MAX = READ_BYTES * 2
/**
 * A block, the message across its end, the bytes read after it, and scratch space for names in
 * another form.
 */
export const READ_WORK_BYTES = BLOCK_BYTES + MESSAGE_BYTES_MAX * 2 + DECODED_BYTES_MAX + 1 + SCRATCH_BYTES

/** Messages read before other work of the process gets its turn (progress bar, Ctrl-C). */
const MESSAGES_PER_TURN = 20_000
/** Maximum milliseconds until data from a pipe is stored. */
const PIPE_COMMIT_MS = 1000
/**
 * If a file was modified within this time (milliseconds), a last line without line feed may be
 * incomplete.
 */
const STILL_WRITTEN_MS = 10_000

/** A line that was not understood. */
export interface LineProblem {
  /** From 1. */
  readonly line: number
  /** '' if no format was recognized. */
  readonly format: string
  readonly reason: string
}

/**
 * The result of reading a file. messages = matched + duplicates + tooLate + unmatched + noDomain +
 * skipped + rejected + unknown + ambiguous.
 */
export interface FileReport {
  readonly file: string
  lines: number
  messages: number
  matched: number
  duplicates: number
  tooLate: number
  unmatched: number
  noDomain: number
  skipped: number
  rejected: number
  unknown: number
  ambiguous: number
  /**
   * Of the matched messages: those before the evidence window, which no scan shows, and the time of
   * the newest; NaN without any.
   */
  outsideWindow: number
  newestMs: number
  /** The last line is incomplete and was left for the next run. */
  unfinished: boolean
  /** Messages by recognized format. */
  readonly formats: Record<string, number>
}

export interface ReadLogOptions {
  /** Store nothing. */
  readonly dryRun: boolean
  /** Where the evidence window of the organization begins, in milliseconds since 1970. */
  readonly windowStartMs: number
  /** Called with each message that names a platform, unless it was read before. */
  readonly onMatch?: (match: LineMatch) => void
  readonly onProblem: (problem: LineProblem) => void
  readonly onProgress: (bytesRead: number, bytesTotal: number) => void
  /** Polled. true ends the reading; everything read so far is stored. */
  readonly stopped: () => boolean
  /** Resolves when the reading should end. Needed for an idle pipe. */
  readonly stop: Promise<unknown>
  /** Frees space in a full buffer. */
  readonly freeSpace: () => Promise<unknown>
}

/**
 * Reads a log file of one organization into the buffer. Lines that were read before, from a file
 * with any name, count as duplicates.
 */
export class LogReader {
  readonly #store: Store
  readonly #acceptor: EventAcceptor
  readonly #intake: Intake
  readonly #token: KnownToken
  readonly #options: ReadLogOptions

  /** @param intake with a buffer of READ_WORK_BYTES */
  constructor(store: Store, acceptor: EventAcceptor, intake: Intake, token: KnownToken, options: ReadLogOptions) {
    this.#store = store
    this.#acceptor = acceptor
    this.#intake = intake
    this.#token = token
    this.#options = options
  }

  /**
   * @returns the report, and the fault if reading ended early; everything before the fault is
   *   stored
   * @throws Fault LOG_UNREADABLE
   */
  async read(path: string): Promise<{ report: FileReport; fault: Fault | undefined }> {
    const report = newReport(path)
    const source = await openDecompressed(path, LOG_FILE).catch((error: unknown) => {
      throw withPathOf(LOG_FILE, path, error)
    })
    const lastWritten = lastWrittenMs(path)
    const name = path === STANDARD_INPUT ? 'standard input' : basename(path)
    const file = new OpenFile(source, this.#intake.line.bytes, new Origin('file', name, 0, this.#token), report)
    file.mayGrow = !source.live && Date.now() - lastWritten < STILL_WRITTEN_MS
    this.#intake.line.referenceMs = lastWritten
    try {
      await this.#readAll(file)
    } catch (error) {
      const fault = withPathOf(LOG_FILE, path, error)
      if (!(fault instanceof Fault)) throw fault
      return { report, fault }
    } finally {
      source.close()
    }
    return { report, fault: undefined }
  }

  async #readAll(file: OpenFile): Promise<void> {
    let failure: unknown
    let committedMs = Date.now()
    while (!file.isLast && !this.#options.stopped()) {
      try {
        if (file.source.live) await Promise.race([file.fill(), this.#options.stop])
        else await file.fill()
      } catch (error) {
        // The bytes before the failure are still used.
        failure = error
        file.isLast = true
      }
      if (file.source.live) this.#intake.line.referenceMs = Date.now()
      await this.#takeAll(file)
      const nowMs = Date.now()
      if (file.source.live && nowMs - committedMs >= PIPE_COMMIT_MS) {
        await this.#commit(file)
        committedMs = nowMs
      }
      this.#options.onProgress(file.source.bytesRead, file.source.bytesTotal)
    }
    await this.#commit(file)
    if (failure !== undefined) throw failure
  }

  /** Processes the complete messages in the buffer. */
  async #takeAll(file: OpenFile): Promise<void> {
    const { records } = file
    let messagesInTurn = 0
    while (records.next(file.filled, file.isLast)) {
      if (records.isDiscarding) file.filled = records.place
      file.report.lines = records.lines + (records.isOpen ? 1 : 0)
      if (records.isOpen && file.mayGrow) {
        file.report.unfinished = true
        return
      }
      if (records.start !== records.end) await this.#take(file)
      if (records.place >= BLOCK_BYTES) {
        await this.#commit(file)
        file.nextBlock()
      }
      if (++messagesInTurn < MESSAGES_PER_TURN) continue
      messagesInTurn = 0
      await new Promise((resolve) => setImmediate(resolve))
      if (this.#options.stopped()) return
    }
    if (!records.isOpen) file.report.lines = records.lines
  }

  async #take(file: OpenFile): Promise<void> {
    const { records, block, origin } = file
    const isKnown = block.add(file.bytes, records.start, records.end, this.#store, this.#token.organizationId)
    origin.matched = isKnown ? 'repeat' : this.#options.dryRun ? 'dry' : 'store'
    while (!this.#intake.take(records.start, records.end, origin)) {
      // The current message is not committed: it is retried when there is space.
      await this.#commit(file, block.count - 1)
    }
    this.#count(file, isKnown, records.line)
  }

  #count(file: OpenFile, isKnown: boolean, line: number): void {
    const { report } = file
    const { verdict, format, outcome } = this.#intake
    report.messages++
    if (outcome === Outcome.stored) this.#countMatch(file)
    else if (outcome === Outcome.duplicate) report.duplicates++
    else if (outcome === Outcome.unmatched) report.unmatched++
    else if (outcome === Outcome.noDomain) report.noDomain++
    else if (outcome === Outcome.skipped) report.skipped++
    else if (outcome === Outcome.rejected) report.rejected++
    else if (outcome === Outcome.ambiguous) report.ambiguous++
    else if (outcome === Outcome.unauthorized)
      throw new Fault('NOT_FOUND', 'the token was revoked while the file was read')
    else report.unknown++
    const id = format === NO_FORMAT ? '' : (FORMATS[format]?.id ?? '')
    if (id !== '') report.formats[id] = (report.formats[id] ?? 0) + 1
    const isProblem = verdict === Verdict.reject || verdict === Verdict.unknown || verdict === Verdict.ambiguous
    if (isKnown || !isProblem) return
    const { reason } = this.#intake.line
    this.#options.onProblem({ line, format: id, reason: reason === '' ? 'no format recognized' : reason })
  }

  #countMatch({ report, collected }: OpenFile): void {
    // As the writer stores one that is still to come.
    const matchMs = Math.min(this.#intake.matchMs, Date.now())
    report.matched++
    if (!(report.newestMs >= matchMs)) report.newestMs = matchMs
    const isOutside = matchMs < this.#options.windowStartMs
    if (isOutside) report.outsideWindow++
    if (this.#intake.line.eventIdStart >= 0 && !this.#options.dryRun) collected.push(isOutside)
    this.#options.onMatch?.({ ...this.#intake.match(), timeMs: matchMs })
  }

  /**
   * Stores the pending events and the hashes of the first `count` messages of the block in one
   * transaction.
   */
  async #commit({ block, report, collected }: OpenFile, count = block.count): Promise<void> {
    if (this.#options.dryRun) return
    // Batches of collectors' events come first. If a later batch fails, their ids still identify
    // them as duplicates.
    const batches = this.#intake.takeBatches(true).sort((a, b) => Number(b.deduplicate) - Number(a.deduplicate))
    for (const batch of batches) {
      const { organizationId, bytes, deduplicate } = batch
      const alongside = (): void => block.remember(this.#store, organizationId, count)
      const options = deduplicate ? { deduplicate } : { deduplicate, alongside }
      for (let attempt = 1; ; attempt++) {
        const outcome = await this.#acceptor.acceptPacked(organizationId, bytes, options)
        if (outcome.kind === 'stored') {
          const rejected = outcome.rejected.length
          const places = unstoredPlaces(outcome)
          this.#intake.settled(batch, places)
          if (deduplicate) {
            const isOutside = collected.splice(0, batch.senders.length)
            const unstored = [...places.duplicates, ...places.tooLate, ...places.rejected]
            report.outsideWindow -= unstored.filter((place) => isOutside[place] === true).length
          }
          // Duplicates among collectors' events are known only now.
          report.matched -= outcome.duplicates + outcome.tooLate + rejected
          report.duplicates += outcome.duplicates
          report.tooLate += outcome.tooLate
          report.rejected += rejected
          break
        }
        if (outcome.kind === 'malformed') throw new Error(`internal error: malformed batch: ${outcome.why}`)
        const fault = this.#finalFault(outcome)
        if (fault !== undefined) {
          for (const messages of batch.messages.values()) report.matched -= messages
          throw fault
        }
        await this.#options.freeSpace()
        // From the second attempt on, freeing space did not help.
        if (attempt > 1) await this.#pause(RETRY_AFTER_SECONDS * SECOND_MS)
      }
    }
  }

  /** Why a batch that was not stored is not tried again; undefined if it is. */
  #finalFault(outcome: Exclude<Acceptance, { kind: 'stored' }>): Fault | undefined {
    if (outcome.kind === 'removed') {
      return new Fault('NOT_FOUND', 'the organization was removed while the file was read')
    }
    const { why } = outcome
    if (this.#store.environment.full) {
      return new Fault('STORE_FULL', `${why}; everything read before is stored. Run the command again later`)
    }
    if (!this.#options.stopped()) return undefined
    return new Fault('STORE_UNWRITABLE', `${why}; stopped, and everything read before is stored. Run the command again`)
  }

  /** Ends early when the reading should end. */
  async #pause(ms: number): Promise<void> {
    const over = new AbortController()
    await Promise.race([sleep(ms, undefined, { signal: over.signal }).catch(() => {}), this.#options.stop])
    over.abort()
  }
}

/** A file and the read position in it. The buffer begins with a block. */
class OpenFile {
  readonly source: ByteSource
  readonly bytes: Uint8Array
  readonly origin: Origin
  readonly report: FileReport
  readonly records: LogRecords
  /** Of each event of a collector that is not stored yet: whether it is before the window. */
  readonly collected: boolean[] = []
  block: BlockOfLines
  filled = 0
  /** The end of the file was reached. */
  isLast = false
  /** Another program may still write to the file. */
  mayGrow = false
  #decoder: TextDecoder | undefined
  #hasStarted = false
  readonly #chunk = Buffer.allocUnsafe(READ_BYTES)

  constructor(source: ByteSource, bytes: Uint8Array, origin: Origin, report: FileReport) {
    this.source = source
    this.bytes = bytes
    this.origin = origin
    this.report = report
    this.records = new LogRecords(bytes, MESSAGE_BYTES_MAX)
    this.block = new BlockOfLines(NO_KEY)
  }

  /** Reads the next bytes. Passes on read errors. */
  async fill(): Promise<void> {
    const got = await this.source.read(this.#chunk, 0, READ_BYTES)
    if (got === 0) {
      this.isLast = true
      return
    }
    let bytes: Uint8Array = this.#chunk.subarray(0, got)
    if (!this.#hasStarted) bytes = this.#withoutMark(this.#chunk.subarray(0, got))
    this.#hasStarted = true
    if (this.#decoder !== undefined) bytes = Buffer.from(this.#decoder.decode(bytes, { stream: true }))
    // Block boundaries must not depend on the sizes of reads, so only the line end of a truncated
    // line's remainder is kept.
    if (this.records.isDiscarding) {
      const lineFeed = bytes.indexOf(LF)
      if (lineFeed < 0) return
      bytes = bytes.subarray(lineFeed)
    }
    this.bytes.set(bytes, this.filled)
    this.filled += bytes.length
    // An old byte here must not look like a line end.
    this.bytes[this.filled] = 0
  }

  /** Begins the next block. */
  nextBlock(): void {
    const { records } = this
    this.block = new BlockOfLines(this.block.key(this.bytes.subarray(0, records.place)))
    this.bytes.copyWithin(0, records.place, this.filled)
    this.filled -= records.place
    records.moved()
  }

  /**
   * Removes a byte order mark: PowerShell writes UTF-16, some programs put a UTF-8 mark before CSV.
   */
  #withoutMark(bytes: Buffer): Buffer {
    if (bytes[0] === 0xff && bytes[1] === 0xfe) this.#decoder = new TextDecoder('utf-16le')
    if (bytes[0] === 0xfe && bytes[1] === 0xff) this.#decoder = new TextDecoder('utf-16be')
    if (this.#decoder !== undefined) return bytes.subarray(2)
    return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes
  }
}

/** The reference for times without a year: when the file was last modified. */
function lastWrittenMs(path: string): number {
  if (path === STANDARD_INPUT) return Date.now()
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat?.isFile() === true ? Math.floor(stat.mtimeMs) : Date.now()
}

function newReport(file: string): FileReport {
  return {
    file,
    lines: 0,
    messages: 0,
    matched: 0,
    duplicates: 0,
    tooLate: 0,
    unmatched: 0,
    noDomain: 0,
    skipped: 0,
    rejected: 0,
    unknown: 0,
    ambiguous: 0,
    outsideWindow: 0,
    newestMs: Number.NaN,
    unfinished: false,
    formats: {},
  }
}
