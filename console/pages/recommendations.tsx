import { lawFrom } from '../../engine/assess/law.ts'
import { frameworkName } from '../../engine/store/framework.ts'
import {
  RECOMMENDATION_STATUSES,
  type Recommendation,
  type RecommendationStatus,
} from '../../engine/store/recommendations.ts'
import { countColumn, textColumn, timeColumn } from '../design/columns.tsx'
import { CsvLink } from '../design/csv-link.tsx'
import { FilterSelect, Filters } from '../design/filters.tsx'
import { NumberedPages } from '../design/pages-links.tsx'
import { countText, Empty, Notice, PageHead, Tag } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import { NO_OWNER, type RecommendationsView } from '../views/recommendations.ts'

const STATUS_NAMES: Readonly<Record<RecommendationStatus, string>> = {
  open: 'Open',
  in_progress: 'In progress',
  completed: 'Completed',
  dismissed: 'Dismissed',
}

export interface RecommendationsProps {
  readonly view: RecommendationsView
  readonly query: URLSearchParams
  readonly nowMs: number
  readonly mayChange: boolean
  /** The change that was rejected. undefined if none was. */
  readonly refused: RefusedChange | undefined
  readonly done: string
}

/** A rejected change. Its form shows the submitted values again. */
export interface RefusedChange {
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

export function Recommendations({ view, query, nowMs, mayChange, refused, done }: RecommendationsProps) {
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
export function recommendationColumns(nowMs: number): readonly Column<Recommendation>[] {
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
