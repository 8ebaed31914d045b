import { Article } from '../../engine/export/report/article.tsx'
import type { ReportContent, ReportedPlatform, ReportedScore } from '../../engine/export/report/content.ts'
import { isoSeconds } from '../../engine/kernel/process/clock.ts'
import { frameworkName } from '../../engine/store/framework.ts'
import type { Recommendation } from '../../engine/store/recommendations.ts'
import { CsvLink } from '../design/csv-link.tsx'
import { Empty, PageHead } from '../design/parts.tsx'
import type { Column } from '../design/table.tsx'

/** The report, as posture-admin report writes it. The print style sheet leaves out the buttons. */
export function Report({ content }: { readonly content: ReportContent }) {
  const { findings } = content
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
      <div class="row">
        <button class="first" type="button" data-prints hidden>
          Print or save as PDF
        </button>
        <a class="button" href="/report.html" download>
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
      <Article
        content={content}
        findings={findings}
        linkOf={(platform) => `/platforms/${encodeURIComponent(platform)}`}
      />
    </div>
  )
}

/** The columns of the CSV files. */
export const platformColumns: readonly Column<ReportedPlatform>[] = [
  { id: 'name', name: 'Platform', csv: ({ name }) => name },
  { id: 'risk', name: 'Risk', csv: ({ risk }) => risk },
  { id: 'clients', name: 'Clients', csv: ({ clients }) => clients },
  { id: 'decision', name: 'Decision', csv: ({ state }) => state },
  { id: 'owner', name: 'Owner', csv: ({ owner }) => owner },
  { id: 'why', name: 'Why it is risky', csv: ({ why }) => why },
]

export const scoreColumns: readonly Column<ReportedScore>[] = [
  { id: 'name', name: 'Framework', csv: ({ name }) => name },
  { id: 'score', name: 'Score', csv: ({ score }) => score },
  { id: 'grade', name: 'Grade', csv: ({ grade }) => grade },
  { id: 'basis', name: 'Basis', csv: ({ basis }) => basis },
  { id: 'change', name: 'Change', csv: ({ change }) => change ?? '' },
  { id: 'completed', name: 'Completed', csv: ({ completedMs }) => isoSeconds(completedMs) },
]

export const recommendationColumns: readonly Column<Recommendation>[] = [
  { id: 'priority', name: 'Priority', csv: ({ priority }) => priority },
  { id: 'title', name: 'Recommendation', csv: ({ title }) => title },
  { id: 'item', name: 'Item', csv: ({ frameworkId, itemId }) => `${frameworkName(frameworkId)} ${itemId}` },
  { id: 'status', name: 'Status', csv: ({ status }) => status },
  { id: 'owner', name: 'Owner', csv: ({ owner }) => owner },
]
