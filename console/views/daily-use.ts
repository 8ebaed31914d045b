import { dayOf } from '../../engine/kernel/process/clock.ts'
import type { History } from '../../engine/store/history.ts'
import { type DayBar, shortDay } from '../design/chart.tsx'
import type { Visit } from '../http/visit.ts'

/**
 * Distinct clients of AI platforms per day, as the last scan counted them: clients of
 * platforms that are not approved, and clients of approved platforms only.
 */
export function dailyUse({ site, organization, nowMs }: Visit): readonly DayBar[] {
  const { scanStates, dailyUse, history } = site.store
  const { firstDay: firstCounted } = scanStates.get(organization.id)
  const today = dayOf(nowMs)
  const firstDay = Math.max(firstCounted, today - organization.evidenceWindowDays + 1)
  const known = new Map(dailyUse.get(organization.id).map((use) => [use.day, use]))
  const days: DayBar[] = []
  const marked = firstDayWithContacts(history, organization.id)
  for (let day = firstDay; day <= today; day++) {
    const use = known.get(day) ?? { day, approved: 0, notApproved: 0 }
    days.push(day === marked ? { ...use, mark: `Since ${shortDay(day)}, only used platforms count` } : use)
  }
  return days
}

/**
 * The first day of a scan that told use from other contacts (registry/contact.ts), if there are
 * earlier scans.
 */
function firstDayWithContacts(history: History, organizationId: string): number | undefined {
  const days = history.days(organizationId)
  let [first, end] = [0, days.length]
  while (first < end) {
    const middle = (first + end) >> 1
    if (history.get(organizationId, days[middle] ?? 0)?.summary.touchedCount === undefined) first = middle + 1
    else end = middle
  }
  return first === 0 ? undefined : days[first]
}
