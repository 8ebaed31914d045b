import { changeText } from '../../engine/export/report/text.ts'
import { frameworkOf } from '../../engine/store/assessments.ts'
import { profileText } from '../../engine/store/framework.ts'
import { Bar, Trend } from '../design/chart.tsx'
import { Checks, Field, Form, Select } from '../design/form.tsx'
import { CsvLink, PagedTable, paged } from '../design/list.tsx'
import { Card, countOf, PageHead, Tag, Time } from '../design/parts.tsx'
import { type Column, countColumn, Table, textColumn, timeColumn } from '../design/table.tsx'
import type { FormState } from '../form.ts'
import type { Visit } from '../http/visit.ts'
import { type AssessmentRow, assessmentsView, type FrameworkRow } from './read.ts'

/** Characters of a typed profile: one item id in 20 characters, and 500 of them. */
export const PROFILE_LENGTH_MAX = 10_000

export function Assessments({ visit, form }: { readonly visit: Visit; readonly form: FormState }) {
  const { query } = visit.request
  const { frameworks, open, completed, rowOf } = assessmentsView(visit)
  const mayCreate = visit.may('assessment.create')
  const openPage = paged(open, query, 'open')
  const completedPage = paged(completed, query, 'completed')
  const assessed = frameworks.filter(({ last }) => last !== undefined)
  return (
    <>
      <PageHead title="Assessments" about="How far the organization meets each framework">
        {open.length > 0 && (
          <a class="button" href="/assessments/items">
            My items
          </a>
        )}
        <a class="button" href="/frameworks">
          Own frameworks
        </a>
        {open.length + completed.length > 0 && <CsvLink path="/assessments" />}
      </PageHead>
      <div class={mayCreate ? 'wide' : undefined}>
        <div class="column">
          <PagedTable
            {...{ visit, id: 'open', label: 'Assessments in progress', title: 'In progress', name: 'open' }}
            {...{ columns: OPEN_COLUMNS, rows: { ...openPage, rows: openPage.rows.map(rowOf) } }}
            empty={
              <Card title="In progress" note="0">
                <p class="muted">
                  No assessment is in progress.{mayCreate && ' Start one: it has the controls of its framework.'}
                </p>
              </Card>
            }
          />
          <Card title="Frameworks" note={`${assessed.length} of ${frameworks.length} assessed`} bare>
            <Table visit={visit} id="scores" label="Frameworks" columns={FRAMEWORK_COLUMNS} rows={frameworks} />
          </Card>
        </div>
        {mayCreate && (
          <Card title="Start assessment">
            <Form action="/assessments" form={form} submit="Start">
              <Select
                name="framework"
                label="Framework"
                form={form}
                options={frameworks.map(({ id, name }) => [id, name])}
              />
              <Field name="title" label="Title" form={form} maxLength={255} hint="The framework's name if empty." />
              <Field
                name="profile"
                label="Profile"
                form={form}
                maxLength={PROFILE_LENGTH_MAX}
                hint="Empty for all items. user, builder, moderate, ig1, required, security, or ids of items."
              />
              {assessed.length > 0 && (
                <Checks
                  name="carry"
                  label="Answers"
                  form={form}
                  options={[['yes', 'Carry over from the last completed one']]}
                />
              )}
            </Form>
          </Card>
        )}
      </div>
      {completed.length > assessed.length && (
        <PagedTable
          {...{ visit, id: 'completed', label: 'Completed assessments', title: 'All completed', name: 'completed' }}
          {...{ columns: COMPLETED_COLUMNS, rows: { ...completedPage, rows: completedPage.rows.map(rowOf) } }}
          empty={null}
        />
      )}
    </>
  )
}

const TITLE: Column<AssessmentRow> = { id: 'title', name: 'Assessment', cell: Title }

const OPEN_COLUMNS: readonly Column<AssessmentRow>[] = [
  TITLE,
  { id: 'progress', name: 'Answered', cell: Progress },
  { ...timeColumn('changed', 'Changed', ({ assessment }: AssessmentRow) => assessment.updatedAtMs), wide: true },
]

function Title({ assessment }: AssessmentRow) {
  const { id, title, profile } = assessment
  const framework = frameworkOf(assessment)
  return (
    <>
      <a href={`/assessments/${id}`}>{title}</a>
      {(title !== framework || profile !== undefined) && (
        <p class="small muted">
          {framework}
          {profile !== undefined && `: ${profileText(profile)}`}
        </p>
      )}
    </>
  )
}

/** A grade with its score. */
export function Grade({ grade, score }: { readonly grade: string; readonly score: number }) {
  const tone = grade === 'A' || grade === 'B' ? 'good' : grade === 'F' ? 'bad' : 'warn'
  return (
    <Tag tone={tone}>
      {score} · {grade}
    </Tag>
  )
}

function scoreCell({ assessment: { result }, basis }: AssessmentRow) {
  if (result === null) return null
  return (
    <>
      <Grade grade={result.grade} score={result.overallScore} />
      <p class="small muted">{basis}</p>
    </>
  )
}

const FRAMEWORK_COLUMNS: readonly Column<FrameworkRow>[] = [
  {
    id: 'title',
    name: 'Framework',
    cell: ({ name, last }) => (last === undefined ? name : <a href={`/assessments/${last.assessment.id}`}>{name}</a>),
  },
  {
    id: 'score',
    name: 'Score',
    cell: ({ last }) => (last === undefined ? <span class="muted">not assessed</span> : scoreCell(last)),
  },
  {
    id: 'change',
    name: 'Change',
    cell: ({ scoreChange }) => (scoreChange === undefined ? '' : changeText(scoreChange)),
    number: true,
  },
  {
    id: 'trend',
    name: 'Trend',
    cell: ({ name, trend }) => trend.length > 1 && <Trend points={trend} label={`Scores of ${name}`} />,
    wide: true,
  },
  {
    id: 'completed',
    name: 'Completed',
    cell: ({ last }, { nowMs }) => last && <Time ms={last.assessment.completedAtMs} nowMs={nowMs} />,
    wide: true,
  },
  { id: 'progress', name: 'In progress', cell: ({ open }) => open && <Progress {...open} />, wide: true },
]

const COMPLETED_COLUMNS: readonly Column<AssessmentRow>[] = [
  TITLE,
  { id: 'score', name: 'Score', cell: scoreCell },
  timeColumn('completed', 'Completed', ({ assessment }) => assessment.completedAtMs),
]

export function Progress({ answered, items }: { readonly answered: number; readonly items: number }) {
  return (
    <div class="progress">
      <Bar share={answered / items} label={`${answered} of ${countOf(items, 'item')} answered`} />
      <span class="small muted">
        {answered} of {items}
      </span>
    </div>
  )
}

/** The columns of the CSV file, which has the open and the completed assessments. */
export function assessmentColumns(changes: ReadonlyMap<string, number>): readonly Column<AssessmentRow>[] {
  return [
    textColumn('title', 'Assessment', ({ assessment }) => assessment.title),
    textColumn('framework', 'Framework', ({ assessment }) => frameworkOf(assessment)),
    textColumn('profile', 'Profile', ({ assessment }) => profileText(assessment.profile)),
    textColumn('status', 'Status', ({ assessment }) => assessment.status),
    { id: 'score', name: 'Score', csv: ({ assessment }) => assessment.result?.overallScore ?? '' },
    textColumn('grade', 'Grade', ({ assessment }) => assessment.result?.grade ?? ''),
    textColumn('basis', 'Basis', ({ basis }) => basis),
    { id: 'change', name: 'Change of the score', csv: ({ assessment }) => changes.get(assessment.id) ?? '' },
    countColumn('answered', 'Answered', ({ answered }) => answered),
    countColumn('items', 'Items', ({ items }) => items),
    timeColumn('started', 'Started', ({ assessment }) => assessment.startedAtMs),
    timeColumn('completed', 'Completed', ({ assessment }) => assessment.completedAtMs),
  ]
}
