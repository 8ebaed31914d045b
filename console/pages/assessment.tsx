import { itemKey } from '../../engine/assess/rules.ts'
import { pointsOf } from '../../engine/assess/score.ts'
import { changeText } from '../../engine/report/text.ts'
import {
  type Answer,
  type AssessmentCategory,
  type AssessmentItem,
  type CategoryScore,
  WORD_ANSWERS,
} from '../../engine/store/assessments.ts'
import { FRAMEWORKS } from '../../engine/store/framework.ts'
import { Bar } from '../design/chart.tsx'
import { Card, countOf, Notice, PageHead, Tag, Time } from '../design/parts.tsx'
import type { AssessmentView, PreviousAssessment } from '../views/assessments.ts'
import { Grade } from './assessments.tsx'

const ANSWER_NAMES: Readonly<Record<(typeof WORD_ANSWERS)[number], string>> = {
  yes: 'Yes',
  partial: 'Partial',
  no: 'No',
  not_applicable: 'Not applicable',
  unanswered: 'Not answered',
}

export interface AssessmentProps {
  readonly view: AssessmentView
  readonly nowMs: number
  readonly mayAnswer: boolean
  readonly mayComplete: boolean
  /** Why a change was rejected; '' if none was. */
  readonly error: string
  readonly done: string
}

export function AssessmentPage(props: AssessmentProps) {
  const { view, nowMs, mayComplete, error, done } = props
  const { assessment, categories, answered, items, previous } = view
  const { id, title, frameworkId, status, result } = assessment
  return (
    <>
      <div>
        <p class="crumb">
          <a href="/assessments">Assessments</a> / {FRAMEWORKS[frameworkId]}
        </p>
        <PageHead
          title={title}
          about={
            result === null ? (
              `${answered} of ${countOf(items, 'item')} answered`
            ) : (
              <span class="facts">
                <Grade grade={result.grade} score={result.overallScore} />
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
      {done === 'saved' && <Notice title="The answers are saved" />}
      {done === 'completed' && (
        <Notice title="The assessment is completed">
          <p class="small">
            Its score and <a href="/recommendations">its recommendations</a> are in the API with the next request.
          </p>
        </Notice>
      )}
      {previous !== undefined && <Comparison view={view} previous={previous} nowMs={nowMs} />}
      {status !== 'completed' && answered === items && !mayComplete && (
        <Notice title="Every item is answered. An admin can complete the assessment" />
      )}
      {categories.map((category, at) => (
        <Category key={category.name} {...props} category={category} at={at} score={result?.categories[at]} />
      ))}
    </>
  )
}

interface CategoryProps extends AssessmentProps {
  readonly category: AssessmentCategory
  readonly at: number
  readonly score: CategoryScore | undefined
}

function Category({ view, mayAnswer, category, at, score }: CategoryProps) {
  const { id, status } = view.assessment
  const { name, items } = category
  const answered = items.filter(({ answer }) => answer !== 'unanswered').length
  const previousScore = view.previous?.assessment.result?.categories.find((each) => each.name === name)?.score
  if (status === 'completed' || !mayAnswer) {
    return (
      <Card
        title={name}
        note={score === undefined ? `${answered} of ${items.length}` : scoreText(score, previousScore)}
      >
        {score?.score !== undefined && score.score !== null && (
          <Bar share={score.score / 100} label={`${name}: ${score.score} of 100`} />
        )}
        <ul class="lines">
          {items.map((item) => (
            <li key={item.id}>
              <Item item={item} was={wasOf(view, item)} />
              <div class="right">
                <Tag>{answerName(item.answer)}</Tag>
              </div>
            </li>
          ))}
        </ul>
      </Card>
    )
  }
  return (
    <Card title={name} note={`${answered} of ${items.length} answered`}>
      <form method="post" action={`/assessments/${id}/categories/${at}`}>
        <ul class="lines answers">
          {items.map((item, index) => (
            <li key={item.id}>
              <Item item={item} was={wasOf(view, item)} />
              <AnswerFields item={item} index={index} />
            </li>
          ))}
        </ul>
        <button class="first" type="submit" aria-label={`Save the answers of ${name}`}>
          Save
        </button>
      </form>
    </Card>
  )
}

interface ItemProps {
  readonly item: AssessmentItem
  /** The answer of the previous assessment, if it was another one. */
  readonly was: Answer | undefined
}

function Item({ item: { id, title, note }, was }: ItemProps) {
  return (
    <div>
      {title}
      <p class="small muted">
        <span class="mono">{id}</span>
        {was !== undefined && ` · was: ${answerName(was)}`}
        {note !== '' && ` · ${note}`}
      </p>
    </div>
  )
}

function wasOf({ previous }: AssessmentView, { id, answer }: AssessmentItem): Answer | undefined {
  const was = previous?.answers.get(itemKey(id))
  return was === undefined || was === answer ? undefined : was
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
    const was = pointsOf(previous.answers.get(itemKey(item.id)) ?? 'unanswered')
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
        {countOf(compared.length, 'item')} that both answer.
      </p>
    </Card>
  )
}

function AnswerFields({ item, index }: { readonly item: AssessmentItem; readonly index: number }) {
  const { id, answer, note } = item
  const options: readonly Answer[] = typeof answer === 'number' ? [answer, ...WORD_ANSWERS] : WORD_ANSWERS
  return (
    <div class="answer">
      <select name={`answer-${index}`} aria-label={`Answer of ${id}`}>
        {options.map((each) => (
          <option key={each} value={each} selected={each === answer}>
            {answerName(each)}
          </option>
        ))}
      </select>
      <input name={`note-${index}`} aria-label={`Evidence for ${id}`} placeholder="Evidence" value={note} />
    </div>
  )
}

function answerName(answer: Answer): string {
  return typeof answer === 'number' ? `${answer} %` : ANSWER_NAMES[answer]
}

function scoreText({ score, weight }: CategoryScore, previous: number | null | undefined): string {
  if (score === null) return 'not applicable'
  const change = previous === undefined || previous === null ? '' : ` (${changeText(score - previous)})`
  return `${score} of 100${change}, weight ${weight}`
}
