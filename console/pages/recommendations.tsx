import { FRAMEWORKS } from '../../engine/store/framework.ts'
import {
  RECOMMENDATION_STATUSES,
  type Recommendation,
  type RecommendationStatus,
} from '../../engine/store/recommendations.ts'
import { FilterSelect, Filters } from '../design/filters.tsx'
import { PagesLinks } from '../design/pages-links.tsx'
import { countText, Empty, Notice, PageHead, Tag } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { RecommendationsView } from '../views/recommendations.ts'

const STATUS_NAMES: Readonly<Record<RecommendationStatus, string>> = {
  open: 'Open',
  in_progress: 'In progress',
  completed: 'Completed',
  dismissed: 'Dismissed',
}

export interface RecommendationsProps {
  readonly view: RecommendationsView
  readonly query: URLSearchParams
  readonly mayChange: boolean
  readonly done: string
}

export function Recommendations({ view, query, mayChange, done }: RecommendationsProps) {
  const { rows, found, total, page, pages } = view
  return (
    <>
      <PageHead title="Recommendations" about="What completed assessments ask for, the most urgent first" />
      {done === 'status' && <Notice title="The status is changed. The API shows it with the next request" />}
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
          {found === 0 ? (
            <Empty title="No recommendation matches">
              <p>
                <a href="/recommendations?status=all">Show all {countText(total)}</a>
              </p>
            </Empty>
          ) : (
            <div class="card">
              <Table id="recommendations" label="Recommendations" columns={columns(mayChange, query)} rows={rows} />
            </div>
          )}
          <PagesLinks
            query={query}
            name="page"
            newer={page > 1 ? String(page - 1) : undefined}
            older={page < pages ? String(page + 1) : undefined}
            newerText="Previous page"
            olderText="Next page"
          />
        </>
      )}
    </>
  )
}

function RecommendationFilters({ view }: { readonly view: RecommendationsView }) {
  const statuses = [['to-do', 'To do'], ...Object.entries(STATUS_NAMES), ['all', 'All']] as const
  return (
    <Filters action="/recommendations" found={`${countText(view.found)} of ${countText(view.total)}`}>
      <FilterSelect name="status" label="Status" value={view.status} options={statuses} />
      <FilterSelect
        name="framework"
        label="Framework"
        value={view.framework}
        options={[['', 'All'], ...view.frameworks]}
      />
    </Filters>
  )
}

function columns(mayChange: boolean, query: URLSearchParams): readonly Column<Recommendation>[] {
  const kept = new URLSearchParams(query)
  kept.delete('done')
  return [
    {
      id: 'priority',
      name: 'Priority',
      cell: ({ priority }) => <Tag tone={priority === 1 ? 'bad' : priority === 2 ? 'warn' : 'plain'}>{priority}</Tag>,
    },
    {
      id: 'title',
      name: 'Recommendation',
      cell: ({ title, frameworkId, itemId, category }) => (
        <>
          {title}
          <p class="small muted">
            {FRAMEWORKS[frameworkId]} {itemId} · {category}
          </p>
        </>
      ),
    },
    {
      id: 'status',
      name: 'Status',
      cell: (recommendation) =>
        mayChange ? <StatusForm {...{ recommendation }} back={kept.toString()} /> : STATUS_NAMES[recommendation.status],
    },
  ]
}

interface StatusFormProps {
  readonly recommendation: Recommendation
  /** The query of the page to return to. */
  readonly back: string
}

function StatusForm({ recommendation: { id, title, status }, back }: StatusFormProps) {
  return (
    <form class="inline status" method="post" action={`/recommendations/${id}`}>
      {back !== '' && <input type="hidden" name="back" value={back} />}
      <select name="status" aria-label={`Status of: ${title}`}>
        {RECOMMENDATION_STATUSES.map((each) => (
          <option key={each} value={each} selected={each === status}>
            {STATUS_NAMES[each]}
          </option>
        ))}
      </select>
      <button type="submit" aria-label={`Save the status of: ${title}`}>
        Save
      </button>
    </form>
  )
}
