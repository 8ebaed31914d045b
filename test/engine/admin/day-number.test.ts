import t from 'tap'
import { dayNumberOf } from '../../../engine/admin/scan-diff.ts'

t.test('a date is a day of the calendar', (t) => {
  t.equal(dayNumberOf('2024-02-29'), 19_782)
  for (const text of ['2026-02-29', '2026-02-31', '2026-04-31', '2026-13-01', '2026-1-1', '', '2026-11-20T00:00']) {
    t.equal(dayNumberOf(text), undefined, text)
  }
  t.end()
})
