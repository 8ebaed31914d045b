import { isoSeconds } from '../../engine/process/clock.ts'
import type { AuditEntry } from '../../engine/store/audit-log.ts'
import { PagesLinks } from '../design/pages-links.tsx'
import { Empty, PageHead, Time } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import { type AuditView, detailsText } from '../views/audit.ts'

export function auditColumns(nowMs: number): readonly Column<AuditEntry>[] {
  return [
    {
      id: 'time',
      name: 'Time',
      cell: ({ timeMs }) => <Time ms={timeMs} nowMs={nowMs} />,
      csv: ({ timeMs }) => isoSeconds(timeMs),
    },
    { id: 'actor', name: 'Actor', cell: ({ actor }) => actor, csv: ({ actor }) => actor, wide: true },
    {
      id: 'action',
      name: 'Action',
      cell: ({ action }) => <span class="mono">{action}</span>,
      csv: ({ action }) => action,
    },
    {
      id: 'subject',
      name: 'Subject',
      cell: (entry) => (
        <>
          <span class="break">{entry.subject}</span>
          <p class="small muted break wide-only">{detailsText(entry)}</p>
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
        </Empty>
      </>
    )
  }
  const csv = query.size > 0 ? `/audit-log.csv?${query}` : '/audit-log.csv'
  return (
    <>
      <PageHead title="Audit log" about="Who changed what, and when">
        <a class="button" href={csv}>
          CSV
        </a>
      </PageHead>
      <form class="filters" method="get" action="/audit-log">
        <div class="field">
          <label for="q">Search</label>
          <input id="q" name="q" type="search" value={search} maxLength={100} />
        </div>
        <button type="submit">Filter</button>
      </form>
      {rows.length === 0 ? (
        <Empty title="No entry matches">
          <p>
            <a href="/audit-log">Show all entries</a>
          </p>
        </Empty>
      ) : (
        <div class="card">
          <Table id="audit" label="Audit log" columns={auditColumns(nowMs)} rows={rows} />
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
