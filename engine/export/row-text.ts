import { csvRecord } from '../kernel/process/csv.ts'
import { cefLine } from './cef.ts'
import type { ExportedRow, RowValue } from './exported-row.ts'
import type { FindingEvent, Reporter } from './finding-event.ts'
import { leefLine } from './leef.ts'
import { ocsfLine } from './ocsf.ts'
import { EXPORT_OF, type ExportKind } from './rows.ts'

export const EXPORT_FORMATS = ['csv', 'ndjson', 'html', 'cef', 'leef', 'ocsf'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

/** Formats of findings, not of rows: only platforms have them. */
const SIEM_LINES: Readonly<Partial<Record<ExportFormat, (event: FindingEvent, reporter: Reporter) => string>>> = {
  cef: cefLine,
  leef: leefLine,
  ocsf: ocsfLine,
}

/** Whether a format can express rows of this kind. */
export function canWrite(kind: ExportKind, format: ExportFormat): boolean {
  return kind === 'platforms' || SIEM_LINES[format] === undefined
}

/** The parts of an exported text: what precedes the rows, each row, and what follows. */
export interface RowText {
  readonly head: string
  readonly row: (row: ExportedRow) => string
  readonly tail: string
}

export function rowText(kind: ExportKind, format: ExportFormat, organization: string, reporter: Reporter): RowText {
  const names = EXPORT_OF[kind].columns.map(({ name }) => name)
  const siem = SIEM_LINES[format]
  if (siem !== undefined) {
    return { head: '', row: ({ finding }) => (finding ? `${siem(finding, reporter)}\n` : ''), tail: '' }
  }
  if (format === 'csv') {
    return { head: csvRecord(names), row: ({ row }) => csvRecord(names.map((name) => csvValue(row[name]))), tail: '' }
  }
  if (format === 'html') return htmlText(kind, names, organization)
  return { head: '', row: ({ row }) => `${JSON.stringify(row)}\n`, tail: '' }
}

function csvValue(value: RowValue | undefined): string | number {
  if (value === undefined || value === null) return ''
  if (typeof value === 'number') return value
  return typeof value === 'object' ? value.join(' ') : String(value)
}

/** One page without scripts and without anything that it would have to load. */
function htmlText(kind: ExportKind, names: readonly string[], organization: string): RowText {
  const title = escaped(`${kind} of ${organization}`)
  const cells = (tag: 'td' | 'th', texts: readonly string[]): string =>
    `<tr>${texts.map((text) => `<${tag}>${escaped(text)}</${tag}>`).join('')}</tr>\n`
  return {
    head: `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${title}</title>
<style>
body { font: 14px/1.4 system-ui, sans-serif; margin: 24px }
table { border-collapse: collapse }
th, td { border: 1px solid #ccc; padding: 4px 8px; text-align: left; vertical-align: top }
th { background: #f3f3f3; position: sticky; top: 0 }
@media print { body { margin: 0; font-size: 9px } th { position: static } }
</style>
<h1>${title}</h1>
<table>
<thead>
${cells('th', names)}</thead>
<tbody>
`,
    row: ({ row }) =>
      cells(
        'td',
        names.map((name) => String(csvValue(row[name]))),
      ),
    tail: '</tbody>\n</table>\n</html>\n',
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  ...{ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' },
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character)
}
