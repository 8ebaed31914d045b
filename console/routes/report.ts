import { reportDocument } from '../../engine/export/report/article.tsx'
import { type ReportContent, type ReportOptions, reportContent } from '../../engine/export/report/content.ts'
import { htmlFileAnswer, redirect } from '../http/answer.ts'
import { page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { platformColumns, Report, recommendationColumns, scoreColumns } from '../pages/report.tsx'
import { csvFile } from './csv.ts'

export const REPORT_ROUTES: readonly Route[] = [
  page('/report', 'discovery.read', (visit) => visit.page('Report', '/report', Report({ content: contentOf(visit) }))),
  page('/report.html', 'discovery.read', (visit) => {
    const content = contentOf(visit)
    if (content.findings === undefined) return redirect('/report')
    return htmlFileAnswer('report.html', reportDocument(content, content.findings))
  }),
  // The files have all rows of which the page shows the first.
  csvFile({
    path: '/report/platforms',
    access: 'discovery.read',
    columns: () => platformColumns,
    rows: (visit) => contentOf(visit, { isWhole: true }).findings?.risks ?? [],
  }),
  csvFile({
    path: '/report/assessments',
    access: 'discovery.read',
    columns: () => scoreColumns,
    rows: (visit) => contentOf(visit).scores,
  }),
  csvFile({
    path: '/report/recommendations',
    access: 'discovery.read',
    columns: () => recommendationColumns,
    rows: (visit) => contentOf(visit, { isWhole: true }).recommendations,
  }),
]

function contentOf({ site, organization, nowMs }: Visit, options: ReportOptions = {}): ReportContent {
  return reportContent(site, organization, nowMs, options)
}
