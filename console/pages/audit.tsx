import type { AuditEntry } from '../../engine/store/audit-log.ts'
import { textColumn, timeColumn } from '../design/columns.tsx'
import { CsvLink } from '../design/csv-link.tsx'
import { FilterSearch, Filters } from '../design/filters.tsx'
import { PagesLinks } from '../design/pages-links.tsx'
import { Empty, PageHead } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import { actionName } from '../views/action-names.ts'
import { type AuditView, detailsText } from '../views/audit.ts'

export function auditColumns(nowMs: number): readonly Column<AuditEntry>[] {
  return [
    timeColumn('time', 'Time', nowMs, ({ timeMs }) => timeMs),
    {
      ...textColumn('actor', 'Actor', ({ actor }: AuditEntry) => actor),
      cell: ({ actor }) => <span class="break">{actor}</span>,
    },
    {
      id: 'action',
      name: 'Action',
      cell: ({ action }) => <span title={action}>{actionName(action)}</span>,
      csv: ({ action }) => action,
    },
    {
      id: 'subject',
      name: 'Subject',
      cell: (entry) => (
        <>
          <span class="break">{entry.subject}</span>
          <p class="small muted break">{detailsText(entry)}</p>
        </>
      ),
      csv: ({ subject }) => subject,
    },
    { id: 'details', name: 'Details', csv: detailsText },
  ]
}

export interface AuditProps {
  readonly view: AuditView
  readonly query: URLSearchParams
  readonly nowMs: number
}

export function Audit({ view, query, nowMs }: AuditProps) {
  const { rows, search, olderBefore, isFirstPage, isEmpty } = view
  if (isEmpty) {
    return (
      <>
        <PageHead title="Audit log" />
        <Empty title="Nothing has changed yet">
          <p class="muted">Every change of keys, tokens, members, approvals and settings appears here.</p>
          <a class="button first" href="/setup-guide">
            Set up a sender
          </a>
        </Empty>
      </>
    )
  }
  return (
    <>
      <PageHead title="Audit log" about="Who changed what, and when">
        <CsvLink path="/audit-log" query={query} />
      </PageHead>
      <Filters action="/audit-log">
        <FilterSearch value={search} />
      </Filters>
      {rows.length === 0 ? (
        <Empty title="No entry matches">
          <p>
            <a href="/audit-log">Show all entries</a>
          </p>
        </Empty>
      ) : (
        <div class="card">
          <Table id="audit" label="Audit log" columns={auditColumns(nowMs)} rows={rows} stacked />
        </div>
      )}
      {!isFirstPage && (
        <p>
          <a href={search === '' ? '/audit-log' : `/audit-log?${new URLSearchParams({ q: search })}`}>Newest entries</a>
        </p>
      )}
      <PagesLinks
        query={query}
        name="before"
        older={olderBefore === undefined ? undefined : String(olderBefore)}
        newerText="Newer entries"
        olderText="Older entries"
      />
    </>
  )
}
