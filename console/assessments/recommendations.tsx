import { lawFrom } from '../../engine/assess/grade.ts'
import { byPriority } from '../../engine/assess/publish.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { frameworkName } from '../../engine/store/framework.ts'
import {
  RECOMMENDATION_STATUSES,
  type Recommendation,
  type RecommendationStatus,
} from '../../engine/store/recommendations.ts'
import { CSV_ROWS_MAX, CsvLink, FilterSelect, Filters, NumberedPages, type Paged, paged } from '../design/list.tsx'
import { countText, Empty, Notice, PageHead, Tag } from '../design/parts.tsx'
import { type Column, countColumn, Table, textColumn, timeColumn } from '../design/table.tsx'
import { refusedForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

const RECOMMENDATIONS_PER_PAGE = 50

interface RecommendationsView {
  /** The recommendations that match the filters, by priority, then newest first. */
  readonly found: Paged<Recommendation>
  readonly total: number
  /** 'to-do': open or in progress. */
  readonly status: RecommendationStatus | 'to-do' | 'all'
  readonly framework: string
  /** The frameworks of the recommendations, for the filter. */
  readonly frameworks: readonly (readonly [id: string, name: string])[]
  /** '': every owner. '-': recommendations without an owner. */
  readonly owner: string
  /** The owners of the recommendations, for the filter. */
  readonly owners: readonly string[]
}

/** The value of the filter for recommendations without an owner. No name is a single hyphen. */
const NO_OWNER = '-'

/**
 * The organization's recommendations, filtered and paged by the query's `status`, `framework`,
 * `owner` and `page`.
 */
function recommendationsView(
  { site, organization }: Visit,
  query: URLSearchParams,
  perPage = RECOMMENDATIONS_PER_PAGE,
): RecommendationsView {
  const all = site.store.recommendations.ofOrganization(organization.id)
  const named = query.get('status')
  const status = named === 'all' ? 'all' : (RECOMMENDATION_STATUSES.find((each) => each === named) ?? 'to-do')
  const ids = [...new Set(all.map(({ frameworkId }) => frameworkId))].sort()
  const framework = ids.find((each) => each === query.get('framework')) ?? ''
  const owners = [...new Set(all.map(({ owner }) => owner))].filter((each) => each !== '').sort()
  const owner = [NO_OWNER, ...owners].find((each) => each === query.get('owner')) ?? ''
  const found = all
    .filter((each) => matches(each.status, status) && (framework === '' || each.frameworkId === framework))
    .filter((each) => owner === '' || each.owner === (owner === NO_OWNER ? '' : owner))
    .sort(byPriority)
  return {
    found: paged(found, query, 'page', perPage),
    total: all.length,
    status,
    framework,
    owner,
    owners,
    frameworks: ids.map((id) => [id, frameworkName(id)]),
  }
}

function matches(status: RecommendationStatus, wanted: RecommendationsView['status']): boolean {
  if (wanted === 'all') return true
  return wanted === 'to-do' ? status === 'open' || status === 'in_progress' : status === wanted
}

const STATUS_NAMES: Readonly<Record<RecommendationStatus, string>> = {
  open: 'Open',
  in_progress: 'In progress',
  completed: 'Completed',
  dismissed: 'Dismissed',
}

interface RecommendationsProps {
  readonly view: RecommendationsView
  readonly query: URLSearchParams
  readonly nowMs: number
  readonly mayChange: boolean
  /** The change that was rejected. undefined if none was. */
  readonly refused: RefusedChange | undefined
  readonly done: string
}

/** A rejected change. Its form shows the submitted values again. */
interface RefusedChange {
  /** '' if it is of several. */
  readonly id: string
  readonly status: RecommendationStatus
  readonly owner: string
  readonly dueOn: string
  /** Why it is dismissed. */
  readonly reason: string
  /** Why it was rejected. */
  readonly message: string
}

function Recommendations({ view, query, nowMs, mayChange, refused, done }: RecommendationsProps) {
  const { found, total } = view
  return (
    <>
      <PageHead title="Recommendations" about="What completed assessments ask for, the most urgent first">
        {total > 0 && <CsvLink path="/recommendations" query={query} />}
      </PageHead>
      {refused !== undefined && <Notice tone="bad" title={refused.message} />}
      {refused === undefined && done === 'saved' && (
        <Notice title="Saved. The API shows the status with the next request" />
      )}
      {total === 0 ? (
        <Empty title="No recommendation yet">
          <p class="muted">A completed assessment has one for each control that is not fully met.</p>
          <a class="button" href="/assessments">
            Show assessments
          </a>
        </Empty>
      ) : (
        <>
          <RecommendationFilters view={view} />
          {found.total === 0 ? (
            <Empty title="No recommendation matches">
              <p>
                <a href="/recommendations?status=all">Show all {countText(total)}</a>
              </p>
            </Empty>
          ) : (
            <>
              <div class="card">
                <Table
                  id="recommendations"
                  label="Recommendations"
                  columns={columns(mayChange, query, refused, nowMs)}
                  rows={found.rows}
                />
              </div>
              {mayChange && <BulkForm query={query} refused={refused?.id === '' ? refused : undefined} />}
            </>
          )}
          <NumberedPages of={found} query={query} />
        </>
      )}
    </>
  )
}

/** Sets the status of the selected rows, whose check boxes name this form. */
function BulkForm({
  query,
  refused,
}: {
  readonly query: URLSearchParams
  readonly refused: RefusedChange | undefined
}) {
  return (
    <form id="bulk" class="card bulk" method="post" action="/recommendations">
      <Back query={query} />
      <div class="row status">
        <output class="small muted" data-counts="id">
          Select recommendations
        </output>
        <StatusFields status={refused?.status ?? 'in_progress'} reason={refused?.reason ?? ''} of="the selected" />
        <button type="submit">Set the status</button>
      </div>
    </form>
  )
}

/** The query of the page to return to. */
function Back({ query }: { readonly query: URLSearchParams }) {
  const kept = new URLSearchParams(query)
  kept.delete('done')
  return kept.size === 0 ? null : <input type="hidden" name="back" value={kept.toString()} />
}

interface StatusFieldsProps {
  readonly status: RecommendationStatus
  readonly reason: string
  /** For screen readers. */
  readonly of: string
}

/** The reason is shown if the status is dismissed, and in browsers that cannot hide it. */
function StatusFields({ status, reason, of }: StatusFieldsProps) {
  return (
    <>
      <select name="status" aria-label={`Status of: ${of}`}>
        {RECOMMENDATION_STATUSES.map((each) => (
          <option key={each} value={each} selected={each === status}>
            {STATUS_NAMES[each]}
          </option>
        ))}
      </select>
      <input
        class="reason"
        name="reason"
        value={reason}
        maxLength={255}
        placeholder="Reason"
        aria-label={`Why dismissed: ${of}`}
      />
    </>
  )
}

function RecommendationFilters({ view }: { readonly view: RecommendationsView }) {
  const statuses = [['to-do', 'To do'], ...Object.entries(STATUS_NAMES), ['all', 'All']] as const
  return (
    <Filters action="/recommendations" found={`${countText(view.found.total)} of ${countText(view.total)}`}>
      <FilterSelect name="status" label="Status" value={view.status} options={statuses} />
      <FilterSelect
        name="framework"
        label="Framework"
        value={view.framework}
        options={[['', 'All'], ...view.frameworks]}
      />
      <FilterSelect
        name="owner"
        label="Owner"
        value={view.owner}
        options={[['', 'All'], [NO_OWNER, 'Nobody'], ...view.owners.map((owner) => [owner, owner] as const)]}
      />
    </Filters>
  )
}

/** The columns of the CSV file. */
function recommendationColumns(nowMs: number): readonly Column<Recommendation>[] {
  return [
    countColumn('priority', 'Priority', ({ priority }) => priority),
    textColumn('title', 'Recommendation', ({ title }) => title),
    textColumn('framework', 'Framework', ({ frameworkId }) => frameworkName(frameworkId)),
    textColumn('item', 'Item', ({ itemId }) => itemId),
    textColumn('category', 'Category', ({ category }) => category),
    textColumn('status', 'Status', ({ status }) => status),
    textColumn('reason', 'Reason', ({ reason = '' }) => reason),
    textColumn('owner', 'Owner', ({ owner }) => owner),
    textColumn('due', 'Due', ({ dueOn = '' }) => dueOn),
    textColumn('law', 'Law from', ({ frameworkId, itemId }) => lawFrom(frameworkId, itemId, nowMs) ?? ''),
    timeColumn('created', 'Created', nowMs, ({ createdAtMs }) => createdAtMs),
    timeColumn('changed', 'Status changed', nowMs, ({ statusChangedAtMs }) => statusChangedAtMs),
  ]
}

function columns(
  mayChange: boolean,
  query: URLSearchParams,
  refused: RefusedChange | undefined,
  nowMs: number,
): readonly Column<Recommendation>[] {
  const shown: readonly Column<Recommendation>[] = [
    {
      id: 'priority',
      name: 'Priority',
      cell: ({ priority }) => <Tag tone={priority === 1 ? 'bad' : priority === 2 ? 'warn' : 'plain'}>{priority}</Tag>,
    },
    {
      id: 'title',
      name: 'Recommendation',
      cell: ({ title, frameworkId, itemId, category }) => {
        const from = lawFrom(frameworkId, itemId, nowMs)
        return (
          <>
            {title} {from !== undefined && <Tag>Not in force until {from}</Tag>}
            <p class="small muted">
              {frameworkName(frameworkId)} {itemId} · {category}
            </p>
          </>
        )
      },
    },
  ]
  if (mayChange) {
    const cell = (row: Recommendation) => (
      <ChangeForm recommendation={row} refused={refused?.id === row.id ? refused : undefined} query={query} />
    )
    return [SELECTION, ...shown, { id: 'status', name: 'Status, owner and due date', cell }]
  }
  return [
    ...shown,
    {
      id: 'status',
      name: 'Status',
      cell: ({ status, reason }) => [STATUS_NAMES[status], reason].filter(Boolean).join(': '),
    },
    { id: 'owner', name: 'Owner', cell: ({ owner }) => owner },
    { id: 'due', name: 'Due', cell: ({ dueOn = '' }) => dueOn },
  ]
}

interface ChangeFormProps {
  readonly recommendation: Recommendation
  readonly refused: RefusedChange | undefined
  readonly query: URLSearchParams
}

/** Check boxes of the rows, for BulkForm. */
const SELECTION: Column<Recommendation> = {
  id: 'select',
  name: 'Select',
  // Only the browser script can select all rows.
  heading: <input type="checkbox" aria-label="Select all" data-selects="id" hidden />,
  cell: ({ id, title }) => <input type="checkbox" form="bulk" name="id" value={id} aria-label={`Select: ${title}`} />,
}

function ChangeForm({ recommendation, refused, query }: ChangeFormProps) {
  const { id, title } = recommendation
  const { status, owner, dueOn = '', reason = '' } = refused ?? recommendation
  return (
    <form class="inline status" method="post" action={`/recommendations/${id}`}>
      <Back query={query} />
      <StatusFields status={status} reason={reason} of={title} />
      <input
        name="owner"
        value={owner}
        maxLength={255}
        placeholder="Owner"
        aria-label={`Owner of: ${title}`}
        aria-invalid={refused !== undefined || undefined}
      />
      <input name="due" type="date" value={dueOn} aria-label={`Due date of: ${title}`} />
      <button type="submit" aria-label={`Save the status, owner and due date of: ${title}`}>
        Save
      </button>
    </form>
  )
}

const PATH = '/recommendations'

export const RECOMMENDATION_ROUTES: readonly Route[] = [
  page(PATH, 'recommendation.read', (visit) => recommendationsPage(visit, visit.request.query)),
  csvFile({
    path: PATH,
    access: 'recommendation.read',
    columns: ({ nowMs }) => recommendationColumns(nowMs),
    rows: (visit) => recommendationsView(visit, visit.request.query, CSV_ROWS_MAX + 1).found.rows,
  }),
  form(`${PATH}/:id`, 'recommendation.status', async (visit, { id }) => {
    const { fields } = visit.request
    const [owner] = fields.all('owner')
    const [dueOn] = fields.all('due')
    const [before] = existing(visit, [id]) as [Recommendation]
    return saved(visit, id, async ({ status, reason }) => {
      // The owner first: it may be refused, and then nothing is changed.
      const assigned = { owner: owner?.trim() ?? before.owner, dueOn: dueOn ?? before.dueOn ?? '' }
      if (assigned.owner !== before.owner || assigned.dueOn !== (before.dueOn ?? '')) {
        await visit.change('recommendation.owner', { id, ...assigned })
      }
      if (status !== before.status) await visit.change('recommendation.status', { id, status, reason })
    })
  }),
  form(PATH, 'recommendation.status', (visit) => {
    const selected = existing(visit, visit.request.fields.all('id'))
    return saved(visit, '', async ({ status, reason }) => {
      if (selected.length === 0) throw new Fault('USAGE', 'Select recommendations first')
      for (const { id, status: before } of selected) {
        if (status !== before) await visit.change('recommendation.status', { id, status, reason })
      }
    })
  }),
]

/** Makes a change of a form, and returns to the list; if it is rejected, with what was typed. */
async function saved(
  visit: Visit,
  id: string,
  change: (given: Pick<RefusedChange, 'status' | 'reason'>) => Promise<void>,
): Promise<Answer> {
  const { fields } = visit.request
  const named = fields.text('status')
  const status = RECOMMENDATION_STATUSES.find((each) => each === named)
  if (status === undefined) {
    const expected = RECOMMENDATION_STATUSES.join(', ')
    throw new Fault('USAGE', `Status: expected ${expected}, found ${JSON.stringify(named)}`)
  }
  const back = new URLSearchParams(fields.text('back').slice(0, 500))
  const reason = fields.text('reason').trim()
  try {
    await change({ status, reason })
  } catch (error) {
    const refused = refusedForm(error, fields)
    const message = refused.state.errors[''] ?? ''
    const given = { id, status, reason, owner: fields.text('owner'), dueOn: fields.text('due'), message }
    return recommendationsPage(visit, back, given, refused.status)
  }
  back.set('done', 'saved')
  return redirect(`${PATH}?${back}`)
}

/** @throws Fault NOT_FOUND. */
function existing({ site, organization }: Visit, ids: readonly string[]): Recommendation[] {
  const all = site.store.environment.read(() => site.store.recommendations.ofOrganization(organization.id))
  const byId = new Map(all.map((each) => [each.id, each]))
  return ids.map((id) => {
    const found = byId.get(id)
    if (found === undefined) throw new Fault('NOT_FOUND', 'This organization has no such recommendation')
    return found
  })
}

/** @param query the filters and the page of the list */
function recommendationsPage(visit: Visit, query: URLSearchParams, refused?: RefusedChange, status = 200): Answer {
  const content = Recommendations({
    view: visit.site.store.environment.read(() => recommendationsView(visit, query)),
    query,
    nowMs: visit.nowMs,
    mayChange: visit.may('recommendation.status'),
    refused,
    done: query.get('done') ?? '',
  })
  return visit.page('Recommendations', PATH, content, { status })
}
