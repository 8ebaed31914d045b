import { FRAMEWORKS } from '../../engine/store/framework.ts'
import {
  RECOMMENDATION_STATUSES,
  type Recommendation,
  type RecommendationStatus,
} from '../../engine/store/recommendations.ts'
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
          <Filters view={view} />
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

function Filters({ view }: { readonly view: RecommendationsView }) {
  const statuses = [['to-do', 'To do'], ...Object.entries(STATUS_NAMES), ['all', 'All']] as const
  return (
    <form class="filters" method="get" action="/recommendations">
      <div class="field">
        <label for="status">Status</label>
        <select id="status" name="status">
          {statuses.map(([status, name]) => (
            <option key={status} value={status} selected={status === view.status}>
              {name}
            </option>
          ))}
        </select>
      </div>
      <div class="field">
        <label for="framework">Framework</label>
        <select id="framework" name="framework">
          <option value="">All</option>
          {view.frameworks.map(([id, name]) => (
            <option key={id} value={id} selected={id === view.framework}>
              {name}
            </option>
          ))}
        </select>
      </div>
      <button type="submit">Filter</button>
      <output class="muted small">
        {countText(view.found)} of {countText(view.total)}
      </output>
    </form>
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
