import { page, type Route } from '../http/router.ts'
import { Report } from '../pages/report.tsx'
import { reportView } from '../views/report.ts'

export const REPORT_ROUTES: readonly Route[] = [
  page('/report', 'discovery.read', (visit) =>
    visit.page('Report', '/report', Report({ view: reportView(visit), nowMs: visit.nowMs })),
  ),
]
