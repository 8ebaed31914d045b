import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import { basename } from 'node:path'
import { MESSAGE_BYTES_MAX } from '../limits.ts'
import { type FileKind, STANDARD_INPUT, withPathOf } from '../process/byte-source.ts'
import { Fault } from '../process/error-codes.ts'
import { openUnpacked } from '../process/unpacked-bytes.ts'
import type { ReadPrefix } from '../store/read-prefixes.ts'
import type { Store } from '../store/store.ts'
import type { EventAcceptor } from './accept.ts'
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  CR,
  LF,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SEMICOLON,
  SPACE,
  TAB,
} from './formats/bytes.ts'
import { NO_FORMAT } from './formats/detect.ts'
import { FORMATS } from './formats/formats.ts'
import { SCRATCH_BYTES, Verdict } from './formats/log-line.ts'
import { type Intake, Origin } from './intake.ts'
import { blockBytesMax, LogBlocks } from './log-lines.ts'
import { Outcome } from './outcome.ts'
import type { KnownToken } from './token-door.ts'

export const LOG_FILE: FileKind = { what: 'log file', unreadable: 'LOG_UNREADABLE', damaged: 'LOG_DAMAGED' }

/** Room for a block, whose last line may be long, and for names in another form. */
export const READ_WORK_BYTES = blockBytesMax(MESSAGE_BYTES_MAX) + 1 + SCRATCH_BYTES

/** A record may go on over this many lines: a quoted CSV field with line feeds, or JSON that is printed for people. */
const CSV_LINES_MAX = 8
const JSON_LINES_MAX = 1000
const HASH_BYTES = 16
/** Other work of the process (a progress bar, Ctrl-C) has its turn after so many lines. */
const LINES_PER_TURN = 20_000

/** A line that was not understood. */
export interface LineTrouble {
  /** From 1. */
  readonly line: number
  /** '' where none was recognised. */
  readonly format: string
  readonly reason: string
}

/** What was read of one file. messages = matched + duplicates + unmatched + noDomain + skipped + rejected + unknown. */
export interface FileReport {
  readonly file: string
  lines: number
  messages: number
  matched: number
  duplicates: number
  unmatched: number
  noDomain: number
  skipped: number
  rejected: number
  unknown: number
  /** Messages by recognised format. */
  readonly formats: Record<string, number>
}

export interface ReadLogOptions {
  /** Stores nothing. */
  readonly dryRun: boolean
  readonly onTrouble: (trouble: LineTrouble) => void
  readonly onProgress: (bytesRead: number, bytesTotal: number) => void
  /** Asked now and then whether to end early; what was read until then is stored. */
  readonly stopped: () => boolean
  /** Makes room in a full buffer. */
  readonly fold: () => void
}

/** Reads a log file of one organization's device into the buffer. What was read of it before, under any name, counts as duplicates. */
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
   * @returns the report, and the fault that ended the reading early, if one did: what came before it is stored.
   * @throws Fault LOG_UNREADABLE, STORE_FULL.
   */
  async read(path: string): Promise<{ report: FileReport; fault: Fault | undefined }> {
    const report = newReport(path)
    const source = await openUnpacked(path, LOG_FILE).catch((error: unknown) => {
      throw withPathOf(LOG_FILE, path, error)
    })
    const origin = new Origin('file', path === STANDARD_INPUT ? 'standard input' : basename(path), 0, this.#token)
    this.#intake.line.referenceMs = lastWrittenMs(path)
    const blocks = new LogBlocks(source, MESSAGE_BYTES_MAX)
    let before: Buffer = Buffer.alloc(HASH_BYTES)
    try {
      for (;;) {
        const block = await blocks.next()
        if (block === undefined || this.#options.stopped()) break
        await this.#readBlock(block.bytes, block.firstLine, before, origin, report)
        before = createHash('sha256').update(before).update(block.bytes).digest().subarray(0, HASH_BYTES)
        this.#options.onProgress(source.bytesRead, source.bytesTotal)
      }
    } catch (error) {
      const fault = withPathOf(LOG_FILE, path, error)
      if (!(fault instanceof Fault) || fault.code === 'STORE_FULL') throw fault
      return { report, fault }
    } finally {
      source.close()
    }
    return { report, fault: undefined }
  }

  async #readBlock(
    block: Buffer,
    firstLine: number,
    before: Buffer,
    origin: Origin,
    report: FileReport,
  ): Promise<void> {
    const { bytes } = this.#intake.line
    bytes.set(block)
    bytes[block.length] = LF
    const progress = new BlockProgress(block, before, this.#knownPrefix(block, before))
    const records = new Records(bytes, block.length, firstLine)
    let sinceTurn = 0
    while (records.next()) {
      if (++sinceTurn === LINES_PER_TURN) {
        sinceTurn = 0
        await new Promise((resolve) => setImmediate(resolve))
        if (this.#options.stopped()) break
      }
      report.lines = records.line + records.lines - 1
      if (records.start === records.end) continue
      const isRepeated = records.end <= progress.known
      origin.matched = isRepeated ? 'repeat' : this.#options.dryRun ? 'dry' : 'store'
      while (!this.#intake.take(records.start, records.end, origin)) await this.#commit(progress, records.start)
      this.#count(report, isRepeated, records.line)
    }
    report.lines = records.line + records.lines - 1
    if (!this.#options.dryRun) await this.#commit(progress, records.place)
  }

  /** Of what was read of this block before, the most that it begins with. */
  #knownPrefix(block: Buffer, before: Buffer): ReadPrefix | undefined {
    return this.#store.readPrefixes
      .of(this.#token.organizationId, before)
      .find(({ bytes, sha256 }) => bytes <= block.length && sha256 === sha256Of(block.subarray(0, bytes)))
  }

  #count(report: FileReport, isRepeated: boolean, line: number): void {
    const { verdict, format, outcome } = this.#intake
    report.messages++
    if (outcome === Outcome.stored) report.matched++
    else if (outcome === Outcome.duplicate) report.duplicates++
    else if (outcome === Outcome.unmatched) report.unmatched++
    else if (outcome === Outcome.noDomain) report.noDomain++
    else if (outcome === Outcome.skipped) report.skipped++
    else if (outcome === Outcome.rejected) report.rejected++
    else if (outcome === Outcome.unauthorised) throw new Fault('NOT_FOUND', 'the token was revoked meanwhile')
    else report.unknown++
    const id = format === NO_FORMAT ? '' : (FORMATS[format]?.id ?? '')
    if (id !== '') report.formats[id] = (report.formats[id] ?? 0) + 1
    if (isRepeated || (verdict !== Verdict.reject && verdict !== Verdict.unknown)) return
    const { reason } = this.#intake.line
    this.#options.onTrouble({ line, format: id, reason: reason === '' ? 'no format recognised' : reason })
  }

  /** Stores what waits, and that the block was read up to `place`: both or neither. */
  async #commit(progress: BlockProgress, place: number): Promise<void> {
    // Collectors' events first: they are known by their ids, should what follows not come to pass.
    const batches = this.#intake.takeBatches(true).sort((a, b) => Number(b.deduplicate) - Number(a.deduplicate))
    for (const batch of batches) {
      const alongside = batch.deduplicate ? undefined : () => this.#remember(progress, place)
      for (;;) {
        const outcome = await this.#acceptor.acceptPacked(batch.organizationId, batch.bytes, {
          deduplicate: batch.deduplicate,
          ...(alongside === undefined ? {} : { alongside }),
        })
        if (outcome.kind === 'stored') {
          this.#intake.settled(batch, outcome.duplicates, outcome.rejected.length)
          break
        }
        if (outcome.kind === 'malformed') throw new Error(`a batch of our own cannot be read: ${outcome.why}`)
        if (this.#store.environment.full)
          throw new Fault('STORE_FULL', `${outcome.why}; what was read is stored, go on later`)
        this.#options.fold()
      }
    }
  }

  /** Inside the transaction that stores the events. */
  #remember(progress: BlockProgress, place: number): void {
    const prefix = progress.prefixTo(place)
    const { organizationId } = this.#token
    this.#store.readPrefixes.put(organizationId, progress.before, prefix, progress.remembered, Date.now())
    progress.remembered = prefix
  }
}

/** How far a block was read, before and now. */
class BlockProgress {
  readonly before: Buffer
  /** Lines that end before this were read before. */
  readonly known: number
  /** What is stored of it. */
  remembered: ReadPrefix | undefined
  readonly #block: Buffer

  constructor(block: Buffer, before: Buffer, known: ReadPrefix | undefined) {
    this.#block = block
    this.before = before
    this.known = known?.bytes ?? 0
    this.remembered = known
  }

  prefixTo(place: number): ReadPrefix {
    const bytes = Math.max(place, this.known)
    return { bytes, sha256: sha256Of(this.#block.subarray(0, bytes)) }
  }
}

/** Walks the records of a block: lines, and what goes on over several. */
class Records {
  /** Of the record at hand, without the CR and LF behind it. */
  start = 0
  end = 0
  /** Number of its first line, from 1, and how many it has. */
  line: number
  lines = 0
  /** Where the next record begins. */
  place = 0
  readonly #bytes: Uint8Array
  readonly #size: number
  #nextQuote = -1

  constructor(bytes: Uint8Array, size: number, firstLine: number) {
    this.#bytes = bytes
    this.#size = size
    this.line = firstLine
  }

  next(): boolean {
    if (this.place >= this.#size) return false
    this.line += this.lines
    this.start = this.place
    let lineEnd = this.#lineEnd(this.start)
    this.lines = 1
    const first = this.#bytes[this.start]
    if (first === OPEN_BRACE) lineEnd = this.#jsonEnd(lineEnd)
    else if (this.#hasOpenQuote(lineEnd)) lineEnd = this.#quotedEnd(lineEnd)
    this.place = Math.min(lineEnd + 1, this.#size)
    let end = Math.min(lineEnd, this.start + MESSAGE_BYTES_MAX)
    while (end > this.start && isTrailer(this.#bytes[end - 1] ?? 0)) end--
    // An object of an array that stands on lines of its own.
    if (first === OPEN_BRACE && this.#bytes[end - 1] === COMMA) end--
    // The array itself is no message.
    if (end - this.start === 1 && (first === OPEN_BRACKET || first === CLOSE_BRACKET)) end = this.start
    this.end = end
    return true
  }

  #lineEnd(at: number): number {
    return Math.min(this.#bytes.indexOf(LF, at), this.#size)
  }

  /** The end of the line with the brace that closes the object; the end of the first line where none does. */
  #jsonEnd(firstEnd: number): number {
    let depth = 0
    let inString = false
    let lines = 1
    const limit = Math.min(this.#size, this.start + MESSAGE_BYTES_MAX)
    for (let at = this.start; at < limit; at++) {
      const byte = this.#bytes[at]
      if (inString) {
        if (byte === BACKSLASH) at++
        else if (byte === QUOTE) inString = false
      } else if (byte === QUOTE) inString = true
      else if (byte === OPEN_BRACE) depth++
      else if (byte === CLOSE_BRACE && --depth === 0) {
        if (lines > 1) this.lines = lines
        return lines === 1 ? firstEnd : this.#lineEnd(at)
      } else if (byte === LF && ++lines > JSON_LINES_MAX) break
    }
    return firstEnd
  }

  /** Whether the line has an odd number of quotes, of which one begins a field. */
  #hasOpenQuote(lineEnd: number): boolean {
    if (this.#nextQuote < this.start) {
      const found = this.#bytes.indexOf(QUOTE, this.start)
      this.#nextQuote = found < 0 ? this.#size : found
    }
    if (this.#nextQuote >= lineEnd) return false
    let quotes = 0
    let beginsField = false
    for (let at = this.start; at < lineEnd; at++) {
      if (this.#bytes[at] !== QUOTE) continue
      quotes++
      const before = at === this.start ? COMMA : this.#bytes[at - 1]
      if (before === COMMA || before === SEMICOLON || before === TAB) beginsField = true
    }
    return beginsField && quotes % 2 === 1
  }

  /** The end of the line that closes the quote, if one of the next few does. */
  #quotedEnd(firstEnd: number): number {
    let end = firstEnd
    for (let lines = 2; lines <= CSV_LINES_MAX && end < this.#size; lines++) {
      const lineStart = end + 1
      end = this.#lineEnd(lineStart)
      if (end - this.start > MESSAGE_BYTES_MAX) break
      let quotes = 0
      for (let at = lineStart; at < end; at++) if (this.#bytes[at] === QUOTE) quotes++
      if (quotes % 2 === 0) continue
      this.lines = lines
      return end
    }
    return firstEnd
  }
}

function isTrailer(byte: number): boolean {
  return byte === CR || byte === LF || byte === 0 || byte === SPACE
}

function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Times without a year are near to when the file was last written. */
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
    unmatched: 0,
    noDomain: 0,
    skipped: 0,
    rejected: 0,
    unknown: 0,
    formats: {},
  }
}
