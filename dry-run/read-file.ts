import { isIP } from 'node:net'
import { isCapture } from '../collector/capture/capture-file.ts'
import { coverageOf } from '../collector/coverage.ts'
import { observeInline } from '../collector/pipeline/observe-inline.ts'
import { MessagePipeline } from '../engine/ingest/message-pipeline.ts'
import { type LineProblem, LOG_FILE, LogReader, READ_WORK_BYTES } from '../engine/ingest/read-log.ts'
import { KnownToken } from '../engine/ingest/token-authenticator.ts'
import { type LineMatch, MatchTally } from '../engine/kernel/event/match-tally.ts'
import { type ByteSource, WithHead, WrappedBytes } from '../engine/kernel/process/byte-source.ts'
import { decompressedIfNeeded, otherFormat, readHead } from '../engine/kernel/process/decompressed-bytes.ts'
import { Fault } from '../engine/kernel/process/error-codes.ts'
import { NO_ORGANIZATION } from '../engine/store/sources.ts'
import type { Matcher } from '../registry/match.ts'
import {
  DECOMPRESSED_BYTES_MAX,
  PLATFORM_NAMES_LISTED_MAX,
  PLATFORM_NAMES_MAX,
  PLATFORMS_LISTED_MAX,
  PROBLEMS_LISTED_MAX,
  PROBLEMS_MAX,
  READ_CPU_MS_MAX,
  UNMATCHED_LISTED_MAX,
  UNMATCHED_NAMES_MAX,
} from './limits.ts'
import {
  type CaptureReport,
  type FileReport,
  type LogReport,
  TRIED_OUTCOMES,
  type TriedOutcome,
  type TriedPlatform,
  type TriedProblem,
} from './report.ts'

/** The part of a report that captures and logs share. */
type Found = Pick<Exclude<FileReport, { kind: 'refused' }>, 'platforms' | 'platformsTotal' | 'unmatchedNames'>

/** Adds up the names of a file: by platform, and those of no platform by frequency. */
class FileTally {
  readonly #matcher: Matcher
  readonly #matches: MatchTally
  readonly #names = new Map<string, NameCounts>()
  readonly #unmatched = new NameCounts(UNMATCHED_NAMES_MAX)

  constructor(matcher: Matcher) {
    this.#matcher = matcher
    this.#matches = new MatchTally(matcher)
  }

  /** Returns whether the name belongs to a platform. */
  add(match: LineMatch): boolean {
    const name = match.name.toLowerCase()
    const rule = this.#matcher.match(name)
    const platform = rule && this.#matcher.platform(rule.platform.id)
    if (platform === undefined) {
      this.addUnmatched(match)
      return false
    }
    this.#matches.add(match)
    let names = this.#names.get(platform.id)
    if (names === undefined) {
      names = new NameCounts(PLATFORM_NAMES_MAX)
      this.#names.set(platform.id, names)
    }
    names.add(name, match.count)
    return true
  }

  /** Addresses and names of reverse lookups are not counted: no platform could have them. */
  addUnmatched({ name, count }: Pick<LineMatch, 'name' | 'count'>): void {
    const text = name.toLowerCase().replace(/\.$/, '')
    if (text !== '' && isIP(text) === 0 && !text.endsWith('.arpa')) this.#unmatched.add(text, count)
  }

  get found(): Found {
    const { platforms } = this.#matches
    return {
      platforms: platforms.slice(0, PLATFORMS_LISTED_MAX).map(
        ({ platformId: id, platformName: name, ...counts }): TriedPlatform => ({
          ...{ id, name, ...counts },
          names:
            this.#names
              .get(id)
              ?.top(PLATFORM_NAMES_LISTED_MAX)
              .map((each) => each.name) ?? [],
        }),
      ),
      platformsTotal: platforms.length,
      unmatchedNames: this.#unmatched.top(UNMATCHED_LISTED_MAX),
    }
  }
}

/** Counts names up to a number of distinct ones. Further names are not counted. */
class NameCounts {
  readonly #counts = new Map<string, number>()
  readonly #namesMax: number

  constructor(namesMax: number) {
    this.#namesMax = namesMax
  }

  add(name: string, count: number): void {
    const before = this.#counts.get(name)
    if (before !== undefined || this.#counts.size < this.#namesMax) this.#counts.set(name, (before ?? 0) + count)
  }

  top(max: number): { readonly name: string; readonly count: number }[] {
    return [...this.#counts]
      .map(([name, count]) => ({ name, count }))
      .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1))
      .slice(0, max)
  }
}

/** Enough to detect the format. */
const HEAD_BYTES = 16

export interface ReadFileOptions {
  readonly matcher: Matcher
  readonly windowStartMs: number
  /** Replace the limits in tests. */
  readonly bytesMax?: number
  readonly cpuMsMax?: number
}

/** Reads a capture or a log, compressed or not, and reports what would be found. */
export async function readFile(source: ByteSource, options: ReadFileOptions): Promise<FileReport> {
  const { matcher, windowStartMs, bytesMax = DECOMPRESSED_BYTES_MAX, cpuMsMax = READ_CPU_MS_MAX } = options
  try {
    const { source: decompressed, compression = 'none' } = await decompressedIfNeeded(source, LOG_FILE)
    const limited = new LimitedBytes(decompressed, bytesMax, cpuMsMax)
    const head = await readHead(limited, HEAD_BYTES)
    if (head.length === 0) return { kind: 'refused', reason: 'The file is empty' }
    const other = otherFormat(head)
    if (other !== undefined) return { kind: 'refused', reason: `The file looks like ${other.format}: ${other.remedy}` }
    const whole = new WithHead(limited, head)
    const report = isCapture(head) ? await readCapture(whole, matcher) : await readLog(whole, matcher, windowStartMs)
    const { bytes, ended } = limited
    // A file that a limit has truncated ends within a record.
    return { ...report, damage: ended === 'complete' ? report.damage : '', compression, bytes, ended }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { kind: 'refused', reason: error.message }
  }
}

/**
 * A source that ends when a limit on its bytes or on the process's time is reached. Checked at each
 * read and not by a timer: decompression may not return to the event loop for seconds.
 */
class LimitedBytes extends WrappedBytes {
  /** Bytes that were read. */
  bytes = 0
  ended: 'complete' | 'bytes' | 'time' = 'complete'
  readonly #bytesMax: number
  readonly #cpuMsMax: number

  constructor(source: ByteSource, bytesMax: number, cpuMsMax: number) {
    super(source)
    this.#bytesMax = bytesMax
    this.#cpuMsMax = cpuMsMax
  }

  async read(into: Uint8Array, at: number, bytes: number): Promise<number> {
    if (this.#isOverTime()) return 0
    const left = this.#bytesMax - this.bytes
    // At the limit, another byte shows that there is more.
    const got = await this.source.read(into, at, Math.max(1, Math.min(bytes, left)))
    if (got > 0 && left === 0) this.ended = 'bytes'
    if (this.ended !== 'complete') return 0
    this.bytes += got
    return got
  }

  #isOverTime(): boolean {
    const { user, system } = process.cpuUsage()
    if (this.ended === 'complete' && (user + system) / 1000 > this.#cpuMsMax) this.ended = 'time'
    return this.ended !== 'complete'
  }
}

/** @throws Fault CAPTURE_FORMAT, CAPTURE_DAMAGED if the file has no valid beginning. */
async function readCapture(
  source: ByteSource,
  matcher: Matcher,
): Promise<Omit<CaptureReport, 'compression' | 'bytes' | 'ended'>> {
  const tally = new FileTally(matcher)
  let matched = 0
  const { format, counts, damage } = await observeInline(source, ({ name, client, timeMs }) => {
    if (tally.add({ name, client, timeMs, count: 1 })) matched++
  })
  const coverage = { ...coverageOf({ observed: counts, live: undefined, link: undefined }), names_matched: matched }
  return { kind: 'capture', format, coverage, damage: damage ?? '', ...tally.found }
}

/** Stands for the monitoring token of the organization, which stays with the service. */
const TOKEN = new KnownToken(
  {
    ...{ id: NO_ORGANIZATION, organizationId: NO_ORGANIZATION, label: '', hash: '', visible: '' },
    ...{ createdAtMs: 0, revokedAtMs: 0 },
  },
  '',
  0,
)
const AUTHENTICATOR = { find: () => TOKEN, boundOf: () => TOKEN, stillActive: () => TOKEN }
/** A dry run has read no line before. */
const NO_LINES = { knowsFirst: () => false, versions: () => [] }
/** For errors. The process does not get the file's name. */
const NAME = 'the file'

async function readLog(
  source: ByteSource,
  matcher: Matcher,
  windowStartMs: number,
): Promise<Omit<LogReport, 'compression' | 'bytes' | 'ended'>> {
  const tally = new FileTally(matcher)
  const problems = new Problems()
  const known = {
    knows: (_organizationId: string, view: DataView, start: number, end: number): boolean =>
      matcher.matchBytes(view, start, end) !== undefined,
  }
  const pipeline = new MessagePipeline(new Uint8Array(READ_WORK_BYTES), known, AUTHENTICATOR, {
    tokenRate: undefined,
    noteUnauthorized: () => {},
  })
  const reader = new LogReader(NO_LINES, undefined, pipeline, TOKEN, {
    windowStartMs,
    onMatch: (match) => tally.add(match),
    onUnmatched: (match) => tally.addUnmatched(match),
    onProblem: (problem, sample) => problems.add(problem, sample),
    onProgress: () => {},
    stopped: () => false,
    stop: new Promise(() => {}),
  })
  const { report, fault } = await reader.readFrom(source, { path: NAME, name: NAME, lastWrittenMs: Date.now() })
  return {
    kind: 'log',
    lines: report.lines,
    messages: report.messages,
    outcomes: Object.fromEntries(TRIED_OUTCOMES.map((each) => [each, report[each]])) as Record<TriedOutcome, number>,
    formats: Object.entries(report.formats)
      .map(([id, messages]) => ({ id, messages }))
      .sort((a, b) => b.messages - a.messages),
    problems: problems.top,
    outsideWindow: report.outsideWindow,
    truncated: report.truncated,
    notUnderstood: fault?.code === 'LOG_FORMAT' ? fault.message : '',
    damage: fault === undefined || fault.code === 'LOG_FORMAT' ? '' : fault.message,
    ...tally.found,
  }
}

/** Counts the messages that were not understood by format and reason. */
class Problems {
  readonly #kinds = new Map<string, TriedProblem>()

  add({ line, format, reason }: LineProblem, sample: () => string): void {
    const key = `${format} ${reason}`
    const before = this.#kinds.get(key)
    if (before !== undefined) before.count++
    else if (this.#kinds.size < PROBLEMS_MAX) this.#kinds.set(key, { format, reason, count: 1, line, sample: sample() })
  }

  get top(): TriedProblem[] {
    return [...this.#kinds.values()].sort((a, b) => b.count - a.count || a.line - b.line).slice(0, PROBLEMS_LISTED_MAX)
  }
}
