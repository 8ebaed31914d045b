import { dayOf } from '../../engine/process/clock.ts'
import type { DayBar } from '../design/chart.tsx'
import type { Visit } from '../http/visit.ts'

/**
 * Distinct clients of AI platforms per day, as the last scan counted them: clients of
 * platforms that are not approved, and clients of approved platforms only.
 */
export function dailyUse({ site, organization, nowMs }: Visit): readonly DayBar[] {
  const { scanStates, dailyUse } = site.store
  const { firstDay: firstCounted } = scanStates.get(organization.id)
  const today = dayOf(nowMs)
  const firstDay = Math.max(firstCounted, today - organization.evidenceWindowDays + 1)
  const known = new Map(dailyUse.get(organization.id).map((use) => [use.day, use]))
  const days: DayBar[] = []
  for (let day = firstDay; day <= today; day++) days.push(known.get(day) ?? { day, approved: 0, notApproved: 0 })
  return days
}
