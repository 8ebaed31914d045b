import { isOverdue, type OpenItem, workOf } from '../../engine/assess/work.ts'
import { isoDay } from '../../engine/kernel/process/clock.ts'
import { FilterSelect, Filters } from '../design/filters.tsx'
import type { Paged } from '../design/paged.ts'
import { NumberedPages } from '../design/pages-links.tsx'
import { countOf, Empty, PageHead, Tag } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import { answerName, pathOf } from './assessment-item.tsx'

export interface AssessmentItemsProps {
  readonly items: Paged<OpenItem>
  readonly owner: string
  /** The owners of all items in progress, and the member. */
  readonly owners: readonly string[]
  readonly query: URLSearchParams
  readonly nowMs: number
}

/** The items of one owner in all assessments in progress. */
export function AssessmentItems({ items, owner, owners, query, nowMs }: AssessmentItemsProps) {
  return (
    <>
      <div>
        <p class="crumb">
          <a href="/assessments">Assessments</a>
        </p>
        <PageHead title="Items by owner" about="Of all assessments in progress, those that are due first" />
      </div>
      <Filters action="/assessments/items" found={countOf(items.total, 'item')}>
        <FilterSelect name="owner" label="Owner" value={owner} options={owners.map((each) => [each, each])} />
      </Filters>
      {items.total === 0 ? (
        <Empty title="No item of an assessment in progress has this owner" />
      ) : (
        <div class="card">
          <Table id="items" label="Items" columns={columns(isoDay(nowMs))} rows={items.rows} />
        </div>
      )}
      <NumberedPages of={items} query={query} />
    </>
  )
}

function columns(today: string): readonly Column<OpenItem>[] {
  return [
    {
      id: 'title',
      name: 'Item',
      cell: (row) => (
        <>
          <a href={pathOf(row.assessment.id, row)}>{row.item.title}</a>
          <p class="small muted">
            <span class="mono">{row.item.id}</span> · {row.assessment.title}
          </p>
        </>
      ),
    },
    { id: 'answer', name: 'Answer', cell: ({ item }) => answerName(item.answer) },
    {
      id: 'due',
      name: 'Due',
      cell: ({ assessment, item }) => (
        <>
          {workOf(item).dueOn} {isOverdue(assessment, item, today) && <Tag tone="warn">Overdue</Tag>}
        </>
      ),
    },
  ]
}
