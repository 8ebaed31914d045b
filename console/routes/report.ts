import { type ReportContent, reportContent } from '../../engine/report/content.ts'
import { reportDocument } from '../../engine/report/document.tsx'
import { htmlFileAnswer, redirect } from '../http/answer.ts'
import { page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { Report } from '../pages/report.tsx'

export const REPORT_ROUTES: readonly Route[] = [
  page('/report', 'discovery.read', (visit) => visit.page('Report', '/report', Report({ content: contentOf(visit) }))),
  page('/report.html', 'discovery.read', (visit) => {
    const content = contentOf(visit)
    if (content.findings === undefined) return redirect('/report')
    return htmlFileAnswer('report.html', reportDocument(content, content.findings))
  }),
]

function contentOf({ site, organization, nowMs }: Visit): ReportContent {
  return reportContent(site, organization, nowMs)
}
