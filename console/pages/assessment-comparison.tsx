import type { ItemDifference } from '../../engine/assess/compare.ts'
import { changeText, dateText } from '../../engine/export/report/text.ts'
import type { Answer } from '../../engine/store/assessments.ts'
import { CsvLink } from '../design/csv-link.tsx'
import { FilterSelect, Filters } from '../design/filters.tsx'
import type { Paged } from '../design/paged.ts'
import { NumberedPages } from '../design/pages-links.tsx'
import { Card, countOf, PageHead } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { ComparisonView } from '../views/assessments.ts'
import { answerName } from './assessment-item.tsx'

export interface ComparisonPageProps {
  readonly view: ComparisonView
  readonly items: Paged<ItemDifference>
  readonly query: URLSearchParams
}

/** What changed between two assessments, and why the score moved. */
export function ComparisonPage({ view, items, query }: ComparisonPageProps) {
  const { before, after, others, score, scoreBefore, unchanged, otherEffects } = view
  const path = `/assessments/${after.id}/compare`
  return (
    <>
      <div>
        <p class="crumb">
          <a href="/assessments">Assessments</a> / <a href={`/assessments/${after.id}`}>{after.title}</a>
        </p>
        <PageHead title="What changed" about={`${before.title} → ${after.title}`}>
          <CsvLink path={path} query={query} />
        </PageHead>
      </div>
      {others.length > 1 && (
        <Filters action={path}>
          <FilterSelect
            name="with"
            label="Compared with"
            value={before.id}
            options={others.map(({ id, title, completedAtMs }) => [id, `${title}, ${dateText(completedAtMs)}`])}
          />
        </Filters>
      )}
      <Card title="Score">
        <p>
          {scoreBefore ?? 'none'} → {score ?? 'none'}
          {score !== null && scoreBefore !== null && ` (${changeText(score - scoreBefore)})`}.{' '}
          {countOf(items.total, 'item')} changed, {unchanged} unchanged.
        </p>
        {otherEffects !== 0 && (
          <p class="small muted">
            {changeText(otherEffects)} points are of items that were added, removed, or apply now and did not before.
          </p>
        )}
      </Card>
      <Card title="Changed items" note={countOf(items.total, 'item')} bare>
        <Table id="changed" label="Changed items" columns={differenceColumns()} rows={items.rows} />
      </Card>
      <NumberedPages of={items} query={query} />
    </>
  )
}

function nameOf(answer: Answer | undefined): string {
  return answer === undefined ? 'Absent' : answerName(answer)
}

/** The columns of the page and of its CSV file. */
export function differenceColumns(): readonly Column<ItemDifference>[] {
  return [
    {
      id: 'title',
      name: 'Item',
      cell: ({ itemId, title, category }) => (
        <>
          {title}
          <p class="small muted">
            <span class="mono">{itemId}</span> · {category}
          </p>
        </>
      ),
      csv: ({ itemId }) => itemId,
    },
    { id: 'was', name: 'Before', cell: ({ was }) => nameOf(was), csv: ({ was = 'absent' }) => was },
    { id: 'now', name: 'After', cell: ({ now }) => nameOf(now), csv: ({ now = 'absent' }) => now },
    {
      id: 'effect',
      name: 'Points',
      cell: ({ effect }) => (effect === undefined ? '' : changeText(effect)),
      csv: ({ effect = '' }) => effect,
      number: true,
    },
  ]
}
