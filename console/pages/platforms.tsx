import { isoSeconds } from '../../engine/process/clock.ts'
import { countText, Empty, PageHead, Risk, Tag, Time } from '../design/parts.tsx'
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
    {
      id: 'type',
      name: 'Type',
      cell: ({ type }) => type,
      sort: ({ type }) => type,
      csv: ({ type }) => type,
      wide: true,
    },
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
    {
      id: 'matches',
      name: 'Matches',
      cell: ({ matches }) => countText(matches),
      sort: ({ matches }) => matches,
      csv: ({ matches }) => matches,
      number: true,
      wide: true,
    },
    {
      id: 'last-seen',
      name: 'Last seen',
      cell: ({ lastSeenMs }) => Time({ ms: lastSeenMs, nowMs }),
      sort: ({ lastSeenMs }) => lastSeenMs,
      csv: ({ lastSeenMs }) => isoSeconds(lastSeenMs),
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
  const csv = query.size > 0 ? `/platforms.csv?${query}` : '/platforms.csv'
  return (
    <>
      <PageHead title="Platforms" about={`Seen in the last ${view.windowDays} days`}>
        <a class="button" href={csv}>
          CSV
        </a>
      </PageHead>
      <Filters view={view} sorting={query.get('sort') ?? ''} />
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

function Filters({ view, sorting }: { readonly view: PlatformsView; readonly sorting: string }) {
  return (
    <form class="filters" method="get" action="/platforms">
      {sorting !== '' && <input type="hidden" name="sort" value={sorting} />}
      <div class="field">
        <label for="q">Search</label>
        <input id="q" name="q" type="search" value={view.search} maxLength={100} data-filters="platforms" />
      </div>
      <div class="field">
        <label for="state">Decision</label>
        <select id="state" name="state">
          {Object.entries(STATE_NAMES).map(([state, name]) => (
            <option key={state} value={state} selected={state === view.state}>
              {name}
            </option>
          ))}
        </select>
      </div>
      <div class="field">
        <label for="type">Type</label>
        <select id="type" name="type">
          <option value="">All</option>
          {view.types.map(([id, name]) => (
            <option key={id} value={id} selected={id === view.type}>
              {name}
            </option>
          ))}
        </select>
      </div>
      <button type="submit">Filter</button>
      <output id="platforms-count" class="muted small">
        {view.rows.length === view.total ? countText(view.total) : `${view.rows.length} of ${countText(view.total)}`}
      </output>
    </form>
  )
}
