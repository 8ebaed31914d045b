import { basisText } from '../../engine/assess/basis.ts'
import type { ItemDifference } from '../../engine/assess/compare.ts'
import type { ItemChange } from '../../engine/assess/items.ts'
import { itemKey } from '../../engine/assess/rules.ts'
import { pointsOf } from '../../engine/assess/score.ts'
import { isOverdue, type OpenItem, workOf } from '../../engine/assess/work.ts'
import { changeText, dateText } from '../../engine/export/report/text.ts'
import { isoDay } from '../../engine/kernel/process/clock.ts'
import { type Answer, type AssessmentCategory, frameworkOf } from '../../engine/store/assessments.ts'
import { profileText } from '../../engine/store/framework.ts'
import { Bar } from '../design/chart.tsx'
import type { Paged } from '../design/list.tsx'
import { CsvLink, FilterSelect, Filters, NumberedPages } from '../design/list.tsx'
import { Card, countOf, countText, Empty, Notice, PageHead, Tag, Time } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import { answerName, pathOf } from './item.tsx'
import { Grade, Progress } from './list.tsx'
import { type AssessmentView, type ComparisonView, type PreviousAssessment, progressOf } from './read.ts'

interface AssessmentProps {
  readonly view: AssessmentView
  readonly nowMs: number
  readonly mayAnswer: boolean
  readonly mayComplete: boolean
  /** Why a change was rejected; '' if none was. */
  readonly error: string
  readonly done: string
}

export function AssessmentPage(props: AssessmentProps) {
  const { view, nowMs, mayAnswer, mayComplete, error, done } = props
  const { assessment, categories, answered, items, previous, newer, changes } = view
  const { id, title, status, result, profile } = assessment
  const suggested = [...view.suggestions.values()].filter(({ answer }) => answer !== undefined).length
  return (
    <>
      <div>
        <p class="crumb">
          <a href="/assessments">Assessments</a> / {frameworkOf(assessment)}
        </p>
        <PageHead
          title={title}
          about={
            result === null ? (
              `${profileText(profile)}: ${answered} of ${countOf(items, 'item')} answered`
            ) : (
              <span class="facts">
                <Grade grade={result.grade} score={result.overallScore} />
                <span>{basisText(view.basis)}</span>
                <span>
                  completed <Time ms={assessment.completedAtMs} nowMs={nowMs} />
                </span>
              </span>
            )
          }
        >
          {status !== 'completed' && mayComplete && answered === items && (
            <form method="post" action={`/assessments/${id}/complete`}>
              <button class="first" type="submit">
                Complete
              </button>
            </form>
          )}
        </PageHead>
      </div>
      {error !== '' && <Notice tone="bad" title={error} />}
      {(newer !== undefined || (status === 'completed' && changes.length > 0)) && (
        <NewerItems id={id} changes={changes} isOpen={status !== 'completed'} mayAnswer={mayAnswer} />
      )}
      {done === 'updated' && <Notice title="The assessment has the current items" />}
      {done === 'completed' && (
        <Notice title="The assessment is completed">
          <p class="small">
            Its score and <a href="/recommendations">its recommendations</a> are in the API with the next request.
          </p>
        </Notice>
      )}
      {suggested > 0 && (
        <Notice title={`Completed assessments and discovery suggest ${countOf(suggested, 'answer')}`}>
          <p class="small">Each category shows them with their evidence. Accept or change each one.</p>
        </Notice>
      )}
      {view.basis.caveats.length > 0 && <Caveats view={view} />}
      {previous !== undefined && <Comparison view={view} previous={previous} nowMs={nowMs} />}
      {status !== 'completed' && answered === items && !mayComplete && (
        <Notice title="Every item is answered. An admin can complete the assessment" />
      )}
      <Card title="Categories" note={countText(categories.length)} bare>
        <Table id="categories" label="Categories" columns={categoryColumns(view)} rows={categoryRows(view)} />
      </Card>
    </>
  )
}

interface CategoryRow {
  readonly category: AssessmentCategory
  readonly at: number
  /** null until the assessment is completed, and if no item applies. */
  readonly score: number | null
  readonly scoreBefore: number | null
}

function categoryRows({ assessment, categories, previous }: AssessmentView): CategoryRow[] {
  const before = previous?.assessment.result?.categories
  return categories.map((category, at) => ({
    category,
    at,
    score: assessment.result?.categories[at]?.score ?? null,
    scoreBefore: before?.find(({ name }) => name === category.name)?.score ?? null,
  }))
}

function categoryColumns({ assessment: { id, status } }: AssessmentView): readonly Column<CategoryRow>[] {
  const name: Column<CategoryRow> = {
    id: 'name',
    name: 'Category',
    cell: ({ category, at }) => <a href={`/assessments/${id}/categories/${at}`}>{category.name}</a>,
  }
  if (status !== 'completed') {
    return [
      name,
      { id: 'progress', name: 'Answered', cell: ({ category }) => <Progress {...progressOf([category])} /> },
      { id: 'weight', name: 'Weight', cell: ({ category }) => category.weight, number: true, wide: true },
    ]
  }
  return [
    name,
    {
      id: 'score',
      name: 'Score',
      cell: ({ category, score }) =>
        score === null ? (
          <span class="muted">not applicable</span>
        ) : (
          <div class="progress">
            <Bar share={score / 100} label={`${category.name}: ${score} of 100`} />
            <span class="small muted">{score} of 100</span>
          </div>
        ),
    },
    {
      id: 'change',
      name: 'Change',
      cell: ({ score, scoreBefore }) => (score === null || scoreBefore === null ? '' : changeText(score - scoreBefore)),
      number: true,
    },
    { id: 'weight', name: 'Weight', cell: ({ category }) => category.weight, number: true, wide: true },
  ]
}

/** What a reader of the score has to know, with the reason. */
function Caveats({ view: { assessment, categories, basis } }: { readonly view: AssessmentView }) {
  const { caveats, unsupported } = basis
  const lost = unsupported.filter(({ gotWorse }) => gotWorse).length
  const categoryOf = (id: string): number => categories.findIndex(({ items }) => items.some((item) => item.id === id))
  const title = assessment.status === 'completed' ? 'Behind the score' : 'What the score will leave out'
  return (
    <>
      {lost > 0 && <Notice tone="bad" title={`Discovery no longer supports ${countOf(lost, 'answer')}`} />}
      <Card title={title} note={basisText(basis)}>
        <ul class="small">
          {caveats.slice(0, CHANGES_SHOWN_MAX).map(({ itemId, title, kind, reason }) => (
            <li key={`${kind} ${itemId}`}>
              <Tag tone={kind === 'not applicable' ? 'plain' : 'bad'}>{kind}</Tag>{' '}
              <a href={`/assessments/${assessment.id}/categories/${categoryOf(itemId)}`}>
                {itemId} {title}
              </a>
              : {reason}
            </li>
          ))}
        </ul>
        {caveats.length > CHANGES_SHOWN_MAX && <p>{caveats.length - CHANGES_SHOWN_MAX} more</p>}
      </Card>
    </>
  )
}

/** Items of each kind that the page names. */
const CHANGES_SHOWN_MAX = 100

interface NewerItemsProps {
  readonly id: string
  readonly changes: readonly ItemChange[]
  readonly isOpen: boolean
  readonly mayAnswer: boolean
}

/** Names the items of a newer release, and offers them to an open assessment. */
function NewerItems({ id, changes, isOpen, mayAnswer }: NewerItemsProps) {
  const kinds = (['new', 'changed', 'removed'] as const).map((kind) => ({
    kind,
    items: changes.filter((change) => change.kind === kind),
  }))
  const counts = kinds.map(({ kind, items }) => `${items.length} ${kind}`).join(', ')
  return (
    <Notice title={`The framework has other items now: ${counts}`}>
      <details class="small">
        <summary>Which items</summary>
        <dl class="terms">
          {kinds
            .filter(({ items }) => items.length > 0)
            .map(({ kind, items }) => (
              <>
                <dt>{kind}</dt>
                <dd>
                  {items
                    .slice(0, CHANGES_SHOWN_MAX)
                    .map((item) => `${item.id} ${item.title}`)
                    .join('; ')}
                  {items.length > CHANGES_SHOWN_MAX && ` and ${items.length - CHANGES_SHOWN_MAX} more`}
                </dd>
              </>
            ))}
        </dl>
      </details>
      {!isOpen && <p class="small">This assessment stays as it was completed. A new one can carry its answers over.</p>}
      {isOpen && mayAnswer && (
        <form method="post" action={`/assessments/${id}/update`}>
          <p class="small">Answers and evidence are kept by the ids of items.</p>
          <button type="submit">Use the current items</button>
        </form>
      )}
    </Notice>
  )
}

interface ComparisonProps {
  readonly view: AssessmentView
  readonly previous: PreviousAssessment
  readonly nowMs: number
}

/** What changed since the framework was assessed before. */
function Comparison({ view: { assessment, categories }, previous, nowMs }: ComparisonProps) {
  const answered = categories.flatMap(({ items }) => items).filter(({ answer }) => answer !== 'unanswered')
  const compared = answered.flatMap((item) => {
    const was = pointsOf(previous.items.get(itemKey(item.id))?.answer ?? 'unanswered')
    const now = pointsOf(item.answer)
    return was === undefined || now === undefined ? [] : [now - was]
  })
  const better = compared.filter((change) => change > 0).length
  const worse = compared.filter((change) => change < 0).length
  const { result } = previous.assessment
  return (
    <Card
      title="Compared with the last assessment"
      note={
        <a href={`/assessments/${previous.assessment.id}`}>
          completed <Time ms={previous.assessment.completedAtMs} nowMs={nowMs} />
        </a>
      }
    >
      <p>
        {previous.scoreChange !== undefined && assessment.result !== null && result !== null && (
          <>
            Score {result.overallScore} → {assessment.result.overallScore} ({changeText(previous.scoreChange)}).{' '}
          </>
        )}
        {better} better, {worse} worse, {compared.length - better - worse} unchanged of the{' '}
        {countOf(compared.length, 'item')} that both answer.{' '}
        <a href={`/assessments/${assessment.id}/compare`}>Show what changed</a>
      </p>
    </Card>
  )
}

interface AssessmentItemsProps {
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

interface ComparisonPageProps {
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
