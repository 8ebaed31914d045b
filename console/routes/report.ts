import { page, type Route } from '../http/router.ts'
import { frameworkColumns, platformColumns, Report, recommendationColumns } from '../pages/report.tsx'
import { openRecommendations, reportFrameworks, reportPlatforms, reportView } from '../views/report.ts'
import { csvFile } from './csv.ts'

const PATH = '/report'

/** The files have all rows of which the page shows the first. */
export const REPORT_ROUTES: readonly Route[] = [
  page(PATH, 'discovery.read', (visit) =>
    visit.page('Report', PATH, Report({ view: reportView(visit), nowMs: visit.nowMs })),
  ),
  csvFile({
    path: `${PATH}/platforms`,
    access: 'discovery.read',
    columns: () => platformColumns,
    rows: reportPlatforms,
  }),
  csvFile({
    path: `${PATH}/assessments`,
    access: 'discovery.read',
    columns: () => frameworkColumns,
    rows: reportFrameworks,
  }),
  csvFile({
    path: `${PATH}/recommendations`,
    access: 'discovery.read',
    columns: () => recommendationColumns,
    rows: openRecommendations,
  }),
]
