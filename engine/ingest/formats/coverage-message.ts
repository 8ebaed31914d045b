import { COVERAGE_BYTES_MAX } from '../../limits.ts'
import { COLON, indexOfText, OPEN_BRACE, skipBlanks, textAt } from './bytes.ts'
import { JsonKind, JsonScanner } from './json.ts'
import { type LogLine, Verdict } from './log-line.ts'

/*
 * A collector's coverage report (engine/event/coverage-report.ts):
 *
 *   {"coverage":{"instance":"5c28dc30ef9d3ca8","since":"2026-11-20T09:00:00.000Z",…,
 *    "counters":{"packets":120000,…}}}
 *
 * The report is no request, so its verdict is skip. The line keeps the report's offsets for the
 * intake.
 */
const KEY = '"coverage"'
/** The maximum length of a report before its counters. */
const CUE_BYTES = 256

const scanner = new JsonScanner()

/** Whether the first member is the object `coverage`, and `instance` and `counters` are present. */
export function isCoverageMessage({ view }: LogLine, start: number, end: number): boolean {
  if (start >= end || view.getUint8(start) !== OPEN_BRACE) return false
  const key = skipBlanks(view, start + 1, end)
  if (!textAt(view, key, end, KEY)) return false
  const colon = skipBlanks(view, key + KEY.length, end)
  if (colon >= end || view.getUint8(colon) !== COLON) return false
  const value = skipBlanks(view, colon + 1, end)
  if (value >= end || view.getUint8(value) !== OPEN_BRACE) return false
  const limit = Math.min(end, value + CUE_BYTES)
  return indexOfText(view, value, limit, '"instance"') >= 0 && indexOfText(view, value, limit, '"counters"') >= 0
}

export function parseCoverageMessage(line: LogLine, start: number, end: number): Verdict {
  if (end - start > COVERAGE_BYTES_MAX) return line.reject('coverage: expected a report of at most 16384 bytes')
  scanner.open(line.view, start, end)
  let kind = scanner.next()
  while (kind > JsonKind.broken) kind = scanner.next()
  if (kind === JsonKind.broken) return line.reject('JSON: expected one complete object')
  line.coverageStart = start
  line.coverageEnd = end
  return Verdict.skip
}
