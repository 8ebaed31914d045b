import { createHash } from 'node:crypto'
import { renderToString } from 'preact-render-to-string'
import { Article, summaryText } from './article.tsx'
import type { ReportContent, ReportedFindings } from './content.ts'
import { DOCUMENT_STYLE, REPORT_STYLE } from './style.ts'

export { summaryText }

const STYLE = `${DOCUMENT_STYLE}${REPORT_STYLE}`
/** Nothing is loaded, no script runs, and of styles only these are used (CSP Level 3). */
const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'`

/** The report as one HTML file that needs no other. */
export function reportDocument(content: ReportContent, findings: ReportedFindings): string {
  const html = renderToString(
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content={POLICY} />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="referrer" content="no-referrer" />
        <title>{`Use of AI at ${content.organization}`}</title>
        <style dangerouslySetInnerHTML={{ __html: STYLE }} />
      </head>
      <body>
        <Article content={content} findings={findings} />
      </body>
    </html>,
  )
  return `<!DOCTYPE html>\n${html}\n`
}
