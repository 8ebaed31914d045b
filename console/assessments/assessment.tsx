import { basisText } from '../../engine/assess/basis.ts'
import type { ItemDifference } from '../../engine/assess/compare.ts'
import type { ItemChange } from '../../engine/assess/items.ts'
import { itemKey } from '../../engine/assess/rules.ts'
import { pointsOf } from '../../engine/assess/score.ts'
import { byDueDate, isOverdue, type OpenItem, openItems, workOf } from '../../engine/assess/work.ts'
import { changeText, dateText } from '../../engine/export/report/text.ts'
import { isoDay } from '../../engine/kernel/process/clock.ts'
import { type Answer as AnswerGiven, type AssessmentCategory, frameworkOf } from '../../engine/store/assessments.ts'
import { profileText } from '../../engine/store/framework.ts'
import { Bar } from '../design/chart.tsx'
import { ActionButton } from '../design/form.tsx'
import { CsvLink, FilterSelect, Filters, PagedTable, paged } from '../design/list.tsx'
import { Card, countOf, countText, Empty, Notice, PageHead, Tag, Time } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import { EMPTY_FORM, type FormState } from '../form.ts'
import type { Answer } from '../http/answer.ts'
import { csvTable } from '../http/csv.ts'
import { changeForm, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { answerName, pathOf } from './item.tsx'
import { Grade, Progress } from './list.tsx'
import { type AssessmentView, assessmentView, comparisonView, progressOf } from './read.ts'

interface AssessmentProps {
  readonly visit: Visit
  readonly view: AssessmentView
  readonly form: FormState
}

function AssessmentPage({ visit, view, form }: AssessmentProps) {
  const { nowMs } = visit
  const { assessment, categories, answered, items, previous, newer, changes } = view
  const { id, title, status, result, profile } = assessment
  const mayComplete = visit.may('assessment.complete')
  const error = form.errors['']
  const suggested = [...view.suggestions.values()].filter(({ answer }) => answer !== undefined).length
  return (
    <>
      <PageHead
        crumb={
          <>
            <a href={PATH}>Assessments</a> / {frameworkOf(assessment)}
          </>
        }
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
          <ActionButton action={`${PATH}/${id}/complete`} look="first">
            Complete
          </ActionButton>
        )}
      </PageHead>
      {error !== undefined && <Notice tone="bad" title={error} />}
      {(newer !== undefined || (status === 'completed' && changes.length > 0)) && (
        <NewerItems
          id={id}
          changes={changes}
          isOpen={status !== 'completed'}
          mayAnswer={visit.may('assessment.change')}
        />
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
        <Table
          visit={visit}
          id="categories"
          label="Categories"
          columns={categoryColumns(view)}
          rows={categoryRows(view)}
        />
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
        <>
          <p class="small">Answers and evidence are kept by the ids of items.</p>
          <ActionButton action={`${PATH}/${id}/update`}>Use the current items</ActionButton>
        </>
      )}
    </Notice>
  )
}

interface ComparisonProps {
  readonly view: AssessmentView
  readonly previous: NonNullable<AssessmentView['previous']>
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

/** The items of one owner in all assessments in progress. */
function AssessmentItems({ visit }: { readonly visit: Visit }) {
  const { request, site, organization, identity } = visit
  const all = openItems(site.store, organization.id)
  const owner = request.query.get('owner') ?? identity.member.name
  const owners = new Set([identity.member.name, ...all.map(({ item }) => workOf(item).owner), owner])
  owners.delete('')
  const items = paged(byDueDate(all.filter(({ item }) => workOf(item).owner === owner)), request.query)
  return (
    <>
      <PageHead
        crumb={<a href={PATH}>Assessments</a>}
        title="Items by owner"
        about="Of all assessments in progress, those that are due first"
      />
      <Filters action={`${PATH}/items`} found={countOf(items.total, 'item')}>
        <FilterSelect
          name="owner"
          label="Owner"
          value={owner}
          options={[...owners].sort().map((each) => [each, each])}
        />
      </Filters>
      <PagedTable
        {...{ visit, id: 'items', label: 'Items', columns: ITEM_COLUMNS, rows: items }}
        empty={<Empty title="No item of an assessment in progress has this owner" />}
      />
    </>
  )
}

const ITEM_COLUMNS: readonly Column<OpenItem>[] = [
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
    cell: ({ assessment, item }, { nowMs }) => (
      <>
        {workOf(item).dueOn} {isOverdue(assessment, item, isoDay(nowMs)) && <Tag tone="warn">Overdue</Tag>}
      </>
    ),
  },
]

/** What changed between two assessments, and why the score moved. */
function ComparisonPage({ visit, id }: { readonly visit: Visit; readonly id: string }) {
  const { query } = visit.request
  const view = comparisonView(visit, id)
  const { before, after, others, score, scoreBefore, unchanged, otherEffects } = view
  const items = paged(view.items, query)
  const path = `${PATH}/${id}/compare`
  return (
    <>
      <PageHead
        crumb={
          <>
            <a href={PATH}>Assessments</a> / <a href={`${PATH}/${id}`}>{after.title}</a>
          </>
        }
        title="What changed"
        about={`${before.title} → ${after.title}`}
      >
        <CsvLink path={path} query={query} />
      </PageHead>
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
      <PagedTable
        {...{ visit, id: 'changed', label: 'Changed items', title: 'Changed items', rows: items }}
        columns={DIFFERENCE_COLUMNS}
        note={countOf(items.total, 'item')}
        empty={<Empty title="No answer changed" />}
      />
    </>
  )
}

function nameOf(answer: AnswerGiven | undefined): string {
  return answer === undefined ? 'Absent' : answerName(answer)
}

/** The columns of the page and of its CSV file. */
const DIFFERENCE_COLUMNS: readonly Column<ItemDifference>[] = [
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

const PATH = '/assessments'

export const ASSESSMENT_ROUTES: readonly Route[] = [
  page(`${PATH}/items`, 'assessment.read', (visit) => visit.page('Items by owner', PATH, AssessmentItems({ visit }))),
  page(`${PATH}/:id`, 'assessment.read', (visit, { id }) => assessmentPage(visit, id, EMPTY_FORM)),
  page(`${PATH}/:id/compare`, 'assessment.read', (visit, { id }) =>
    visit.page('What changed', PATH, ComparisonPage({ visit, id })),
  ),
  page(`${PATH}/:id/compare.csv`, 'assessment.read', (visit, { id }) =>
    csvTable('assessment-comparison', DIFFERENCE_COLUMNS, comparisonView(visit, id).items),
  ),
  changeForm(
    `${PATH}/:id/update`,
    'assessment.update',
    (given) => given,
    ({ id }) => `${PATH}/${id}?done=updated`,
  ),
  changeForm(
    `${PATH}/:id/complete`,
    'assessment.complete',
    (given) => given,
    ({ id }) => `${PATH}/${id}?done=completed`,
    { again: (visit, state, { id }) => assessmentPage(visit, id, state) },
  ),
]

const DONE: Readonly<Record<string, string>> = {
  updated: 'The assessment has the current items',
  completed: 'The assessment is completed. Its score and its recommendations are in the API with the next request',
}

function assessmentPage(visit: Visit, id: string, form: FormState): Answer {
  const view = assessmentView(visit, id)
  return visit.page(view.assessment.title, PATH, AssessmentPage({ visit, view, form }), { form, done: DONE })
}
