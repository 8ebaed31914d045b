import { Article } from '../../engine/report/article.tsx'
import type { ReportContent } from '../../engine/report/content.ts'
import { Empty, PageHead } from '../design/parts.tsx'

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
      </div>
      <Article
        content={content}
        findings={findings}
        linkOf={(platform) => `/platforms/${encodeURIComponent(platform)}`}
      />
    </div>
  )
}
