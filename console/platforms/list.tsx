import type { VNode } from 'preact'
import { USE_NAMES } from '../../engine/admin/platform-rows.ts'
import { DAY_MS } from '../../engine/kernel/process/clock.ts'
import { DECIDED_PLATFORMS_MAX } from '../../engine/limits.ts'
import { type ListedPlatform, listedDiscovery, typeNameOf } from '../../engine/scan/listed-discovery.ts'
import { recentPlatforms } from '../../engine/scan/recent-use.ts'
import { DECISION_STATES, type Decision, type DecisionState } from '../../engine/store/decisions.ts'
import { isUsed, USES } from '../../registry/contact.ts'
import { bytesColumn } from '../design/client-columns.tsx'
import { Form, FormError, Hidden } from '../design/form.tsx'
import { html } from '../design/html.ts'
import { CsvLink, FilterSearch, FilterSelect, Filters } from '../design/list.tsx'
import {
  aboutText,
  countOf,
  countText,
  Empty,
  NarrowCard,
  NO_VOLUME,
  PageHead,
  PlatformLink,
  platformPath,
  Risk,
  StateTag,
} from '../design/parts.tsx'
import { lastDaysRange, RangeFields, rangeOf } from '../design/range.tsx'
import {
  type Column,
  countColumn,
  csvOnly,
  filtersOf,
  type Sorting,
  sorted,
  sortingOf,
  Table,
  textColumn,
  timeColumn,
} from '../design/table.tsx'
import { EMPTY_FORM, FORM_FIELDS_MAX, type FormFields, type FormState, RejectedForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import {
  DECISION_ACTIONS,
  DECISION_WORDS,
  DecisionsByName,
  type DecisionWord,
  DONE,
  isWaiting,
  lastDecisions,
  readTerms,
  TermsFields,
  UNDONE,
  Undo,
  undoOf,
} from './decision.tsx'

const PATH = '/platforms'
const STATE_FILTERS = ['all', 'waiting', 'approved', 'rejected', 'expired', 'not-approved'] as const
type StateFilter = (typeof STATE_FILTERS)[number]

/** Days of the filter for new platforms. '': all platforms. */
const NEW_FILTERS = ['', '1', '7', '30'] as const
type NewFilter = (typeof NEW_FILTERS)[number]

export interface PlatformRow {
  readonly listed: ListedPlatform
  readonly state: DecisionState
  /** undefined: the platform has left the registry, so it cannot be decided about. */
  readonly id: string | undefined
  /** The terms of the last decision: only the CSV file has them. */
  readonly terms?: Decision | undefined
}

/** The platforms of the latest scan, filtered by the query: `q`, the range, `state`, `use`, `new`, `type`. */
function platformsView(visit: Visit) {
  const { site, organization, nowMs } = visit
  const { query } = visit.request
  const { scan, platforms: all } = listedDiscovery(site.store, organization)
  const range = rangeOf(query, organization.evidenceWindowDays, nowMs)
  const catalog = site.registry.catalogOf(organization.id).platforms
  const platforms = range === undefined ? all : recentPlatforms(site.store, organization, all, catalog, range).platforms
  const search = (query.get('q') ?? '').trim().slice(0, 100)
  const state = STATE_FILTERS.find((each) => each === query.get('state')) ?? 'all'
  const use = USES.find((each) => each === query.get('use')) ?? ''
  const newDays = NEW_FILTERS.find((each) => each === query.get('new')) ?? ''
  const sinceMs = newDays === '' ? 0 : nowMs - Number(newDays) * DAY_MS
  const types = [...new Set(platforms.map(({ platformType }) => platformType))].sort()
  const type = types.find((each) => each === query.get('type')) ?? ''
  const words = search.toLowerCase()
  const decisions = new DecisionsByName(visit)
  const inUse = platforms.filter(({ use: each }) => (use === '' ? isUsed(each) : each === use))
  const rows = inUse
    .map((listed): PlatformRow => ({ listed, state: decisions.stateOf(listed), id: decisions.get(listed.name)?.id }))
    .filter((row) => {
      if (!matches(state, row.state) || row.listed.newMs < sinceMs) return false
      const { name, vendor, platformType, typeName } = row.listed
      if (type !== '' && platformType !== type) return false
      return words === '' || `${name} ${vendor} ${typeName}`.toLowerCase().includes(words)
    })
  const sorting = sortingOf(COLUMNS, query, MOST_CLIENTS)
  return {
    ...{ range, search, state, use, newDays, type, types, sorting },
    /** The platforms that match the filters. */
    rows: sorted(rows, COLUMNS, sorting),
    total: inUse.length,
    hasScan: scan !== undefined,
  }
}

type PlatformsView = ReturnType<typeof platformsView>

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

const COLUMNS: readonly Column<PlatformRow>[] = [
  {
    id: 'name',
    name: 'Platform',
    // Links use names, which the cells contain anyway: 800 random ids would add 13 KB to the
    // compressed page.
    cell: ({ listed: { name, use } }) =>
      use === 'ai'
        ? PlatformLink({ name })
        : html`${PlatformLink({ name })} <span class="tag">${USE_NAMES[use]}</span>`,
    sort: ({ listed: { name } }) => name,
    csv: ({ listed: { name } }) => name,
  },
  { ...textColumn('type', 'Type', ({ listed }: PlatformRow) => listed.typeName), wide: true },
  { id: 'use', name: 'Use', csv: ({ listed: { use } }) => USE_NAMES[use] },
  { id: 'vendor', name: 'Vendor', csv: ({ listed: { vendor } }) => vendor },
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
  csvOnly(timeColumn('found', 'First found', ({ listed }) => listed.createdMs)),
  { id: 'owner', name: 'Owner', csv: ({ terms }) => terms?.owner ?? '' },
  csvOnly(timeColumn('expires', 'Expires', ({ terms }) => terms?.expiresAtMs ?? 0)),
  { id: 'note', name: 'Note', csv: ({ terms }) => terms?.note ?? '' },
  { id: 'confidence', name: 'Confidence', csv: ({ listed: { confidence } }) => confidence },
  {
    id: 'clients',
    name: 'Clients',
    cell: ({ listed }) => aboutText(listed),
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
    ...timeColumn('last-seen', 'Last seen', ({ listed }: PlatformRow) => listed.lastSeenMs),
    number: true,
    wide: true,
  },
]

const MOST_CLIENTS: Sorting = { by: 'clients', direction: 'descending' }

/** Check boxes for the forms that decide about several platforms. */
function selection({ values }: FormState): Column<PlatformRow> {
  const selected = new Set(values.all('platform'))
  return {
    id: 'select',
    name: 'Select',
    // Only the browser script can select all rows.
    heading: <input type="checkbox" aria-label="Select all" data-selects="platform" hidden />,
    action: 'approval.add',
    cell: ({ listed: { name }, id }) => {
      if (id === undefined) return undefined
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
  readonly visit: Visit
  readonly form: FormState
  readonly undo: ReturnType<typeof undoOf>
}

export function Platforms({ visit, form, undo }: PlatformsProps) {
  const { nowMs, organization } = visit
  const { query } = visit.request
  const view = platformsView(visit)
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
  const { rows, sorting } = view
  const table = (
    <div class="card">
      <Table
        {...{ visit, id: 'platforms', label: 'Platforms', sorting, rows }}
        columns={[selection(form), ...COLUMNS]}
      />
    </div>
  )
  return (
    <>
      <PageHead
        title="Platforms"
        about={`Seen ${(view.range ?? lastDaysRange(organization.evidenceWindowDays, nowMs)).text}`}
      >
        <a class="button" href="/compare">
          Compare scans
        </a>
        <CsvLink path={PATH} query={query} />
      </PageHead>
      <Undo undo={undo} nowMs={nowMs} />
      <PlatformFilters visit={visit} view={view} />
      {rows.length === 0 ? (
        <Empty title="No platform matches">
          <p>
            <a href={PATH}>Show all {countOf(view.total, 'platform')}</a>
          </p>
        </Empty>
      ) : visit.may('approval.add') ? (
        <DecisionForm visit={visit} form={form}>
          {table}
        </DecisionForm>
      ) : (
        table
      )}
      {rows.length > 0 && rows.every(({ listed }) => listed.bytesSent + listed.bytesReceived === 0) && (
        <p class="small muted">{NO_VOLUME}: no bytes of these platforms are known.</p>
      )}
    </>
  )
}

interface DecisionFormProps extends Omit<PlatformsProps, 'undo'> {
  readonly children: VNode
}

/** The form around the table, with the buttons that decide about the selected platforms. */
function DecisionForm({ visit, form, children }: DecisionFormProps) {
  const query = filtersOf(visit.request.query)
  const to = (word: string): string => (query.size > 0 ? `/decisions/${word}?${query}` : `/decisions/${word}`)
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
        <details open={Object.keys(form.errors).some((name) => name !== '')}>
          <summary class="small muted">Note, owner and expiry</summary>
          <div class="terms">
            <TermsFields form={form} nowMs={visit.nowMs} />
          </div>
        </details>
      </section>
    </form>
  )
}

function PlatformFilters({ visit, view }: { readonly visit: Visit; readonly view: PlatformsView }) {
  const { rows, total } = view
  const sorting = visit.request.query.get('sort') ?? ''
  const found = rows.length === total ? `all ${countText(total)}` : `${countText(rows.length)} of ${countText(total)}`
  const types = view.types.map((each) => [each, typeNameOf(each)] as const)
  return (
    <Filters action={PATH} found={found} foundId="platforms-count">
      {sorting !== '' && <input type="hidden" name="sort" value={sorting} />}
      <FilterSearch value={view.search} table="platforms" />
      <RangeFields range={view.range} windowDays={visit.organization.evidenceWindowDays} nowMs={visit.nowMs} />
      <FilterSelect name="state" label="Decision" value={view.state} options={Object.entries(STATE_NAMES)} />
      <FilterSelect name="use" label="Use" value={view.use} options={USE_OPTIONS} />
      <FilterSelect name="new" label="First found" value={view.newDays} options={NEW_NAMES} />
      <FilterSelect name="type" label="Type" value={view.type} options={[['', 'All'], ...types]} />
    </Filters>
  )
}

const VERBS: Readonly<Record<DecisionWord, string>> = {
  approve: 'Approve',
  reject: 'Reject',
  withdraw: 'Withdraw the decisions about',
}

/** A decision about more platforms than this is confirmed. */
const UNCONFIRMED_MAX = 20
/** A form with as many platforms as can have a decision. */
const SELECTION_FORM = { bodyBytesMax: 256 * 1024, fieldsMax: FORM_FIELDS_MAX + DECIDED_PLATFORMS_MAX }

export const DISCOVERY_ROUTES: readonly Route[] = [
  page(PATH, 'discovery.read', (visit) => platformsPage(visit, EMPTY_FORM)),
  csvFile(PATH, 'discovery.read', COLUMNS, (visit) => {
    const decisions = lastDecisions(visit)
    return platformsView(visit).rows.map((row) => ({ ...row, terms: decisions.get(row.id ?? '') }))
  }),
  form('/decisions/undo', 'approval.undo', undo),
  ...DECISION_WORDS.map((word) =>
    form(`/decisions/${word}`, DECISION_ACTIONS[word], (visit) => decideAll(visit, word), {
      ...SELECTION_FORM,
      again: (visit, state) => platformsPage(visit, state),
    }),
  ),
]

/** Undoes the last decisions of the member, and returns to the page of the form. */
async function undo(visit: Visit): Promise<Answer> {
  const { fields } = visit.request
  await visit.change('approval.undo', { decidedAtMs: Number(fields.text('at')) })
  const from = fields.text('from')
  const to = from === 'overview' ? '/overview' : from === '' ? PATH : platformPath(from)
  return redirect(`${to}?done=undone`)
}

/** Decides about the selected platforms. The query has the filters of the page. */
async function decideAll(visit: Visit, word: DecisionWord): Promise<Answer> {
  const { fields, query } = visit.request
  const selected = selectedPlatforms(visit)
  if (selected.length === 0) throw new RejectedForm({ '': 'Select at least one platform' })
  const decided = word === 'withdraw' ? selected.filter(({ state }) => state !== 'waiting') : selected
  const platforms = decided.map(({ id }) => id)
  if (platforms.length === 0) throw new RejectedForm({ '': 'There is no decision about the selected platforms' })
  const to = filtersOf(query)
  if (platforms.length > UNCONFIRMED_MAX && fields.text('confirmed') === '') {
    const what = `${VERBS[word]} ${platforms.length} platforms`
    return visit.page(
      'Platforms',
      PATH,
      ConfirmDecision({ action: `/decisions/${word}?${to}`, what, fields, back: to }),
    )
  }
  await decide(visit, word, platforms)
  if (query.get('from') === 'overview') return redirect(`/overview?done=${DONE[word]}`)
  to.set('done', DONE[word])
  to.set('count', String(platforms.length))
  return redirect(`${PATH}?${to}`)
}

/** Makes a decision, with the terms of the form. @throws RejectedForm */
export async function decide(visit: Visit, word: DecisionWord, platforms: readonly string[]): Promise<void> {
  if (word === 'withdraw') await visit.change('approval.remove', { platforms })
  else await visit.change(DECISION_ACTIONS[word], { platforms, ...readTerms(visit) })
}

/** @throws RejectedForm if one is unknown */
function selectedPlatforms(visit: Visit) {
  const decisions = visit.site.store.environment.read(() => new DecisionsByName(visit))
  return [...new Set(visit.request.fields.all('platform'))].map((name) => {
    const platform = decisions.get(name)
    if (platform !== undefined) return platform
    throw new RejectedForm({ '': 'A selected platform is no longer in the registry. Select again' })
  })
}

interface ConfirmDecisionProps {
  /** The path of the decision, with the filters of the list. */
  readonly action: string
  /** What happens to how many: `Reject 914 platforms`. */
  readonly what: string
  readonly fields: FormFields
  /** The filters of the list. */
  readonly back: URLSearchParams
}

/** Asks before a decision about many platforms, because it concerns more than one screen shows. */
function ConfirmDecision({ action, what, fields, back }: ConfirmDecisionProps) {
  return (
    <>
      <PageHead
        title={`${what}?`}
        about="The selection is larger than one screen. Each platform gets the same decision."
      />
      <NarrowCard>
        <Form action={action} submit={what} cancel={`${PATH}?${back}`}>
          <Hidden fields={[...fields.without(), ['confirmed', 'yes']]} />
        </Form>
      </NarrowCard>
    </>
  )
}

function platformsPage(visit: Visit, form: FormState): Answer {
  const count = countOf(Number(visit.request.query.get('count')) || 0, 'platform is', 'platforms are')
  const scan = 'The requested scan updates the risk'
  const done = {
    approved: `${count} approved. ${scan}`,
    rejected: `${count} rejected. ${scan}`,
    withdrawn: `${count} waiting for a decision again. ${scan}`,
    undone: UNDONE,
  }
  return visit.page('Platforms', PATH, Platforms({ visit, form, undo: undoOf(visit) }), { form, done })
}
