import type { VNode } from 'preact'
import { USE_NAMES } from '../../engine/admin/platform-rows.ts'
import { DAY_MS, isoSeconds } from '../../engine/kernel/process/clock.ts'
import { type ListedPlatform, listedDiscovery, typeNameOf } from '../../engine/scan/listed-discovery.ts'
import { recentPlatforms } from '../../engine/scan/recent-use.ts'
import { DECISION_STATES, type DecisionState } from '../../engine/store/decisions.ts'
import { isUsed, USES, type Use } from '../../registry/contact.ts'
import { bytesColumn } from '../design/client-columns.tsx'
import { StateTag, TermsFields, Undo, Undone, type UndoView } from '../design/decision.tsx'
import { FormError } from '../design/form.tsx'
import { html } from '../design/html.ts'
import { CsvLink, FilterSearch, FilterSelect, Filters } from '../design/list.tsx'
import { countOf, countText, Empty, NO_VOLUME, Notice, PageHead, Risk } from '../design/parts.tsx'
import { type ChosenRange, lastDaysRange, RangeFields, rangeOf } from '../design/range.tsx'
import {
  type Column,
  countColumn,
  csvOnly,
  type Sorting,
  sorted,
  Table,
  textColumn,
  timeColumn,
} from '../design/table.tsx'
import type { FormState } from '../form.ts'
import type { Visit } from '../http/visit.ts'
import { DecisionsByName, isWaiting, type PlatformTerms } from './decisions.ts'

const STATE_FILTERS = ['all', 'waiting', 'approved', 'rejected', 'expired', 'not-approved'] as const
type StateFilter = (typeof STATE_FILTERS)[number]

/** Days of the filter for new platforms. '': all platforms. */
const NEW_FILTERS = ['', '1', '7', '30'] as const
type NewFilter = (typeof NEW_FILTERS)[number]

export interface PlatformRow {
  readonly listed: ListedPlatform
  readonly state: DecisionState
  /** The platform is in the registry, so it can be decided about. */
  readonly isRegistered: boolean
}

interface PlatformsView {
  /** The platforms that match the filters, in the order of the scan. */
  readonly rows: readonly PlatformRow[]
  readonly total: number
  readonly hasScan: boolean
  readonly windowDays: number
  /** The figures are those of this range. undefined: of the evidence window. */
  readonly range: ChosenRange | undefined
  readonly search: string
  readonly state: StateFilter
  /** '' for all that were used. */
  readonly use: Use | ''
  /** Only platforms that were new within this many days (ListedPlatform.newMs). */
  readonly newDays: NewFilter
  readonly type: string
  /** The types of these platforms, for the filter. */
  readonly types: readonly (readonly [id: string, name: string])[]
}

/** The platforms of the latest scan, filtered by the query: `q`, the range, `state`, `use`, `new`, `type`. */
export function platformsView(visit: Visit): PlatformsView {
  const { site, organization, request, nowMs } = visit
  const { scan, platforms: all } = listedDiscovery(site.store, organization)
  const range = rangeOf(request.query, organization.evidenceWindowDays, nowMs)
  const catalog = site.registry.catalogOf(organization.id).platforms
  const platforms = range === undefined ? all : recentPlatforms(site.store, organization, all, catalog, range).platforms
  const search = (request.query.get('q') ?? '').trim().slice(0, 100)
  const state = STATE_FILTERS.find((each) => each === request.query.get('state')) ?? 'all'
  const use = USES.find((each) => each === request.query.get('use')) ?? ''
  const newDays = NEW_FILTERS.find((each) => each === request.query.get('new')) ?? ''
  const sinceMs = newDays === '' ? 0 : nowMs - Number(newDays) * DAY_MS
  const types = [...new Set(platforms.map(({ platformType }) => platformType))].sort()
  const type = types.find((each) => each === request.query.get('type')) ?? ''
  const words = search.toLowerCase()
  const decisions = new DecisionsByName(visit)
  const inUse = platforms.filter(({ use: each }) => (use === '' ? isUsed(each) : each === use))
  const rows = inUse
    .map((platform) => rowOf(platform, decisions))
    .filter((row) => {
      if (!matches(state, row.state) || row.listed.newMs < sinceMs) return false
      const { name, vendor, platformType, typeName } = row.listed
      if (type !== '' && platformType !== type) return false
      return words === '' || `${name} ${vendor} ${typeName}`.toLowerCase().includes(words)
    })
  return {
    rows,
    total: inUse.length,
    hasScan: scan !== undefined,
    windowDays: organization.evidenceWindowDays,
    range,
    search,
    state,
    use,
    newDays,
    type,
    types: types.map((each) => [each, typeNameOf(each)]),
  }
}

function matches(filter: StateFilter, state: DecisionState): boolean {
  switch (filter) {
    case 'all':
      return true
    case 'waiting':
      return isWaiting(state)
    case 'not-approved':
      return state !== 'approved'
    default:
      return state === filter
  }
}

function rowOf(platform: ListedPlatform, decisions: DecisionsByName): PlatformRow {
  return {
    listed: platform,
    state: decisions.stateOf(platform),
    isRegistered: decisions.get(platform.name) !== undefined,
  }
}

/** @param terms of the decisions, by the name of the platform: only the CSV file has them */
export function platformColumns(
  nowMs: number,
  terms: ReadonlyMap<string, PlatformTerms> = new Map(),
): readonly Column<PlatformRow>[] {
  return [
    {
      id: 'name',
      name: 'Platform',
      // Links use names, which the cells contain anyway: 800 random ids would add 13 KB to the
      // compressed page.
      cell: ({ listed: { name, use } }) =>
        use === 'ai'
          ? html`<a href="/platforms/${encodeURIComponent(name)}">${name}</a>`
          : html`<a href="/platforms/${encodeURIComponent(name)}">${name}</a> <span class="tag">${USE_NAMES[use]}</span>`,
      sort: ({ listed: { name } }) => name,
      csv: ({ listed: { name } }) => name,
    },
    { ...textColumn('type', 'Type', ({ listed }: PlatformRow) => listed.typeName), wide: true },
    { id: 'use', name: 'Use', csv: ({ listed: { use } }) => USE_NAMES[use] },
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
    csvOnly(timeColumn('found', 'First found', nowMs, ({ listed }) => listed.createdMs)),
    { id: 'owner', name: 'Owner', csv: ({ listed }) => terms.get(listed.name)?.owner ?? '' },
    {
      id: 'expires',
      name: 'Expires',
      csv: ({ listed }) => {
        const expiresAtMs = terms.get(listed.name)?.expiresAtMs ?? 0
        return expiresAtMs === 0 ? '' : isoSeconds(expiresAtMs)
      },
    },
    { id: 'note', name: 'Note', csv: ({ listed }) => terms.get(listed.name)?.note ?? '' },
    {
      id: 'confidence',
      name: 'Confidence',
      csv: ({ listed: { confidence } }) => confidence,
    },
    {
      id: 'clients',
      name: 'Clients',
      cell: ({ listed: { clients, isEstimate } }) => (isEstimate ? `about ${countText(clients)}` : countText(clients)),
      sort: ({ listed: { clients } }) => clients,
      csv: ({ listed: { clients } }) => clients,
      number: true,
    },
    { ...countColumn('used', 'Used', ({ listed }: PlatformRow) => listed.used), wide: true },
    { ...countColumn('blocked', 'Blocked', ({ listed }: PlatformRow) => listed.blocked), wide: true },
    { ...bytesColumn('sent', 'Sent', ({ listed }: PlatformRow) => listed.bytesSent), wide: true },
    csvOnly(bytesColumn('received', 'Received', ({ listed }: PlatformRow) => listed.bytesReceived)),
    csvOnly(countColumn('touched', 'Touched', ({ listed }: PlatformRow) => listed.touched)),
    {
      ...timeColumn('last-seen', 'Last seen', nowMs, ({ listed }: PlatformRow) => listed.lastSeenMs),
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
    cell: ({ listed: { name }, isRegistered }) => {
      if (!isRegistered) return undefined
      return selected.has(name)
        ? html`<input type="checkbox" name="platform" value="${name}" aria-label="Select ${name}" checked/>`
        : html`<input type="checkbox" name="platform" value="${name}" aria-label="Select ${name}"/>`
    },
  }
}

/** Every list has its count. */
const USE_OPTIONS = [['', 'Used'], ...Object.entries(USE_NAMES)] as const

const STATE_NAMES: Readonly<Record<StateFilter, string>> = {
  all: 'All',
  waiting: 'Waiting for a decision',
  approved: 'Approved',
  rejected: 'Rejected',
  expired: 'Expired',
  'not-approved': 'Not approved',
}

const NEW_NAMES: readonly (readonly [NewFilter, string])[] = [
  ['', 'At any time'],
  ['1', 'In the last 24 hours'],
  ['7', 'In the last 7 days'],
  ['30', 'In the last 30 days'],
]

interface PlatformsProps {
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
  readonly undo: UndoView | undefined
}

export function Platforms(props: PlatformsProps) {
  const { view, sorting, query, nowMs, form, mayDecide } = props
  if (!view.hasScan) {
    return (
      <>
        <PageHead title="Platforms" />
        <Empty title="No scan has completed yet">
          <p class="muted">Platforms appear after the first scan of events from a collector, syslog or log files.</p>
          <a class="button first" href="/overview">
            Show the steps to the first scan
          </a>
        </Empty>
      </>
    )
  }
  const columns = platformColumns(nowMs)
  return (
    <>
      <PageHead title="Platforms" about={`Seen ${(view.range ?? lastDaysRange(view.windowDays, nowMs)).text}`}>
        <a class="button" href="/compare">
          Compare scans
        </a>
        <CsvLink path="/platforms" query={query} />
      </PageHead>
      <Done {...props} />
      <Undone done={props.done} />
      <Undo undo={props.undo} nowMs={nowMs} />
      <PlatformFilters view={view} sorting={query.get('sort') ?? ''} nowMs={nowMs} />
      {view.rows.length === 0 ? (
        <Empty title="No platform matches">
          <p>
            <a href="/platforms">Show all {countOf(view.total, 'platform')}</a>
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
      {view.rows.length > 0 && view.rows.every(({ listed }) => listed.bytesSent + listed.bytesReceived === 0) && (
        <p class="small muted">{NO_VOLUME}: no bytes of these platforms are known.</p>
      )}
    </>
  )
}

function Done({ done, doneCount }: PlatformsProps) {
  const what = { approved: 'approved', rejected: 'rejected', withdrawn: 'waiting for a decision again' }[done]
  if (what === undefined || doneCount === 0) return undefined
  const title = `${countOf(doneCount, 'platform is', 'platforms are')} ${what}`
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

type PlatformFiltersProps = Pick<PlatformsProps, 'view' | 'nowMs'> & { readonly sorting: string }

function PlatformFilters({ view, sorting, nowMs }: PlatformFiltersProps) {
  const { rows, total } = view
  const found = rows.length === total ? `all ${countText(total)}` : `${countText(rows.length)} of ${countText(total)}`
  return (
    <Filters action="/platforms" found={found} foundId="platforms-count">
      {sorting !== '' && <input type="hidden" name="sort" value={sorting} />}
      <FilterSearch value={view.search} table="platforms" />
      <RangeFields range={view.range} windowDays={view.windowDays} nowMs={nowMs} />
      <FilterSelect name="state" label="Decision" value={view.state} options={Object.entries(STATE_NAMES)} />
      <FilterSelect name="use" label="Use" value={view.use} options={USE_OPTIONS} />
      <FilterSelect name="new" label="First found" value={view.newDays} options={NEW_NAMES} />
      <FilterSelect name="type" label="Type" value={view.type} options={[['', 'All'], ...view.types]} />
    </Filters>
  )
}
