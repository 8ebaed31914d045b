import type { VNode } from 'preact'
import { isoSeconds } from '../../engine/process/clock.ts'
import { DECISION_STATES } from '../../engine/store/decisions.ts'
import { StateTag, TermsFields } from '../design/decision.tsx'
import { FormError } from '../design/form.tsx'
import { countText, Empty, Notice, PageHead, Risk, Time } from '../design/parts.tsx'
import { type Column, type Sorting, sorted, Table } from '../design/table.tsx'
import type { FormState } from '../form.ts'
import type { PlatformRow, PlatformsView, StateFilter } from '../views/platforms.ts'

export function platformColumns(nowMs: number): readonly Column<PlatformRow>[] {
  return [
    {
      id: 'name',
      name: 'Platform',
      // Links use names, which the cells contain anyway: 800 random ids would add 13 KB to the
      // compressed page.
      cell: ({ listed: { name } }) => <a href={`/platforms/${encodeURIComponent(name)}`}>{name}</a>,
      sort: ({ listed: { name } }) => name,
      csv: ({ listed: { name } }) => name,
    },
    {
      id: 'type',
      name: 'Type',
      cell: ({ listed }) => listed.typeName,
      sort: ({ listed }) => listed.typeName,
      csv: ({ listed }) => listed.typeName,
      wide: true,
    },
    {
      id: 'vendor',
      name: 'Vendor',
      csv: ({ listed: { vendor } }) => vendor,
    },
    {
      id: 'risk',
      name: 'Risk',
      cell: ({ listed: { risk } }) => Risk({ score: risk }),
      sort: ({ listed: { risk } }) => risk,
      csv: ({ listed: { risk } }) => risk,
      number: true,
    },
    {
      id: 'decision',
      name: 'Decision',
      // Most platforms wait. A tag for each would be noise, and 800 of them take a millisecond.
      cell: ({ state }) => (state === 'waiting' ? 'waiting' : StateTag({ state })),
      sort: ({ state }) => DECISION_STATES.indexOf(state),
      csv: ({ state }) => state,
      wide: true,
    },
    {
      id: 'confidence',
      name: 'Confidence',
      cell: ({ listed: { confidence } }) => confidence.toFixed(2),
      sort: ({ listed: { confidence } }) => confidence,
      csv: ({ listed: { confidence } }) => confidence,
      number: true,
      wide: true,
    },
    {
      id: 'clients',
      name: 'Clients',
      cell: ({ listed: { clients, isEstimate } }) => (isEstimate ? `about ${countText(clients)}` : countText(clients)),
      sort: ({ listed: { clients } }) => clients,
      csv: ({ listed: { clients } }) => clients,
      number: true,
    },
    {
      id: 'matches',
      name: 'Matches',
      cell: ({ listed: { matches } }) => countText(matches),
      sort: ({ listed: { matches } }) => matches,
      csv: ({ listed: { matches } }) => matches,
      number: true,
      wide: true,
    },
    {
      id: 'last-seen',
      name: 'Last seen',
      cell: ({ listed: { lastSeenMs } }) => Time({ ms: lastSeenMs, nowMs }),
      sort: ({ listed: { lastSeenMs } }) => lastSeenMs,
      csv: ({ listed: { lastSeenMs } }) => isoSeconds(lastSeenMs),
      number: true,
      wide: true,
    },
  ]
}

/** Default order: most clients first. */
export const PLATFORMS_SORTING: Sorting = { by: 'clients', direction: 'descending' }

/** Check boxes for the forms that decide about several platforms. */
function selectionColumn({ values }: FormState): Column<PlatformRow> {
  const selected = new Set(values.all('platform'))
  return {
    id: 'select',
    name: 'Select',
    // Only the browser script can select all rows.
    heading: <input type="checkbox" aria-label="Select all" data-selects="platform" hidden />,
    cell: ({ listed: { name }, isRegistered }) =>
      isRegistered ? (
        <input
          type="checkbox"
          name="platform"
          value={name}
          aria-label={`Select ${name}`}
          checked={selected.has(name) || undefined}
        />
      ) : undefined,
  }
}

const STATE_NAMES: Readonly<Record<StateFilter, string>> = {
  all: 'All',
  waiting: 'Waiting for a decision',
  approved: 'Approved',
  rejected: 'Rejected',
  expired: 'Expired',
  'not-approved': 'Not approved',
}

export interface PlatformsProps {
  readonly view: PlatformsView
  readonly sorting: Sorting
  readonly query: URLSearchParams
  readonly nowMs: number
  readonly form: FormState
  /** The member may make decisions. */
  readonly mayDecide: boolean
  /** The decisions that the member just made, and about how many platforms; '' if none. */
  readonly done: string
  readonly doneCount: number
}

export function Platforms(props: PlatformsProps) {
  const { view, sorting, query, nowMs, form, mayDecide } = props
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
      <Done {...props} />
      <Filters view={view} sorting={query.get('sort') ?? ''} />
      {view.rows.length === 0 ? (
        <Empty title="No platform matches">
          <p>
            <a href="/platforms">Show all {countText(view.total)} platforms</a>
          </p>
        </Empty>
      ) : (
        <Selection {...props}>
          <div class="card">
            <Table
              id="platforms"
              label="Platforms"
              columns={mayDecide ? [selectionColumn(form), ...columns] : columns}
              rows={sorted(view.rows, columns, sorting)}
              sorting={sorting}
              query={query}
            />
          </div>
        </Selection>
      )}
    </>
  )
}

function Done({ done, doneCount }: PlatformsProps) {
  const what = { approved: 'approved', rejected: 'rejected', withdrawn: 'waiting for a decision again' }[done]
  if (what === undefined || doneCount === 0) return undefined
  const title = doneCount === 1 ? `1 platform is ${what}` : `${countText(doneCount)} platforms are ${what}`
  return (
    <Notice title={title}>
      <p class="small">The next scan updates the risk. It is already requested.</p>
    </Notice>
  )
}

/** The form around the table, with the buttons that decide about the selected platforms. */
function Selection(props: PlatformsProps & { readonly children: VNode }) {
  const { mayDecide, query, form, nowMs, children } = props
  if (!mayDecide) return children
  const to = (word: string): string => (query.size > 0 ? `/decisions/${word}?${query}` : `/decisions/${word}`)
  const hasTermErrors = Object.keys(form.errors).some((name) => name !== '')
  return (
    <form method="post" action={to('approve')} class="selection">
      {children}
      <section class="card bulk" aria-label="Decide about the selected platforms">
        <FormError form={form} />
        <div class="row">
          <output data-counts="platform" class="muted small">
            Select platforms
          </output>
          <button class="first" type="submit">
            Approve
          </button>
          <button type="submit" formaction={to('reject')}>
            Reject
          </button>
          <button type="submit" formaction={to('withdraw')}>
            Withdraw
          </button>
        </div>
        <details open={hasTermErrors}>
          <summary class="small muted">Note, owner and expiry</summary>
          <div class="terms">
            <TermsFields form={form} nowMs={nowMs} />
          </div>
        </details>
      </section>
    </form>
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
