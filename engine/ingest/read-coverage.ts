import { z } from 'zod'
import {
  COVERAGE_COUNT_MAX,
  COVERAGE_COUNTER_NAMES,
  type CoverageCounter,
  type CoverageReport,
} from '../event/coverage-report.ts'
import { TIME_MS_MAX } from '../event/event.ts'

/** The form of a report that stands in coverage-report.ts. Apart from it, since whoever only writes or stores reports need not load zod. */
const count = z.number().int().nonnegative().max(COVERAGE_COUNT_MAX)
const time = z.iso
  .datetime()
  .transform((text) => Date.parse(text))
  .pipe(z.number().int().nonnegative().max(TIME_MS_MAX))
const counters = z.object(
  Object.fromEntries(COVERAGE_COUNTER_NAMES.map((name) => [name, count])) as Record<CoverageCounter, typeof count>,
)
const message = z.object({
  coverage: z
    .object({
      instance: z.string().regex(/^[0-9a-f]{16}$/, 'expected 16 lower-case hex digits'),
      since: time,
      made: time,
      ended: z.boolean(),
      counters,
    })
    .refine(({ since, made }) => made >= since, { path: ['made'], message: 'expected a time not before since' }),
})

/** The report, or one line that says which member is wrong and what is right. */
export function coverageReportFromJson(text: string): CoverageReport | string {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return `expected JSON: ${(error as Error).message}`
  }
  const parsed = message.safeParse(value)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    return `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'expected a report'}`
  }
  const { since, made, ...report } = parsed.data.coverage
  return { ...report, sinceMs: since, madeMs: made }
}
