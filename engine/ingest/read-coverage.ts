import { z } from 'zod'
import { dataVersion } from '../../registry/data-version-schema.ts'
import { NAME_CHARS_MAX } from '../../registry/domain-name.ts'
import {
  CANDIDATES_PER_REPORT,
  COVERAGE_COUNT_MAX,
  type CoverageReport,
  HIDDEN_COUNTER_NAMES,
  type HiddenCounter,
  REQUIRED_COUNTER_NAMES,
} from '../kernel/event/coverage-report.ts'
import { TIME_MS_MAX } from '../kernel/event/event.ts'
import { parseJson } from '../kernel/event/json.ts'
import { unpack } from '../kernel/event/msgpack.ts'
import { COVERAGE_BYTES_MAX } from '../limits.ts'

/**
 * The schema of engine/kernel/event/coverage-report.ts. zod is fast enough: a sensor sends one report a
 * minute.
 */
const count = z.number().int().nonnegative().max(COVERAGE_COUNT_MAX)
const time = z.iso
  .datetime()
  .transform((text) => Date.parse(text))
  .pipe(z.number().int().nonnegative().max(TIME_MS_MAX))
const counters = z.object({
  ...(Object.fromEntries(REQUIRED_COUNTER_NAMES.map((name) => [name, count])) as Record<
    (typeof REQUIRED_COUNTER_NAMES)[number],
    typeof count
  >),
  ...(Object.fromEntries(HIDDEN_COUNTER_NAMES.map((name) => [name, count.default(0)])) as Record<
    HiddenCounter,
    z.ZodDefault<typeof count>
  >),
})
const candidates = z.array(z.tuple([z.string().max(NAME_CHARS_MAX), count.min(1)])).max(CANDIDATES_PER_REPORT)
const member = z
  .object({
    instance: z.string().regex(/^[0-9a-f]{16}$/, 'expected 16 lower-case hex digits'),
    since: time,
    made: time,
    ended: z.boolean(),
    counters,
    // A later program may have other forms of these. They do not make its counters wrong.
    registry: dataVersion.optional().catch(undefined),
    candidates: candidates.optional().catch(undefined),
  })
  .refine(({ since, made }) => made >= since, { path: ['made'], message: 'expected a time not before since' })

/** A report has about 400 values with all candidates, and later releases may add some. */
const LIMITS = { valuesMax: 1000, depthMax: 8 }

/** Returns the report, or an error that names the wrong member. undefined: there is no value. */
export function coverageFromValue(value: unknown): CoverageReport | string | undefined {
  if (value === undefined || value === null) return undefined
  const parsed = member.safeParse(value)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    return `${['coverage', ...(issue?.path ?? [])].join('.')}: ${issue?.message ?? 'expected a report'}`
  }
  const { since, made, ...report } = parsed.data
  return { ...report, sinceMs: since, madeMs: made }
}

/** Same, from msgpack. */
export function coverageFromPacked(bytes: Uint8Array): CoverageReport | string | undefined {
  if (bytes.length > COVERAGE_BYTES_MAX) return `coverage: expected at most ${COVERAGE_BYTES_MAX} bytes`
  try {
    return coverageFromValue(unpack(bytes, LIMITS))
  } catch (error) {
    return `coverage: expected msgpack: ${(error as Error).message}`
  }
}

/** Same, from a JSON message `{ "coverage": { ... } }`. */
export function coverageFromMessage(text: string): CoverageReport | string {
  try {
    const { coverage } = (parseJson(text, LIMITS) ?? {}) as { coverage?: unknown }
    return coverageFromValue(coverage) ?? 'coverage: expected a report'
  } catch (error) {
    return `coverage: expected JSON: ${(error as Error).message}`
  }
}
