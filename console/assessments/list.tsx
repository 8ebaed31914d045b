import { changeText } from '../../engine/export/report/text.ts'
import { type Assessment, frameworkOf } from '../../engine/store/assessments.ts'
import { profileText } from '../../engine/store/framework.ts'
import { Bar, Trend } from '../design/chart.tsx'
import { Checks, Field, FormError, Select } from '../design/form.tsx'
import { CsvLink, NumberedPages } from '../design/list.tsx'
import { Card, countOf, countText, PageHead, Tag, Time } from '../design/parts.tsx'
import { type Column, countColumn, Table, textColumn, timeColumn } from '../design/table.tsx'
import type { FormState } from '../form.ts'
import type { AssessmentRow, AssessmentsView, FrameworkRow } from './read.ts'

/** Characters of a typed profile: one item id in 20 characters, and 500 of them. */
export const PROFILE_LENGTH_MAX = 10_000

interface AssessmentsProps {
  readonly view: AssessmentsView
  readonly query: URLSearchParams
  readonly form: FormState
  readonly nowMs: number
  readonly mayCreate: boolean
}

export function Assessments({ view, query, form, nowMs, mayCreate }: AssessmentsProps) {
  const { frameworks, open, completed } = view
  const assessed = frameworks.filter(({ last }) => last !== undefined)
  return (
    <>
      <PageHead title="Assessments" about="How far the organization meets each framework">
        {open.total > 0 && (
          <a class="button" href="/assessments/items">
            My items
          </a>
        )}
        <a class="button" href="/frameworks">
          Own frameworks
        </a>
        {open.total + completed.total > 0 && <CsvLink path="/assessments" />}
      </PageHead>
      <div class={mayCreate ? 'wide' : undefined}>
        <div class="column">
          <Card title="In progress" note={countText(open.total)} bare={open.total > 0}>
            {open.total === 0 ? (
              <p class="muted">
                No assessment is in progress.{mayCreate && ' Start one: it has the controls of its framework.'}
              </p>
            ) : (
              <Table id="open" label="Assessments in progress" columns={openColumns(nowMs)} rows={open.rows} />
            )}
          </Card>
          <NumberedPages of={open} query={query} name="open" />
          <Card title="Frameworks" note={`${assessed.length} of ${frameworks.length} assessed`} bare>
            <Table id="scores" label="Frameworks" columns={frameworkColumns(nowMs)} rows={frameworks} />
          </Card>
        </div>
        {mayCreate && (
          <Card title="Start assessment">
            <form class="stack" method="post" action="/assessments">
              <FormError form={form} />
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
              <button class="first" type="submit">
                Start
              </button>
            </form>
          </Card>
        )}
      </div>
      {completed.total > assessed.length && (
        <Card title="All completed" note={countText(completed.total)} bare>
          <Table id="completed" label="Completed assessments" columns={completedColumns(nowMs)} rows={completed.rows} />
        </Card>
      )}
      <NumberedPages of={completed} query={query} name="completed" />
    </>
  )
}

function openColumns(nowMs: number): readonly Column<AssessmentRow>[] {
  return [
    { id: 'title', name: 'Assessment', cell: ({ assessment }) => <Title assessment={assessment} /> },
    {
      id: 'progress',
      name: 'Answered',
      cell: (row) => <Progress {...row} />,
    },
    {
      id: 'changed',
      name: 'Changed',
      cell: ({ assessment }) => <Time ms={assessment.updatedAtMs} nowMs={nowMs} />,
      wide: true,
    },
  ]
}

function Title({ assessment }: { readonly assessment: Assessment }) {
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

function scoreCell({ assessment: { result }, basis }: Pick<AssessmentRow, 'assessment' | 'basis'>) {
  if (result === null) return null
  return (
    <>
      <Grade grade={result.grade} score={result.overallScore} />
      <p class="small muted">{basis}</p>
    </>
  )
}

function frameworkColumns(nowMs: number): readonly Column<FrameworkRow>[] {
  return [
    {
      id: 'title',
      name: 'Framework',
      cell: ({ name, last }) => (last === undefined ? name : <a href={`/assessments/${last.id}`}>{name}</a>),
    },
    {
      id: 'score',
      name: 'Score',
      cell: ({ last, basis }) =>
        last === undefined ? <span class="muted">not assessed</span> : scoreCell({ assessment: last, basis }),
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
      cell: ({ last }) => last && <Time ms={last.completedAtMs} nowMs={nowMs} />,
      wide: true,
    },
    {
      id: 'progress',
      name: 'In progress',
      cell: ({ open }) => open && <Progress {...open} />,
      wide: true,
    },
  ]
}

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
export function assessmentColumns(
  nowMs: number,
  changes: ReadonlyMap<string, number>,
): readonly Column<AssessmentRow>[] {
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
    timeColumn('started', 'Started', nowMs, ({ assessment }) => assessment.startedAtMs),
    timeColumn('completed', 'Completed', nowMs, ({ assessment }) => assessment.completedAtMs),
  ]
}

function completedColumns(nowMs: number): readonly Column<AssessmentRow>[] {
  return [
    { id: 'title', name: 'Assessment', cell: ({ assessment }) => <Title assessment={assessment} /> },
    { id: 'score', name: 'Score', cell: scoreCell },
    {
      id: 'completed',
      name: 'Completed',
      cell: ({ assessment }) => <Time ms={assessment.completedAtMs} nowMs={nowMs} />,
    },
  ]
}
