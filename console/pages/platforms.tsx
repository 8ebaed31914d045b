import { countColumn, textColumn, timeColumn } from '../design/columns.tsx'
import { CsvLink } from '../design/csv-link.tsx'
import { FilterSearch, FilterSelect, Filters } from '../design/filters.tsx'
import { countText, Empty, PageHead, Risk, Tag } from '../design/parts.tsx'
import { type Column, type Sorting, sorted, Table } from '../design/table.tsx'
import type { PlatformRow, PlatformState, PlatformsView } from '../views/platforms.ts'

export function platformColumns(nowMs: number): readonly Column<PlatformRow>[] {
  return [
    {
      id: 'name',
      name: 'Platform',
      // Links use names, which the cells contain anyway: 800 random ids would add 13 KB to the
      // compressed page.
      cell: ({ name }) => <a href={`/platforms/${encodeURIComponent(name)}`}>{name}</a>,
      sort: ({ name }) => name,
      csv: ({ name }) => name,
    },
    { ...textColumn('type', 'Type', ({ type }: PlatformRow) => type), wide: true },
    {
      id: 'vendor',
      name: 'Vendor',
      csv: ({ vendor }) => vendor,
    },
    {
      id: 'risk',
      name: 'Risk',
      cell: ({ risk }) => Risk({ score: risk }),
      sort: ({ risk }) => risk,
      csv: ({ risk }) => risk,
      number: true,
    },
    {
      id: 'approved',
      name: 'Approved',
      cell: ({ approved }) => (approved ? Tag({ tone: 'good', children: 'approved' }) : 'no'),
      sort: ({ approved }) => Number(approved),
      csv: ({ approved }) => String(approved),
      wide: true,
    },
    {
      id: 'confidence',
      name: 'Confidence',
      cell: ({ confidence }) => confidence.toFixed(2),
      sort: ({ confidence }) => confidence,
      csv: ({ confidence }) => confidence,
      number: true,
      wide: true,
    },
    {
      id: 'clients',
      name: 'Clients',
      cell: ({ clients, isEstimate }) => (isEstimate ? `about ${countText(clients)}` : countText(clients)),
      sort: ({ clients }) => clients,
      csv: ({ clients }) => clients,
      number: true,
    },
    { ...countColumn('matches', 'Matches', ({ matches }: PlatformRow) => matches), wide: true },
    {
      ...timeColumn('last-seen', 'Last seen', nowMs, ({ lastSeenMs }: PlatformRow) => lastSeenMs),
      number: true,
      wide: true,
    },
  ]
}

/** Default order: most clients first. */
export const PLATFORMS_SORTING: Sorting = { by: 'clients', direction: 'descending' }

const STATE_NAMES: Readonly<Record<PlatformState, string>> = {
  all: 'All',
  'not-approved': 'Not approved',
  approved: 'Approved',
}

export interface PlatformsProps {
  readonly view: PlatformsView
  readonly sorting: Sorting
  readonly query: URLSearchParams
  readonly nowMs: number
}

export function Platforms({ view, sorting, query, nowMs }: PlatformsProps) {
  if (!view.hasScan) {
    return (
      <>
        <PageHead title="Platforms" />
        <Empty title="No scan has completed yet">
          <p>Platforms appear after the first scan of events from a collector, syslog or log files.</p>
        </Empty>
      </>
    )
  }
  const columns = platformColumns(nowMs)
  return (
    <>
      <PageHead title="Platforms" about={`Seen in the last ${view.windowDays} days`}>
        <CsvLink path="/platforms" query={query} />
      </PageHead>
      <PlatformFilters view={view} sorting={query.get('sort') ?? ''} />
      {view.rows.length === 0 ? (
        <Empty title="No platform matches">
          <p>
            <a href="/platforms">Show all {countText(view.total)} platforms</a>
          </p>
        </Empty>
      ) : (
        <div class="card">
          <Table
            id="platforms"
            label="Platforms"
            columns={columns}
            rows={sorted(view.rows, columns, sorting)}
            sorting={sorting}
            query={query}
          />
        </div>
      )}
    </>
  )
}

function PlatformFilters({ view, sorting }: { readonly view: PlatformsView; readonly sorting: string }) {
  const { rows, total } = view
  const found = rows.length === total ? countText(total) : `${rows.length} of ${countText(total)}`
  return (
    <Filters action="/platforms" found={found} foundId="platforms-count">
      {sorting !== '' && <input type="hidden" name="sort" value={sorting} />}
      <FilterSearch value={view.search} table="platforms" />
      <FilterSelect name="state" label="Decision" value={view.state} options={Object.entries(STATE_NAMES)} />
      <FilterSelect name="type" label="Type" value={view.type} options={[['', 'All'], ...view.types]} />
    </Filters>
  )
}
