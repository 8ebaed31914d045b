import { Intake } from '../engine/ingest/intake.ts'
import { type LineProblem, LogReader, READ_WORK_BYTES } from '../engine/ingest/read-log.ts'
import { KnownToken } from '../engine/ingest/token-authenticator.ts'
import type { ByteSource } from '../engine/process/byte-source.ts'
import { NO_ORGANIZATION } from '../engine/store/sources.ts'
import type { Matcher } from '../registry/match.ts'
import { PROBLEMS_LISTED_MAX, PROBLEMS_MAX } from './limits.ts'
import { type LogReport, TRIED_OUTCOMES, type TriedOutcome, type TriedProblem } from './report.ts'
import { FileTally } from './tally.ts'

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

export async function readLog(
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
  const intake = new Intake(new Uint8Array(READ_WORK_BYTES), known, AUTHENTICATOR, {
    tokenRate: undefined,
    noteUnauthorized: () => {},
  })
  const reader = new LogReader(NO_LINES, undefined, intake, TOKEN, {
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
    damage: fault?.message ?? '',
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
