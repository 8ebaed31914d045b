import { z } from 'zod'
import { lawFrom } from '../../engine/assess/grade.ts'
import { byPriority } from '../../engine/assess/publish.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { frameworkName } from '../../engine/store/framework.ts'
import {
  RECOMMENDATION_STATUSES,
  type Recommendation,
  type RecommendationStatus,
} from '../../engine/store/recommendations.ts'
import { CsvLink, FilterSelect, Filters, PagedTable, paged } from '../design/list.tsx'
import { countText, Empty, Notice, PageHead, Tag } from '../design/parts.tsx'
import { type Column, countColumn, filtersOf, textColumn, timeColumn } from '../design/table.tsx'
import { EMPTY_FORM, type FormState } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

const RECOMMENDATIONS_PER_PAGE = 50

/** The value of the filter for recommendations without an owner. No name is a single hyphen. */
const NO_OWNER = '-'

/** The organization's recommendations with the query's `status`, `framework` and `owner`, by priority. */
function recommendationsView({ site, organization, request: { query } }: Visit) {
  const all = site.store.recommendations.ofOrganization(organization.id)
  const named = query.get('status')
  // 'to-do': open or in progress.
  const status = named === 'all' ? 'all' : (RECOMMENDATION_STATUSES.find((each) => each === named) ?? 'to-do')
  const frameworks = [...new Set(all.map(({ frameworkId }) => frameworkId))].sort()
  const framework = frameworks.find((each) => each === query.get('framework')) ?? ''
  const owners = [...new Set(all.map(({ owner }) => owner))].filter((each) => each !== '').sort()
  const owner = [NO_OWNER, ...owners].find((each) => each === query.get('owner')) ?? ''
  const found = all
    .filter((each) => matches(each.status, status) && (framework === '' || each.frameworkId === framework))
    .filter((each) => owner === '' || each.owner === (owner === NO_OWNER ? '' : owner))
    .sort(byPriority)
  return { found, total: all.length, status, framework, frameworks, owner, owners }
}

function matches(status: RecommendationStatus, wanted: RecommendationStatus | 'to-do' | 'all'): boolean {
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
  readonly visit: Visit
  /** The form that was rejected, and the id of its recommendation; '' if it is of several. */
  readonly form: FormState
  readonly id: string | undefined
}

function Recommendations({ visit, form, id }: RecommendationsProps) {
  const { query } = visit.request
  const view = recommendationsView(visit)
  const { found, total } = view
  const [error] = Object.values(form.errors)
  const mayChange = visit.may('recommendation.status')
  const change: Column<Recommendation> = {
    id: 'change',
    name: 'Status, owner and due date',
    action: 'recommendation.status',
    cell: (row) => <ChangeForm recommendation={row} form={row.id === id ? form : undefined} query={query} />,
  }
  return (
    <>
      <PageHead title="Recommendations" about="What completed assessments ask for, the most urgent first">
        {total > 0 && <CsvLink path={PATH} query={query} />}
      </PageHead>
      {error !== undefined && <Notice tone="bad" title={error} />}
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
          <PagedTable
            {...{ visit, id: 'recommendations', label: 'Recommendations' }}
            rows={paged(found, query, 'page', RECOMMENDATIONS_PER_PAGE)}
            columns={mayChange ? [SELECTION, ...DESCRIBING, change] : [...DESCRIBING, ...READ_ONLY]}
            empty={
              <Empty title="No recommendation matches">
                <p>
                  <a href={`${PATH}?status=all`}>Show all {countText(total)}</a>
                </p>
              </Empty>
            }
          />
          {mayChange && found.length > 0 && <BulkForm query={query} form={id === '' ? form : EMPTY_FORM} />}
        </>
      )}
    </>
  )
}

/** The path of a form, with the filters of the page to return to. */
function actionOf(path: string, query: URLSearchParams): string {
  const filters = filtersOf(query)
  return filters.size === 0 ? path : `${path}?${filters}`
}

/** Sets the status of the selected rows, whose check boxes name this form. */
function BulkForm({ query, form }: { readonly query: URLSearchParams; readonly form: FormState }) {
  const status = form.values.text('status') || 'in_progress'
  return (
    <form id="bulk" class="card bulk" method="post" action={actionOf(PATH, query)}>
      <div class="row status">
        <output class="small muted" data-counts="id">
          Select recommendations
        </output>
        <StatusFields status={status} reason={form.values.text('reason')} of="the selected" />
        <button type="submit">Set the status</button>
      </div>
    </form>
  )
}

interface StatusFieldsProps {
  readonly status: string
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

function RecommendationFilters({ view }: { readonly view: ReturnType<typeof recommendationsView> }) {
  const { found, total, status, framework, frameworks, owner, owners } = view
  const statuses = [['to-do', 'To do'], ...Object.entries(STATUS_NAMES), ['all', 'All']] as const
  return (
    <Filters action={PATH} found={`${countText(found.length)} of ${countText(total)}`}>
      <FilterSelect name="status" label="Status" value={status} options={statuses} />
      <FilterSelect
        name="framework"
        label="Framework"
        value={framework}
        options={[['', 'All'], ...frameworks.map((id) => [id, frameworkName(id)] as const)]}
      />
      <FilterSelect
        name="owner"
        label="Owner"
        value={owner}
        options={[['', 'All'], [NO_OWNER, 'Nobody'], ...owners.map((each) => [each, each] as const)]}
      />
    </Filters>
  )
}

/** The columns of the CSV file. */
function csvColumns(nowMs: number): readonly Column<Recommendation>[] {
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
    timeColumn('created', 'Created', ({ createdAtMs }) => createdAtMs),
    timeColumn('changed', 'Status changed', ({ statusChangedAtMs }) => statusChangedAtMs),
  ]
}

const DESCRIBING: readonly Column<Recommendation>[] = [
  {
    id: 'priority',
    name: 'Priority',
    cell: ({ priority }) => <Tag tone={priority === 1 ? 'bad' : priority === 2 ? 'warn' : 'plain'}>{priority}</Tag>,
  },
  {
    id: 'title',
    name: 'Recommendation',
    cell: ({ title, frameworkId, itemId, category }, { nowMs }) => {
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

const READ_ONLY: readonly Column<Recommendation>[] = [
  {
    id: 'status',
    name: 'Status',
    cell: ({ status, reason }) => [STATUS_NAMES[status], reason].filter(Boolean).join(': '),
  },
  { id: 'owner', name: 'Owner', cell: ({ owner }) => owner },
  { id: 'due', name: 'Due', cell: ({ dueOn = '' }) => dueOn },
]

/** Check boxes of the rows, for BulkForm. */
const SELECTION: Column<Recommendation> = {
  id: 'select',
  name: 'Select',
  // Only the browser script can select all rows.
  heading: <input type="checkbox" aria-label="Select all" data-selects="id" hidden />,
  cell: ({ id, title }) => <input type="checkbox" form="bulk" name="id" value={id} aria-label={`Select: ${title}`} />,
}

interface ChangeFormProps {
  readonly recommendation: Recommendation
  /** The form, if it was rejected. */
  readonly form: FormState | undefined
  readonly query: URLSearchParams
}

function ChangeForm({ recommendation, form, query }: ChangeFormProps) {
  const { id, title, status, owner, dueOn = '', reason = '' } = recommendation
  const typed = (name: string, stored: string): string => form?.values.text(name, stored) ?? stored
  return (
    <form class="inline status" method="post" action={actionOf(`${PATH}/${id}`, query)}>
      <StatusFields status={typed('status', status)} reason={typed('reason', reason)} of={title} />
      <input
        name="owner"
        value={typed('owner', owner)}
        maxLength={255}
        placeholder="Owner"
        aria-label={`Owner of: ${title}`}
        aria-invalid={form !== undefined || undefined}
      />
      <input name="due" type="date" value={typed('due', dueOn)} aria-label={`Due date of: ${title}`} />
      <button type="submit" aria-label={`Save the status, owner and due date of: ${title}`}>
        Save
      </button>
    </form>
  )
}

const PATH = '/recommendations'

const given = z.object({
  status: z.enum(RECOMMENDATION_STATUSES, `Status: expected ${RECOMMENDATION_STATUSES.join(', ')}`),
  reason: z.string().trim().default(''),
  owner: z.string().trim().optional(),
  due: z.string().optional(),
})

export const RECOMMENDATION_ROUTES: readonly Route[] = [
  page(PATH, 'recommendation.read', (visit) => recommendationsPage(visit, EMPTY_FORM)),
  csvFile(
    PATH,
    'recommendation.read',
    ({ nowMs }) => csvColumns(nowMs),
    (visit) => recommendationsView(visit).found,
  ),
  form(
    `${PATH}/:id`,
    'recommendation.status',
    async (visit, { id }) => {
      const { status, reason, owner, due } = visit.read(given)
      const [before] = existing(visit, [id]) as [Recommendation]
      // The owner first: it may be refused, and then nothing is changed.
      const assigned = { owner: owner ?? before.owner, dueOn: due ?? before.dueOn ?? '' }
      if (assigned.owner !== before.owner || assigned.dueOn !== (before.dueOn ?? '')) {
        await visit.change('recommendation.owner', { id, ...assigned })
      }
      if (status !== before.status) await visit.change('recommendation.status', { id, status, reason })
      return saved(visit)
    },
    { again: (visit, state, { id }) => recommendationsPage(visit, state, id) },
  ),
  form(
    PATH,
    'recommendation.status',
    async (visit) => {
      const { status, reason } = visit.read(given)
      const selected = existing(visit, visit.request.fields.all('id'))
      if (selected.length === 0) throw new Fault('USAGE', 'Select recommendations first')
      for (const { id, status: before } of selected) {
        if (status !== before) await visit.change('recommendation.status', { id, status, reason })
      }
      return saved(visit)
    },
    { again: (visit, state) => recommendationsPage(visit, state, '') },
  ),
]

/** Returns to the list. */
function saved({ request }: Visit): Answer {
  const back = filtersOf(request.query)
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

/** @param id of the recommendation whose form was rejected; '' if it was of several */
function recommendationsPage(visit: Visit, form: FormState, id?: string): Answer {
  const done = { saved: 'Saved. The API shows the status with the next request' }
  return visit.page('Recommendations', PATH, Recommendations({ visit, form, id }), { form, done })
}
