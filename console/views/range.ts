import { rangesOf } from '../design/range.tsx'
import type { Visit } from '../http/visit.ts'

/** The days of the query: `days=7`. undefined: none, or more than the evidence window has. */
export function rangeOf({ request: { query }, organization }: Visit): number | undefined {
  return rangesOf(organization.evidenceWindowDays).find((each) => String(each) === query.get('days'))
}

/** The same for lists. undefined: the whole evidence window, of which the last scan has the figures. */
export function daysOf(visit: Visit): number | undefined {
  const days = rangeOf(visit)
  return days === visit.organization.evidenceWindowDays ? undefined : days
}
