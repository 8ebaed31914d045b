import { CLAIMS } from '../../engine/assess/discovery-facts.ts'
import { answer as answerRule, itemKey, readAnswer } from '../../engine/assess/rules.ts'
import { evidenceText, type Suggestion } from '../../engine/assess/suggestions.ts'
import { guidanceOf } from '../../engine/assess/templates.ts'
import { noteMark, type SeenItem, workOf } from '../../engine/assess/work.ts'
import {
  type Answer,
  type AssessmentCategory,
  type AssessmentItem,
  WORD_ANSWERS,
} from '../../engine/store/assessments.ts'
import { type FrameworkItem, profileText } from '../../engine/store/framework.ts'
import type { Paged } from '../design/paged.ts'
import { NumberedPages } from '../design/pages-links.tsx'
import { Card, countOf, Notice, PageHead, Tag } from '../design/parts.tsx'
import { type AssessmentView, progressOf } from '../views/assessments.ts'

const ANSWER_NAMES: Readonly<Record<(typeof WORD_ANSWERS)[number], string>> = {
  yes: 'Yes',
  partial: 'Partial',
  no: 'No',
  not_applicable: 'Not applicable',
  unanswered: 'Not answered',
}

export interface CategoryPageProps {
  readonly view: AssessmentView
  readonly category: AssessmentCategory
  /** Its place in the assessment. */
  readonly at: number
  /** The items of this page, with their places in the category. */
  readonly items: Paged<readonly [place: number, item: AssessmentItem]>
  /** Answers that were not saved, by the place of their item. */
  readonly rejected: RejectedAnswers
  readonly query: URLSearchParams
  readonly mayAnswer: boolean
  readonly done: string
}

/** What a person typed for an item, and why it is not saved. */
export interface RejectedAnswer {
  readonly answer: string
  readonly note: string
  readonly message: string
}

export type RejectedAnswers = ReadonlyMap<number, RejectedAnswer>

/** The items of one category. A whole framework would be too long for one page. */
export function CategoryPage({ view, category, at, items, rejected, query, mayAnswer, done }: CategoryPageProps) {
  const { assessment, categories } = view
  const { id, title, frameworkId, status } = assessment
  const isOpen = status !== 'completed' && mayAnswer
  const { answered, items: count } = progressOf([category])
  const unsupported = new Set(view.basis.unsupported.map(({ item }) => item.id))
  const list = (
    <ul class={isOpen ? 'lines answers' : 'lines'}>
      {items.rows.map(([place, item]) => (
        <li key={item.id} id={`item-${place}`}>
          <Item
            item={item}
            guidance={guidanceOf(frameworkId, item, view.template)}
            was={wasOf(view, item)}
            change={changeOf(view, item)}
            isOpen={isOpen}
            path={`/assessments/${id}/categories/${at}/items/${place}`}
          />
          {isOpen ? (
            <AnswerFields
              item={item}
              place={place}
              rejected={rejected.get(place)}
              suggestion={view.suggestions.get(itemKey(item.id))}
            />
          ) : (
            <div class="right">
              <Tag>{answerName(item.answer)}</Tag>
              {unsupported.has(item.id) && <Tag tone="bad">no longer supported</Tag>}
            </div>
          )}
        </li>
      ))}
    </ul>
  )
  return (
    <>
      <div>
        <p class="crumb">
          <a href="/assessments">Assessments</a> / <a href={`/assessments/${id}`}>{title}</a>
        </p>
        <PageHead title={category.name} about={`${answered} of ${countOf(count, 'item')} answered`} />
      </div>
      {rejected.size > 0 && (
        <Notice tone="bad" title={`${countOf(rejected.size, 'answer')} not saved. The others are`}>
          <ul class="small">
            {[...rejected].map(([place, { message }]) => (
              <li key={place}>
                <a href={`#item-${place}`}>{message}</a>
              </li>
            ))}
          </ul>
        </Notice>
      )}
      {done === 'saved' && rejected.size === 0 && <Notice title="The answers are saved" />}
      <Card title="Items">
        {isOpen ? (
          <form method="post" action={`/assessments/${id}/categories/${at}`}>
            <input type="hidden" name="page" value={items.page} />
            {/* The first button is the one that Enter presses in a field. */}
            <button type="submit">Save</button>
            {list}
            <button class="first" type="submit" aria-label={`Save the answers of ${category.name}`}>
              Save
            </button>
          </form>
        ) : (
          list
        )}
      </Card>
      <NumberedPages of={items} query={query} />
      <nav class="row" aria-label="Categories">
        {at > 0 && <a href={`/assessments/${id}/categories/${at - 1}`}>{categories[at - 1]?.name}</a>}
        {at + 1 < categories.length && (
          <a class="button" href={`/assessments/${id}/categories/${at + 1}`}>
            Next: {categories[at + 1]?.name}
          </a>
        )}
      </nav>
    </>
  )
}

interface ItemProps {
  readonly item: AssessmentItem
  readonly guidance: FrameworkItem | undefined
  /** The answer of the previous assessment, if it was another one. */
  readonly was: Answer | undefined
  readonly change: 'New' | 'Question changed' | undefined
  readonly isOpen: boolean
  /** The page of the item. */
  readonly path: string
}

function Item({ item, guidance: asked, was, change, isOpen, path }: ItemProps) {
  const { id, title, question, note, recommendation, facts } = item
  const guidance = asked?.guidance
  return (
    <div>
      <strong>{title}</strong> {change !== undefined && <Tag>{change}</Tag>}
      {question !== undefined && <p>{question}</p>}
      <p class="small muted">
        <span class="mono">{id}</span>
        {was !== undefined && ` · was: ${answerName(was)}`}
        {!isOpen && note !== '' && ` · ${note}`}
        {' · '}
        <a href={path}>{workText(item)}</a>
      </p>
      {facts !== undefined && <p class="small muted">Discovery at completion: {facts.text}</p>}
      {guidance !== undefined && (
        <details class="small" open={isOpen && item.answer === 'unanswered'}>
          <summary>What counts</summary>
          <dl class="terms">
            <dt>Yes</dt>
            <dd>{guidance.yes}</dd>
            <dt>Partial</dt>
            <dd>{guidance.partial}</dd>
            <dt>No</dt>
            <dd>{guidance.no}</dd>
            <dt>Evidence</dt>
            <dd>{guidance.evidence}</dd>
            <dt>If not</dt>
            <dd>{recommendation}</dd>
            {asked?.references !== undefined && (
              <>
                <dt>From</dt>
                <dd>{asked.references.join(', ')}</dd>
              </>
            )}
          </dl>
        </details>
      )}
    </div>
  )
}

/** What the previous assessment with the same profile did not ask. */
function changeOf({ assessment, previous }: AssessmentView, { id, question }: AssessmentItem): ItemProps['change'] {
  if (previous === undefined || profileText(previous.assessment.profile) !== profileText(assessment.profile)) return
  const known = previous.items.get(itemKey(id))
  if (known === undefined) return 'New'
  return known.question === question ? undefined : 'Question changed'
}

/** Who works on an item, until when. */
function workText(item: AssessmentItem): string {
  const { owner, dueOn, links } = workOf(item)
  const known = [owner, dueOn === '' ? '' : `due ${dueOn}`, links.length === 0 ? '' : countOf(links.length, 'link')]
  return known.filter((each) => each !== '').join(', ') || 'Owner and due date'
}

function wasOf({ previous }: AssessmentView, { id, answer }: AssessmentItem): Answer | undefined {
  const was = previous?.items.get(itemKey(id))?.answer
  return was === undefined || was === answer ? undefined : was
}

interface AnswerFieldsProps {
  readonly item: AssessmentItem
  readonly place: number
  /** What was typed before, and was not saved. */
  readonly rejected: RejectedAnswer | undefined
  readonly suggestion: Suggestion | undefined
}

function AnswerFields({ item, place, rejected, suggestion }: AnswerFieldsProps) {
  const { id, answer } = item
  const typed = { answer: String(answer), note: item.note, ...rejected }
  const options: readonly Answer[] = typeof answer === 'number' ? [answer, ...WORD_ANSWERS] : WORD_ANSWERS
  return (
    <div class="answer">
      <select name={`answer-${place}`} aria-label={`Answer of ${id}`}>
        {options.map((each) => (
          <option key={each} value={each} selected={String(each) === typed.answer}>
            {answerName(each)}
          </option>
        ))}
      </select>
      <input type="hidden" name={`was-${place}`} value={markOf(item)} />
      <input name={`note-${place}`} aria-label={`Evidence for ${id}`} placeholder="Evidence" value={typed.note} />
      {rejected !== undefined && (
        <p class="small">
          <Tag tone="bad">not saved</Tag> Stored now: {answerName(answer)}
          {item.note !== '' && `, “${item.note}”`}. Save again to replace it with yours.
        </p>
      )}
      {suggestion !== undefined && <Suggested suggestion={suggestion} place={place} />}
    </div>
  )
}

interface SuggestedProps {
  readonly suggestion: Suggestion
  readonly place: number
}

/** A suggested answer, which counts only if somebody accepts it, or what is known without one. */
function Suggested({ suggestion, place }: SuggestedProps) {
  const { itemId, answer, facts } = suggestion
  const from = `${evidenceText(suggestion)}${facts === undefined ? '' : `. Discovery shows if ${CLAIMS[facts.topic]}`}`
  if (answer === undefined) return <div class="small muted">Related, without an answer: {from}</div>
  const text = `Accept: ${answerName(answer)}`
  return (
    <div class="small">
      <button type="submit" name={`accept-${place}`} value="yes" aria-label={`${text}, for ${itemId}`}>
        {text}
      </button>{' '}
      <span class="muted">from {from}</span>
    </div>
  )
}

/** What the page shows of an item, so that a change of somebody else is noticed. */
function markOf({ answer, note }: AssessmentItem): string {
  return `${answer}_${noteMark(note)}`
}

/** undefined: not a mark. */
export function readMark(text: string): SeenItem | undefined {
  const [, written = '', note = ''] = /^(\w+)_([0-9a-f]{16})$/.exec(text) ?? []
  const read = answerRule.safeParse(readAnswer(written))
  return note === '' || !read.success ? undefined : { answer: read.data, note }
}

export function answerName(answer: Answer): string {
  return typeof answer === 'number' ? `${answer} %` : ANSWER_NAMES[answer]
}
