import { rangesOf } from '../design/range.tsx'
import type { Visit } from '../http/visit.ts'

/** The days of the query (`days=7`) that are fewer than the evidence window. undefined: all of it. */
export function daysOf({ request: { query }, organization }: Visit): number | undefined {
  return rangesOf(organization.evidenceWindowDays).find((each) => String(each) === query.get('days'))
}
