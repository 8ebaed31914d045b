import {
  COVERAGE_COUNTER_NAMES,
  type CoverageCounters,
  type CoverageReport,
  coverageReportToJson,
} from '../../engine/kernel/event/coverage-report.ts'

export const INSTANCE = '5c28dc30ef9d3ca8'

/** All counters; the ones not given are 0. */
export function counters(overrides: Partial<CoverageCounters> = {}): CoverageCounters {
  return { ...(Object.fromEntries(COVERAGE_COUNTER_NAMES.map((name) => [name, 0])) as CoverageCounters), ...overrides }
}

/** A report of a run that began at the start of 2026-11-20. */
export function report(
  overrides: Omit<Partial<CoverageReport>, 'counters'> & { readonly counters?: Partial<CoverageCounters> } = {},
): CoverageReport {
  const sinceMs = Date.parse('2026-11-20T00:00:00Z')
  return {
    instance: INSTANCE,
    sinceMs,
    madeMs: sinceMs,
    ended: false,
    ...overrides,
    counters: counters(overrides.counters),
  }
}

/** The report as the text of a collector's syslog message. */
export function coverageMessage(each: CoverageReport): string {
  return JSON.stringify({ coverage: coverageReportToJson(each) })
}
