import { Article, reportDocument } from '../../engine/export/report/article.tsx'
import {
  type ReportContent,
  type ReportedPlatform,
  type ReportedScore,
  type ReportOptions,
  reportContent,
} from '../../engine/export/report/content.ts'
import { isoSeconds } from '../../engine/kernel/process/clock.ts'
import { frameworkName } from '../../engine/store/framework.ts'
import type { Recommendation } from '../../engine/store/recommendations.ts'
import { CsvLink, Filters } from '../design/list.tsx'
import { Empty, PageHead, platformPath } from '../design/parts.tsx'
import { type ChosenRange, queryOf, RangeFields, rangeOf } from '../design/range.tsx'
import type { Column } from '../design/table.tsx'
import { fileAnswer, redirect } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

/** The report, as posture-admin report writes it. The print style sheet leaves out the buttons. */
function Report({ visit }: { readonly visit: Visit }) {
  const content = contentOf(visit)
  const range = rangeOfReport(visit)
  const { findings, nowMs } = content
  if (findings === undefined) {
    return (
      <>
        <PageHead title="Report" />
        <Empty title="No scan has completed yet">
          <p class="muted">The report sums up the findings of the last scan.</p>
          <a class="button first" href="/overview">
            See what is missing
          </a>
        </Empty>
      </>
    )
  }
  return (
    <div class="report">
      <Filters action="/report">
        <RangeFields
          label="Changes"
          usual="since the last report"
          range={range}
          windowDays={visit.organization.evidenceWindowDays}
          nowMs={nowMs}
        />
      </Filters>
      <div class="row">
        <button class="first" type="button" data-prints hidden>
          Print or save as PDF
        </button>
        <a class="button" href={`/report.html${queryOf(range)}`} download>
          Download as HTML
        </a>
        <span>
          Platforms <CsvLink path="/report/platforms" />
        </span>
        {content.scores.length > 0 && (
          <span>
            Assessments <CsvLink path="/report/assessments" />
          </span>
        )}
        {content.openRecommendations > 0 && (
          <span>
            Recommendations <CsvLink path="/report/recommendations" />
          </span>
        )}
      </div>
      <Article content={content} findings={findings} linkOf={platformPath} />
    </div>
  )
}

/** The columns of the CSV files. */
const platformColumns: readonly Column<ReportedPlatform>[] = [
  { id: 'name', name: 'Platform', csv: ({ name }) => name },
  { id: 'risk', name: 'Risk', csv: ({ risk }) => risk },
  { id: 'clients', name: 'Clients', csv: ({ clients }) => clients },
  { id: 'decision', name: 'Decision', csv: ({ state }) => state },
  { id: 'owner', name: 'Owner', csv: ({ owner }) => owner },
  { id: 'why', name: 'Why it is risky', csv: ({ why }) => why },
]

const scoreColumns: readonly Column<ReportedScore>[] = [
  { id: 'name', name: 'Framework', csv: ({ name }) => name },
  { id: 'score', name: 'Score', csv: ({ score }) => score },
  { id: 'grade', name: 'Grade', csv: ({ grade }) => grade },
  { id: 'basis', name: 'Basis', csv: ({ basis }) => basis },
  { id: 'change', name: 'Change', csv: ({ change }) => change ?? '' },
  { id: 'completed', name: 'Completed', csv: ({ completedMs }) => isoSeconds(completedMs) },
]

const recommendationColumns: readonly Column<Recommendation>[] = [
  { id: 'priority', name: 'Priority', csv: ({ priority }) => priority },
  { id: 'title', name: 'Recommendation', csv: ({ title }) => title },
  { id: 'item', name: 'Item', csv: ({ frameworkId, itemId }) => `${frameworkName(frameworkId)} ${itemId}` },
  { id: 'status', name: 'Status', csv: ({ status }) => status },
  { id: 'owner', name: 'Owner', csv: ({ owner }) => owner },
]

export const REPORT_ROUTES: readonly Route[] = [
  page('/report', 'discovery.read', (visit) => visit.page('Report', '/report', Report({ visit }))),
  page('/report.html', 'discovery.read', (visit) => {
    const content = contentOf(visit)
    if (content.findings === undefined) return redirect('/report')
    return fileAnswer('text/html; charset=utf-8', 'report.html', reportDocument(content, content.findings))
  }),
  // The files have all rows of which the page shows the first.
  csvFile('/report/platforms', 'discovery.read', platformColumns, (visit) => wholeOf(visit).findings?.risks ?? []),
  csvFile('/report/assessments', 'discovery.read', scoreColumns, (visit) => wholeOf(visit).scores),
  csvFile(
    '/report/recommendations',
    'discovery.read',
    recommendationColumns,
    (visit) => wholeOf(visit).recommendations,
  ),
]

function wholeOf(visit: Visit): ReportContent {
  return contentOf(visit, { isWhole: true })
}

/** Here the range of the whole window is one of them, too. */
function rangeOfReport({ organization, request, nowMs }: Visit): ChosenRange | undefined {
  return rangeOf(request.query, organization.evidenceWindowDays, nowMs, { offersWindow: true })
}

function contentOf(visit: Visit, options: ReportOptions = {}): ReportContent {
  const { site, organization, nowMs } = visit
  return reportContent(site, organization, nowMs, { range: rangeOfReport(visit), ...options })
}
