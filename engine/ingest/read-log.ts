import { statSync } from 'node:fs'
import { basename } from 'node:path'
import { TextDecoder } from 'node:util'
import { LF } from '../formats/bytes.ts'
import { FORMATS, NO_FORMAT } from '../formats/formats.ts'
import { SCRATCH_BYTES, Verdict } from '../formats/log-line.ts'
import { NO_CLIENT } from '../kernel/event/client.ts'
import type { LineMatch } from '../kernel/event/match-tally.ts'
import { type ByteSource, type FileKind, openBytes, STANDARD_INPUT, withPathOf } from '../kernel/process/byte-source.ts'
import { decompressedIfNeeded, otherFormat } from '../kernel/process/decompressed-bytes.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { MESSAGE_BYTES_MAX } from '../limits.ts'
import type { OutcomeName } from '../store/outcomes.ts'
import { BlockOfLines, type KnownLines, NO_KEY } from './block-of-lines.ts'
import { LogRecords } from './log-records.ts'
import { isTaken, type MessagePipeline } from './message-pipeline.ts'
import { Origin } from './origin.ts'
import { redact, SAMPLE_CHARS_MAX } from './redact.ts'
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

/** What was understood of a message. */
export interface LineReading {
  /** From 1: the first line of the message. */
  readonly line: number
  readonly verdict: Verdict
  /** '' if no format was recognized. */
  readonly format: string
  /** NaN if neither the message nor its header has a time. */
  readonly timeMs: number
  /** NO_CLIENT where none is known. */
  readonly client: string
  /** In any case; '' unless the message is an event. */
  readonly host: string
  /** '' unless the message was rejected or is ambiguous. */
  readonly reason: string
}

/**
 * The result of reading a file. messages = matched + duplicates + outsideDedupWindow + unmatched +
 * noDomain + skipped + rejected + unknown + ambiguous.
 */
export interface FileReport {
  readonly file: string
  lines: number
  messages: number
  matched: number
  duplicates: number
  outsideDedupWindow: number
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
  /** Messages above 64 KiB, of which only the beginning was read. */
  truncated: number
  /** The last line is incomplete and was left for the next run. */
  unfinished: boolean
  /** Messages by recognized format. */
  readonly formats: Record<string, number>
}

export interface ReadLogOptions {
  /** Where the evidence window of the organization begins, in milliseconds since 1970. */
  readonly windowStartMs: number
  /** Called with each message that names a platform, unless it was read before. */
  readonly onMatch?: (match: LineMatch) => void
  /** The same for each message that names a host of no platform. */
  readonly onUnmatched?: (match: LineMatch) => void
  /** Called with each message. Slow: it creates strings. */
  readonly onLine?: (line: LineReading) => void
  /** `sample` returns the beginning of the message, redacted. Slow. */
  readonly onProblem: (problem: LineProblem, sample: () => string) => void
  readonly onProgress: (bytesRead: number, bytesTotal: number) => void
  /** Polled. true ends the reading; everything read so far is stored. */
  readonly stopped: () => boolean
  /** Resolves when the reading should end. Needed for an idle pipe. */
  readonly stop: Promise<unknown>
}

/** Of a log file that is read. */
export interface LogOrigin {
  /** For the report and errors. */
  readonly path: string
  /** The name of the source of its messages. */
  readonly name: string
  /** The reference for times without a year. */
  readonly lastWrittenMs: number
  /** Nobody writes it any more, so its last line is complete without a line feed. */
  readonly isComplete?: boolean
}

/** A log file that is open, and perhaps compressed. */
export interface OpenedLog extends LogOrigin {
  readonly source: ByteSource
}

/** @throws Fault LOG_UNREADABLE */
export function openLog(path: string): OpenedLog {
  const name = path === STANDARD_INPUT ? 'standard input' : basename(path)
  try {
    return { path, name, source: openBytes(path, LOG_FILE), lastWrittenMs: lastWrittenMs(path) }
  } catch (error) {
    throw withPathOf(LOG_FILE, path, error)
  }
}

export interface LogReading {
  readonly report: FileReport
  /** Why reading ended early. */
  readonly fault: Fault | undefined
}

/** Where the matches of a file are stored. */
export interface LogStorage {
  /** Stores the pending events, and that the first `count` messages of the block were read. */
  commit(file: OpenFile, count: number): Promise<void>
}

/**
 * Reads a log file of one organization. Lines that were read before, from a file with any name,
 * count as duplicates.
 */
export class LogReader {
  readonly #known: KnownLines
  readonly #storage: LogStorage | undefined
  readonly #pipeline: MessagePipeline
  readonly #token: KnownToken
  readonly #options: ReadLogOptions

  /**
   * @param storage undefined for a dry run, which stores nothing
   * @param pipeline with a buffer of READ_WORK_BYTES
   */
  constructor(
    known: KnownLines,
    storage: LogStorage | undefined,
    pipeline: MessagePipeline,
    token: KnownToken,
    options: ReadLogOptions,
  ) {
    this.#known = known
    this.#storage = storage
    this.#pipeline = pipeline
    this.#token = token
    this.#options = options
  }

  /** Everything before a fault is stored. @throws Fault LOG_UNREADABLE */
  async read({ source: opened, ...origin }: OpenedLog): Promise<LogReading> {
    const { source } = await decompressedIfNeeded(opened, LOG_FILE).catch((error: unknown) => {
      opened.close()
      throw withPathOf(LOG_FILE, origin.path, error)
    })
    return this.readFrom(source, origin)
  }

  /** Same, from a source of decompressed bytes, which is closed at the end. */
  async readFrom(
    source: ByteSource,
    { path, name, lastWrittenMs, isComplete = false }: LogOrigin,
  ): Promise<LogReading> {
    const report = newReport(path)
    const file = new OpenFile(source, this.#pipeline.line.bytes, new Origin('file', name, 0, this.#token), report)
    file.mayGrow = !isComplete && !source.live && Date.now() - lastWrittenMs < STILL_WRITTEN_MS
    this.#pipeline.line.referenceMs = lastWrittenMs
    try {
      await this.#readAll(file)
      if (!this.#options.stopped()) checkUnderstood(file)
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
        file.mayGrow = true
      }
      if (file.source.live) this.#pipeline.line.referenceMs = Date.now()
      await this.#takeAll(file)
      const nowMs = Date.now()
      if (file.source.live && nowMs - committedMs >= PIPE_COMMIT_MS) {
        await this.#storage?.commit(file, file.block.count)
        committedMs = nowMs
      }
      this.#options.onProgress(file.source.bytesRead, file.source.bytesTotal)
    }
    await this.#storage?.commit(file, file.block.count)
    if (failure !== undefined) throw failure
  }

  /** Processes the complete messages in the buffer. */
  async #takeAll(file: OpenFile): Promise<void> {
    const { records } = file
    let messagesInTurn = 0
    while (records.next(file.filled, file.isLast)) {
      if (records.isDiscarding) file.filled = records.place
      file.report.lines = records.lines + (records.isOpen ? 1 : 0)
      file.report.truncated = records.truncated
      if (records.isOpen && file.mayGrow) {
        file.report.unfinished = true
        return
      }
      if (records.start !== records.end) await this.#take(file)
      if (records.place >= BLOCK_BYTES) {
        await this.#storage?.commit(file, file.block.count)
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
    const isKnown = block.add(file.bytes, records.start, records.end, this.#known, this.#token.organizationId)
    origin.matched = isKnown ? 'repeat' : this.#storage === undefined ? 'dry' : 'store'
    let taken = this.#pipeline.take(records.start, records.end, origin)
    while (!isTaken(taken)) {
      // The current message is not committed: it is retried when there is space.
      await this.#storage?.commit(file, block.count - 1)
      taken = this.#pipeline.take(records.start, records.end, origin)
    }
    this.#count(file, taken, isKnown, records.line)
  }

  #count(file: OpenFile, taken: OutcomeName, isKnown: boolean, line: number): void {
    const { report } = file
    const { verdict, format } = this.#pipeline
    report.messages++
    if (taken === 'stored') this.#countMatch(file)
    else if (taken === 'duplicate') report.duplicates++
    else if (taken === 'unmatched') this.#countUnmatched(report, isKnown)
    else if (taken === 'unauthorized') throw new Fault('NOT_FOUND', 'the token was revoked while the file was read')
    else report[taken]++
    const id = format === NO_FORMAT ? '' : (FORMATS[format]?.id ?? '')
    if (id !== '') report.formats[id] = (report.formats[id] ?? 0) + 1
    this.#options.onLine?.(this.#readingOf(file, line, id))
    const isProblem = verdict === Verdict.reject || verdict === Verdict.unknown || verdict === Verdict.ambiguous
    if (isKnown || !isProblem) return
    const { reason } = this.#pipeline.line
    const problem = { line, format: id, reason: reason === '' ? 'no format recognized' : reason }
    if (id !== '') file.closest ??= problem
    const { start, end } = file.records
    this.#options.onProblem(problem, () =>
      redact(this.#pipeline.line.text(start, Math.min(end, start + SAMPLE_CHARS_MAX * 2))),
    )
  }

  #readingOf({ origin }: OpenFile, line: number, format: string): LineReading {
    const { verdict } = this.#pipeline
    const { hostStart, hostEnd, reason } = this.#pipeline.line
    const isEvent = verdict === Verdict.event
    const namesClient = isEvent || verdict === Verdict.noDomain
    return {
      ...{ line, verdict, format, reason },
      timeMs: this.#pipeline.sentMs(origin),
      client: namesClient ? this.#pipeline.client() : NO_CLIENT,
      host: isEvent ? this.#pipeline.line.text(hostStart, hostEnd) : '',
    }
  }

  #countUnmatched(report: FileReport, isKnown: boolean): void {
    report.unmatched++
    if (!isKnown) this.#options.onUnmatched?.(this.#pipeline.match())
  }

  #countMatch({ report, collected }: OpenFile): void {
    // As the writer stores one that is still to come.
    const matchMs = Math.min(this.#pipeline.matchMs, Date.now())
    report.matched++
    if (!(report.newestMs >= matchMs)) report.newestMs = matchMs
    const isOutside = matchMs < this.#options.windowStartMs
    if (isOutside) report.outsideWindow++
    if (this.#pipeline.line.eventIdStart >= 0 && this.#storage !== undefined) collected.push(isOutside)
    this.#options.onMatch?.({ ...this.#pipeline.match(), timeMs: matchMs })
  }
}

/** A file and the read position in it. The buffer begins with a block. */
export class OpenFile {
  readonly source: ByteSource
  readonly bytes: Uint8Array
  readonly origin: Origin
  readonly report: FileReport
  readonly records: LogRecords
  /** Of each event of a collector that is not stored yet: whether it is before the window. */
  readonly collected: boolean[] = []
  /** The first message of a known format that was rejected or is ambiguous. */
  closest: LineProblem | undefined
  /** The first bytes show a format that is not read. */
  readonly head = new Uint8Array(HEAD_BYTES)
  block: BlockOfLines
  filled = 0
  /** The end of the file was reached. */
  isLast = false
  /** Another program may still write to the file, or its end is damaged. */
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
    let got = await this.source.read(this.#chunk, 0, READ_BYTES)
    // The first bytes show the encoding.
    while (!this.#hasStarted && got > 0 && got < 2 * WIDE_CHARS) {
      const more = await this.source.read(this.#chunk, got, READ_BYTES - got)
      if (more === 0) break
      got += more
    }
    if (got === 0) {
      this.isLast = true
      return
    }
    if (!this.#hasStarted) this.head.set(this.#chunk.subarray(0, Math.min(got, HEAD_BYTES)))
    let bytes: Uint8Array = this.#chunk.subarray(0, got)
    if (!this.#hasStarted) bytes = this.#withoutMark(this.#chunk.subarray(0, got))
    this.#hasStarted = true
    const wide = this.#decoder === undefined ? this.#wideStart(bytes) : 0
    if (this.#decoder !== undefined) {
      const decoded = Buffer.from(this.#decoder.decode(bytes.subarray(wide), { stream: true }))
      bytes = wide === 0 ? decoded : Buffer.concat([bytes.subarray(0, wide), decoded])
    }
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

  /**
   * The offset of the first line in UTF-16 without a mark, as PowerShell appends lines to a file of
   * another encoding. The rest of the file is read as UTF-16, whose line feeds are two bytes.
   */
  #wideStart(bytes: Uint8Array): number {
    if (!bytes.includes(0)) return 0
    for (let at = 0; at >= 0 && at < bytes.length; at = bytes.indexOf(LF, at) + 1 || bytes.length) {
      const order = at === 0 && this.filled > 0 ? '' : wideOrder(bytes, at)
      if (order === '') continue
      this.#decoder = new TextDecoder(order)
      return at
    }
    return 0
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

/** @throws Fault LOG_FORMAT if no message was understood, with the next step */
function checkUnderstood({ report, head, closest }: OpenFile): void {
  const { messages, rejected, unknown } = report
  if (rejected + unknown < messages) return
  const other = otherFormat(head)
  if (other !== undefined) throw new Fault('LOG_FORMAT', `looks like ${other.format}: ${other.remedy}`)
  if (messages === 0) return
  const near = closest === undefined ? '' : `; line ${closest.line} is similar to ${closest.format}: ${closest.reason}`
  throw new Fault(
    'LOG_FORMAT',
    `no message is in a known format${near}; to read a custom format, write a rule and use it with --rule`,
  )
}

const WIDE_CHARS = 8
const HEAD_BYTES = 4

/** The encoding of a line whose first characters are ASCII in UTF-16, or ''. */
function wideOrder(bytes: Uint8Array, at: number): '' | 'utf-16le' | 'utf-16be' {
  if (bytes.length < at + 2 * WIDE_CHARS) return ''
  const first = bytes[at] === 0 ? 1 : 0
  for (let pair = at; pair < at + 2 * WIDE_CHARS; pair += 2) {
    const character = bytes[pair + first] ?? 0
    if (character === 0 || character >= 0x80 || bytes[pair + 1 - first] !== 0) return ''
  }
  return first === 0 ? 'utf-16le' : 'utf-16be'
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
    outsideDedupWindow: 0,
    unmatched: 0,
    noDomain: 0,
    skipped: 0,
    rejected: 0,
    unknown: 0,
    ambiguous: 0,
    outsideWindow: 0,
    newestMs: Number.NaN,
    truncated: 0,
    unfinished: false,
    formats: {},
  }
}
